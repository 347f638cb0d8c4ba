//! Compares dominators with their definition: without the dominator of an object, no root reaches the object.

use super::*;
use crate::heap::roots::{Phase, Root, Symbols};
use crate::heap::tests::{FakeHeap, Random};
use crate::heap::walk::walk;
use std::collections::{BTreeMap, BTreeSet};

/// Objects, their references, and roots: the phase, and what the root holds.
struct Case {
    heap: FakeHeap,
    references: BTreeMap<u64, Vec<u64>>,
    roots: Vec<(Phase, Vec<u64>)>,
}

const ROOT: u64 = 1;

impl Case {
    fn random(random: &mut Random) -> Case {
        let mut heap = FakeHeap::new();
        let nil = heap.known.nil;
        let count = 2 + random.below(24);
        let leaves = random.below(8);
        let mut objects: Vec<u64> = (0..count)
            .map(|_| {
                let size = 1 + random.below(4);
                heap.list(&vec![nil; size])
            })
            .collect();
        let lists = objects.clone();
        objects.extend((0..leaves).map(|_| heap.real(random.pick(&[0, 1, 3, 30, 1000]))));
        let mut references: BTreeMap<u64, Vec<u64>> =
            objects.iter().map(|object| (*object, Vec::new())).collect();
        // Few references make deep graphs.
        let most = random.pick(&[1, 2, 4]);
        for list in &lists {
            let size = heap.word(*list, 32);
            for row in 0..(size as usize).min(most) {
                let to = random.pick(&objects);
                heap.set(*list, 48 + 8 * row, to);
                references.entry(*list).or_default().push(to);
            }
        }
        heap.finish();
        let mut phases: Vec<Phase> = (0..1 + random.below(4))
            .map(|_| random.pick(&[Phase::Names, Phase::Names, Phase::Calls, Phase::R]))
            .collect();
        phases.sort_unstable();
        let root = |phase| {
            let held = (0..1 + random.below(3)).map(|_| random.pick(&objects));
            (phase, held.collect())
        };
        let roots = phases.into_iter().map(root).collect();
        Case {
            heap,
            references,
            roots,
        }
    }

    /// What is reached from the roots of a phase, without some objects, and without one more object or root. The root
    /// with row 0 has the number [`ROOT`].
    fn reached(&self, phase: Phase, earlier: &BTreeSet<u64>, without: u64) -> BTreeSet<u64> {
        let roots = (ROOT..).zip(&self.roots);
        let roots = roots.filter(|(number, root)| root.0 == phase && *number != without);
        let mut left: Vec<u64> = roots.flat_map(|(_, root)| root.1.clone()).collect();
        let mut reached = BTreeSet::new();
        while let Some(object) = left.pop() {
            if object != without && !earlier.contains(&object) && reached.insert(object) {
                left.extend(&self.references[&object]);
            }
        }
        reached
    }

    /// Compares the size that each object and root retains, and the dominator of each object.
    fn check(&self) {
        let objects = Objects::read(&mut self.heap.view(), &self.heap.lists, self.heap.known.nil);
        let objects = objects.unwrap();
        let roots: Vec<Root> = self.roots.iter().map(root).collect();
        let (graph, parents) = walk(&objects, &Symbols::default(), &roots).unwrap();
        let found = Dominators::find(&graph, parents).unwrap();
        let retained_by = found.retained(&graph, &objects).unwrap();
        let number = |address: u64| objects.number(address).unwrap();
        let mut earlier = BTreeSet::new();
        let mut phases: Vec<Phase> = self.roots.iter().map(|root| root.0).collect();
        phases.dedup();
        for phase in phases {
            let all = self.reached(phase, &earlier, 0);
            let of_roots = (ROOT..).zip(&self.roots);
            let of_roots = of_roots
                .filter(|(_, root)| root.0 == phase)
                .map(|(number, _)| number);
            let holders: Vec<u64> = of_roots.chain(all.iter().copied()).collect();
            let mut depths: BTreeMap<u64, Vec<(usize, u64)>> = BTreeMap::new();
            for &holder in &holders {
                let still = self.reached(phase, &earlier, holder);
                let retained: BTreeSet<u64> = all.difference(&still).copied().collect();
                let sum: u64 = retained
                    .iter()
                    .map(|object| objects.size(number(*object)))
                    .sum();
                let vertex = match holder {
                    0..4096 => Some(graph.roots[(holder - ROOT) as usize].0),
                    address => match graph.places[number(address) as usize].kind() {
                        Kind::Vertex(vertex) => Some(vertex),
                        _ => None,
                    },
                };
                if let Some(vertex) = vertex {
                    assert_eq!(
                        u64::from(retained_by[vertex as usize]) * 8,
                        sum,
                        "of {holder:#x}"
                    );
                }
                for object in retained.into_iter().filter(|object| *object != holder) {
                    depths
                        .entry(object)
                        .or_default()
                        .push((still.len(), holder));
                }
            }
            for object in &all {
                // The nearest of the dominators retains least, so most is still reached without it.
                let nearest = depths.get(object).and_then(|of| of.iter().max());
                let place = graph.places[number(*object) as usize].kind();
                let dominator = match place {
                    Kind::Vertex(vertex) => found.immediate[vertex as usize],
                    Kind::Leaf(holder) => holder,
                    Kind::Shared(row) => found.shared[row as usize],
                    Kind::Unreached | Kind::Reserved => panic!("{object:#x} was not reached"),
                };
                let expected = match nearest {
                    None => TOP,
                    Some((_, root @ 0..4096)) => graph.roots[(root - ROOT) as usize].0,
                    Some((_, address)) => {
                        let Kind::Vertex(vertex) = graph.places[number(*address) as usize].kind()
                        else {
                            panic!("{address:#x} has no vertex");
                        };
                        vertex
                    }
                };
                assert_eq!(dominator, expected, "of {object:#x}, which is {place:?}");
            }
            earlier.extend(all);
        }
    }
}

fn root((phase, held): &(Phase, Vec<u64>)) -> Root {
    Root {
        phase: *phase,
        name: "root".to_owned(),
        own: Vec::new(),
        held: held.clone(),
        takes_lazy: false,
    }
}

#[test]
fn dominators_of_random_graphs_are_those_of_the_definition() {
    for seed in 0..2000 {
        let case = Case::random(&mut Random::new(seed));
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case.check()));
        assert!(checked.is_ok(), "the graph with seed {seed}");
    }
}

/// Reads a heap with one root that holds one object.
fn retained_and_depth(mut heap: FakeHeap, held: u64, last: u64) -> (u64, u32) {
    heap.finish();
    let objects = Objects::read(&mut heap.view(), &heap.lists, heap.known.nil).unwrap();
    let roots = [root(&(Phase::Names, vec![held]))];
    let (graph, parents) = walk(&objects, &Symbols::default(), &roots).unwrap();
    let found = Dominators::find(&graph, parents).unwrap();
    let place = graph.places[objects.number(last).unwrap() as usize].kind();
    let mut vertex = match place {
        Kind::Vertex(vertex) => found.immediate[vertex as usize],
        Kind::Leaf(holder) => holder,
        Kind::Shared(row) => found.shared[row as usize],
        _ => panic!("it was not reached"),
    };
    let mut depth = 0;
    while vertex != TOP {
        vertex = found.immediate[vertex as usize];
        depth += 1;
    }
    let retained = found.retained(&graph, &objects).unwrap();
    (u64::from(retained[graph.roots[0].0 as usize]) * 8, depth)
}

#[test]
fn a_deep_chain_is_as_deep_as_it_is_long() {
    let mut heap = FakeHeap::new();
    let last = heap.real(1);
    let mut first = last;
    for _ in 0..200_000 {
        first = heap.list(&[first]);
    }
    assert_eq!(
        retained_and_depth(heap, first, last),
        (200_001 * 56, 200_001)
    );
}

#[test]
fn what_a_wide_fan_shares_belongs_to_its_holder() {
    let mut heap = FakeHeap::new();
    let last = heap.real(1);
    let all: Vec<u64> = (0..100_000).map(|_| heap.list(&[last])).collect();
    let first = heap.list(&all);
    let sum = 100_001 * 56 + 48 + 800_000;
    assert_eq!(retained_and_depth(heap, first, last), (sum, 2));
}

#[test]
fn references_back_change_no_dominator() {
    let mut heap = FakeHeap::new();
    let nil = heap.known.nil;
    let last = heap.list(&[nil]);
    let mut next = last;
    for _ in 0..20_000 {
        let list = heap.list(&[next, nil]);
        heap.set(next, 48 + if next == last { 0 } else { 8 }, list);
        next = list;
    }
    assert_eq!(retained_and_depth(heap, next, last).1, 20_001);
}
