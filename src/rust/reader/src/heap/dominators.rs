//! Dominators: the holder of an object without which nothing would hold it, which is therefore what to look at.
//!
//! The algorithm is SEMI-NCA (Georgiadis: Linear-Time Algorithms for Dominators and Related Problems, 2005). Objects
//! with one holder need none of its work: their dominator is this holder.

use super::graph::{Graph, Kind, NONE, TOP, Vertex};
use super::objects::Objects;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, copied, filled};

/// The dominators, and what they retain.
pub struct Dominators {
    /// For each vertex. It has a lower number than the vertex.
    pub immediate: Vec<Vertex>,
    /// For each shared leaf of the graph.
    pub shared: Vec<Vertex>,
    /// For each vertex: the size of all objects that it dominates, including itself, in units of 8 bytes; the largest
    /// number stands for more.
    retained: Vec<u32>,
}

impl Dominators {
    pub fn find(graph: &Graph, objects: &Objects) -> Result<Dominators> {
        let mut found = Dominators {
            immediate: immediate_dominators(graph)?,
            shared: Vec::new(),
            retained: Vec::new(),
        };
        found.find_shared(graph)?;
        found.retain(graph, objects)?;
        Ok(found)
    }

    pub fn retained(&self, vertex: Vertex) -> u64 {
        u64::from(self.retained[vertex as usize]) * 8
    }

    /// The dominator of an object, if it has been reached.
    pub fn dominator(&self, place: Kind) -> Option<Vertex> {
        match place {
            Kind::Vertex(vertex) => Some(self.immediate[vertex as usize]),
            Kind::Leaf(holder) => Some(holder),
            Kind::Shared(row) => Some(self.shared[row as usize]),
            Kind::Unreached | Kind::Reserved => None,
        }
    }

    /// The dominator of a leaf with several holders is their common dominator.
    fn find_shared(&mut self, graph: &Graph) -> Result<()> {
        let tree = Tree::new(&self.immediate)?;
        let mut edges = graph.shared_edges.iter();
        let mut next = edges.next();
        for row in 0..graph.shared.len() as u32 {
            let mut common = None;
            while let Some(edge) = next.filter(|edge| edge.to() == row) {
                let holder = edge.from();
                common = Some(
                    common.map_or(holder, |other| tree.common(&self.immediate, other, holder)),
                );
                next = edges.next();
            }
            self.shared.try_push(common.unwrap_or(TOP))?;
        }
        Ok(())
    }

    fn retain(&mut self, graph: &Graph, objects: &Objects) -> Result<()> {
        let mut retained = filled(self.immediate.len(), 0_u32)?;
        let mut add = |vertex: Vertex, size: u32| {
            let sum = &mut retained[vertex as usize];
            *sum = sum.saturating_add(size);
        };
        let size = |object| u32::try_from(objects.size(object) / 8).unwrap_or(u32::MAX);
        for (object, place) in graph.places.iter().enumerate() {
            let object = object as u32;
            match place.kind() {
                Kind::Vertex(vertex) | Kind::Leaf(vertex) => add(vertex, size(object)),
                Kind::Shared(row) => add(self.shared[row as usize], size(object)),
                Kind::Unreached | Kind::Reserved => {}
            }
        }
        for vertex in (TOP + 1..self.immediate.len() as u32).rev() {
            let size = retained[vertex as usize];
            let sum = &mut retained[self.immediate[vertex as usize] as usize];
            *sum = sum.saturating_add(size);
        }
        self.retained = retained;
        Ok(())
    }
}

/// The immediate dominator of each vertex.
fn immediate_dominators(graph: &Graph) -> Result<Vec<Vertex>> {
    let count = graph.objects.len();
    let mut ancestors = copied(&graph.parents)?;
    // The lowest semidominator on the path to the ancestor.
    let mut lowest = filled(count, 0)?;
    // The semidominators of vertices with several holders, in descending order of the vertices.
    let mut semidominators = Vec::new();
    let mut edges = graph.edges.iter().rev().peekable();
    let mut path = Vec::new();
    for vertex in (TOP + 1..count as u32).rev() {
        let mut semidominator = graph.parents[vertex as usize];
        let mut has_others = false;
        while let Some(edge) = edges.next_if(|edge| edge.to() == vertex) {
            let holder = edge.from();
            let candidate = if holder <= vertex {
                holder
            } else {
                lowest_above(vertex, holder, &mut ancestors, &mut lowest, &mut path)?
            };
            semidominator = semidominator.min(candidate);
            has_others = true;
        }
        lowest[vertex as usize] = semidominator;
        if has_others {
            semidominators.try_push((vertex, semidominator))?;
        }
    }
    let mut dominators = lowest;
    let mut semidominators = semidominators.iter().rev().peekable();
    dominators[TOP as usize] = 0;
    for vertex in TOP + 1..count as u32 {
        let mut dominator = graph.parents[vertex as usize];
        if let Some(&(_, semidominator)) = semidominators.next_if(|row| row.0 == vertex) {
            while dominator > semidominator {
                dominator = dominators[dominator as usize];
            }
        }
        dominators[vertex as usize] = dominator;
    }
    Ok(dominators)
}

/// The lowest semidominator on the path from a vertex up to, but not including, its first ancestor that is not above
/// `limit`. Compresses the path.
fn lowest_above(
    limit: Vertex,
    vertex: Vertex,
    ancestors: &mut [Vertex],
    lowest: &mut [Vertex],
    path: &mut Vec<Vertex>,
) -> Result<Vertex> {
    path.clear();
    let mut top = vertex;
    while ancestors[top as usize] > limit {
        path.try_push(top)?;
        top = ancestors[top as usize];
    }
    while let Some(below) = path.pop() {
        lowest[below as usize] = lowest[below as usize].min(lowest[top as usize]);
        ancestors[below as usize] = ancestors[top as usize];
        top = below;
    }
    Ok(lowest[vertex as usize])
}

/// Finds common dominators in a number of steps that grows with the logarithm of the depth: each vertex has a second,
/// longer way up (Myers: An applicative random-access stack, 1983).
struct Tree {
    depths: Vec<u32>,
    jumps: Vec<Vertex>,
}

impl Tree {
    fn new(dominators: &[Vertex]) -> Result<Tree> {
        let mut tree = Tree {
            depths: filled(dominators.len(), 0)?,
            jumps: filled(dominators.len(), 0)?,
        };
        tree.jumps[TOP as usize] = TOP;
        for (vertex, &up) in dominators.iter().enumerate().skip(TOP as usize + 1) {
            let up = up as usize;
            tree.depths[vertex] = tree.depths[up].saturating_add(1);
            let jump = tree.jumps[up] as usize;
            let (first, second) = (
                tree.depths[up] - tree.depths[jump],
                tree.depths[jump] - tree.depths[tree.jumps[jump] as usize],
            );
            tree.jumps[vertex] = if first == second {
                tree.jumps[jump]
            } else {
                up as u32
            };
        }
        Ok(tree)
    }

    fn common(&self, dominators: &[Vertex], one: Vertex, other: Vertex) -> Vertex {
        let depth = |vertex: Vertex| self.depths[vertex as usize];
        let (mut low, mut high) = if depth(one) >= depth(other) {
            (one, other)
        } else {
            (other, one)
        };
        while depth(low) > depth(high) {
            let jump = self.jumps[low as usize];
            low = if depth(jump) >= depth(high) {
                jump
            } else {
                dominators[low as usize]
            };
        }
        while low != high {
            let (jump_low, jump_high) = (self.jumps[low as usize], self.jumps[high as usize]);
            (low, high) = if jump_low != jump_high {
                (jump_low, jump_high)
            } else {
                (dominators[low as usize], dominators[high as usize])
            };
        }
        low
    }
}

/// Whether a vertex has an object.
pub fn has_object(graph: &Graph, vertex: Vertex) -> bool {
    graph.objects[vertex as usize] != NONE
}

#[cfg(test)]
mod tests;
