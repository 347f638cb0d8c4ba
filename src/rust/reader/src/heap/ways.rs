//! The shortest ways from a dominator to an object that has several holders.
//!
//! The search goes backwards, from the object to its holders. Means, such as the cells of a list, do not count.

use super::graph::{Edge, Graph, NONE, TOP, Vertex};
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
    objects: &'w Objects<'m>,
    /// How many vertices may still be looked at.
    left: usize,
    /// For each vertex that was seen: the next one on the way to the object; 0 for its holders.
    seen: HashMap<Vertex, Vertex, foldhash::fast::RandomState>,
    near: Vec<Vertex>,
    far: Vec<Vertex>,
}

impl<'w, 'm> Ways<'w, 'm> {
    pub fn new(graph: &'w Graph, objects: &'w Objects<'m>) -> Ways<'w, 'm> {
        Ways {
            graph,
            objects,
            left: graph.objects.len().saturating_mul(MOST_FOR_EACH),
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
        let graph = self.graph;
        match target {
            Target::Vertex(vertex) => {
                self.look_at(graph.parents[vertex as usize], 0, dominator, &mut ways)?;
                let (start, end) = range(&graph.edges, vertex);
                for edge in &graph.edges[start..end] {
                    self.look_at(edge.from(), 0, dominator, &mut ways)?;
                }
            }
            Target::Shared(row) => {
                let (start, end) = range(&graph.shared_edges, row);
                for edge in &graph.shared_edges[start..end] {
                    self.look_at(edge.from(), 0, dominator, &mut ways)?;
                }
            }
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
            self.look_at(graph.parents[vertex as usize], vertex, dominator, &mut ways)?;
            let (start, end) = range(&graph.edges, vertex);
            for edge in &graph.edges[start..end] {
                self.look_at(edge.from(), vertex, dominator, &mut ways)?;
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
        let object = self.graph.objects[holder as usize];
        if object == NONE {
            return ways.try_push(self.way(holder)?);
        }
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

/// The range of edges to a vertex.
fn range(edges: &[Edge], to: u32) -> (usize, usize) {
    let start = edges.partition_point(|edge| edge.to() < to);
    let end = edges.partition_point(|edge| edge.to() <= to);
    (start, end)
}
