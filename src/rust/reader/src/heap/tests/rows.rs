//! What a snapshot of a fake heap says, as text.

use super::FakeHeap;
use crate::heap::dominators::Dominators;
use crate::heap::naming::Named;
use crate::heap::objects::Objects;
use crate::heap::roots;
use crate::heap::walk::walk;
use profile_core::model::heap::NO_HOLDER;
use std::collections::BTreeMap;

/// The bytes and objects of each path, with its steps from the root to the class.
pub struct Rows(BTreeMap<String, (u64, u64)>);

impl Rows {
    /// What retains less than `least` has no step of its own.
    pub fn of(heap: &mut FakeHeap, least: u64) -> Rows {
        heap.finish();
        let known = &heap.known;
        let mut view = heap.view();
        let objects = Objects::read(&mut view, &heap.lists, known.nil).unwrap();
        let libraries = &heap.libraries;
        let found = roots::find(&mut view, &heap.r, known, libraries, &objects, &heap.lists);
        let (roots, symbols) = found.unwrap();
        let (graph, parents) = walk(&objects, &symbols, &roots).unwrap();
        let dominators = Dominators::find(&graph, parents).unwrap();
        let naming = Named::find(
            known,
            &objects,
            &graph,
            &dominators,
            &roots,
            NO_HOLDER,
            least,
        )
        .unwrap();
        let mut rows = BTreeMap::new();
        for (&(path, class), sum) in &naming.sums.by_key {
            let mut steps = vec![naming.texts_of.class(class).unwrap()];
            steps.extend(
                naming
                    .paths
                    .upwards(path)
                    .map(|node| naming.text(node).unwrap()),
            );
            steps.reverse();
            let row: &mut (u64, u64) = rows.entry(steps.join(" > ")).or_default();
            *row = (row.0 + sum.bytes, row.1 + sum.objects);
        }
        Rows(rows)
    }

    /// The bytes and the number of objects of a path and class.
    pub fn get(&self, path: &str) -> (u64, u64) {
        let known = || self.0.keys().cloned().collect::<Vec<_>>().join("\n");
        *self
            .0
            .get(path)
            .unwrap_or_else(|| panic!("no {path} among\n{}", known()))
    }

    pub fn bytes(&self, path: &str) -> u64 {
        self.get(path).0
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// The most steps of a path, with the class.
    pub fn deepest(&self) -> usize {
        let depths = self.0.keys().map(|path| path.split(" > ").count());
        depths.max().unwrap_or(0)
    }
}
