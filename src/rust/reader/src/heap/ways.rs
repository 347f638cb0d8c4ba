//! The shortest ways from a dominator to an object that has several holders.
//!
//! The search goes backwards, from the object to its holders. Means, such as the cells of a list, do not count.

use super::dominators::Dominators;
use super::graph::{Graph, TOP, Vertex};
use super::objects::Objects;
use super::steps::is_means;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut};
use std::collections::HashMap;

/// The most vertices that are looked at for one object, and for all of them for each vertex of the graph. An object with
/// more holders may have a way that is not the shortest one, or only a name.
const MOST: usize = 20_000;
const MOST_FOR_EACH: usize = 4;

/// An object that refers to nothing has no vertex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Vertex(Vertex),
    /// A shared leaf.
    Shared(u32),
}

pub struct Ways<'w, 'm> {
    graph: &'w Graph,
    dominators: &'w Dominators,
    objects: &'w Objects<'m>,
    /// How many vertices may still be looked at.
    left: usize,
    /// For each vertex that was seen: the next one on the way to the object; 0 for its holders.
    seen: HashMap<Vertex, Vertex, foldhash::fast::RandomState>,
    near: Vec<Vertex>,
    far: Vec<Vertex>,
}

impl<'w, 'm> Ways<'w, 'm> {
    pub fn new(
        graph: &'w Graph,
        dominators: &'w Dominators,
        objects: &'w Objects<'m>,
    ) -> Ways<'w, 'm> {
        Ways {
            graph,
            dominators,
            objects,
            left: graph.count.saturating_mul(MOST_FOR_EACH),
            seen: HashMap::default(),
            near: Vec::new(),
            far: Vec::new(),
        }
    }

    /// The vertices on a way from the dominator to the holder of the object, without the dominator. If several roots hold
    /// the object, so that no object dominates it, there are two ways, which begin with a root.
    pub fn find(&mut self, target: Target, dominator: Vertex) -> Result<Vec<Vec<Vertex>>> {
        let mut ways = Vec::new();
        self.seen.clear();
        self.near.clear();
        self.far.clear();
        let (graph, dominators) = (self.graph, self.dominators);
        let holders = match target {
            Target::Vertex(vertex) => dominators.holders(graph, vertex),
            Target::Shared(row) => graph.shared.of(row),
        };
        for &holder in holders {
            self.look_at(holder, 0, dominator, &mut ways)?;
        }
        let wanted = if dominator == TOP { 2 } else { 1 };
        let mut seen = 0;
        while ways.len() < wanted && seen < MOST && self.left > 0 {
            if self.near.is_empty() {
                std::mem::swap(&mut self.near, &mut self.far);
                // In the order in which they were found.
                self.near.reverse();
            }
            let Some(vertex) = self.near.pop() else {
                break;
            };
            seen += 1;
            self.left -= 1;
            for &holder in dominators.holders(graph, vertex) {
                self.look_at(holder, vertex, dominator, &mut ways)?;
            }
        }
        // All holders of a vertex are looked at. There may be many, such as the calls of a recursive function.
        ways.truncate(wanted);
        Ok(ways)
    }

    /// Looks at a holder of `next`.
    fn look_at(
        &mut self,
        holder: Vertex,
        next: Vertex,
        dominator: Vertex,
        ways: &mut Vec<Vec<Vertex>>,
    ) -> Result<()> {
        if holder == dominator {
            // The top holds roots only, and a root is the start of a way of its own.
            return ways.try_push(self.way(next)?);
        }
        if self.seen.contains_key(&holder) {
            return Ok(());
        }
        self.seen.try_put(holder, next)?;
        let Some(object) = self.dominators.object(holder) else {
            return ways.try_push(self.way(holder)?);
        };
        if is_means(self.objects.node(object).type_()) {
            self.near.try_push(holder)
        } else {
            self.far.try_push(holder)
        }
    }

    fn way(&self, from: Vertex) -> Result<Vec<Vertex>> {
        let mut way = Vec::new();
        let mut vertex = from;
        while vertex != 0 {
            way.try_push(vertex)?;
            vertex = self.seen.get(&vertex).copied().unwrap_or(0);
        }
        Ok(way)
    }
}
