//! Dominators: the holder of an object without which nothing would hold it, which is therefore what to look at.
//!
//! The algorithm is SEMI-NCA (Georgiadis: Linear-Time Algorithms for Dominators and Related Problems, 2005). Objects
//! with one holder need none of its work: their dominator is this holder.

use super::graph::{Graph, Kind, NONE, TOP, Vertex};
use super::objects::Objects;
use profile_core::error::Result;
use profile_core::limits::memory::{TryCollect, TryGrow, copied, filled};

/// The vertices of a graph: their objects and dominators.
pub struct Dominators {
    /// The object of each vertex. They are found from the places of objects, so that they take no memory before.
    objects: Vec<u32>,
    /// For each vertex. It has a lower number than the vertex.
    pub immediate: Vec<Vertex>,
    /// For each shared leaf of the graph.
    pub shared: Vec<Vertex>,
}

/// Sizes are in units of 8 bytes; this one stands for more.
const MOST_RETAINED: u32 = u32::MAX >> 1;

impl Dominators {
    /// `parents` has for each vertex the one from which it was found.
    pub fn find(graph: &Graph, parents: Vec<Vertex>) -> Result<Dominators> {
        let immediate = immediate_dominators(graph, parents)?;
        let shared = shared_dominators(graph, &immediate)?;
        Ok(Dominators {
            objects: graph.objects()?,
            immediate,
            shared,
        })
    }

    /// The object of a vertex; `None` for the top and roots.
    pub fn object(&self, vertex: Vertex) -> Option<u32> {
        Some(self.objects[vertex as usize]).filter(|object| *object != NONE)
    }

    /// All holders of a vertex, first the one from which it was found. A vertex with one holder is dominated by it.
    pub fn holders<'g>(&'g self, graph: &'g Graph, vertex: Vertex) -> &'g [Vertex] {
        match graph.holders.of(vertex) {
            [] => std::slice::from_ref(&self.immediate[vertex as usize]),
            several => several,
        }
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

    /// For each vertex: the size of all objects that it dominates, including itself, in units of 8 bytes.
    pub fn retained(&self, graph: &Graph, objects: &Objects) -> Result<Vec<u32>> {
        let mut retained = filled(graph.count, 0_u32)?;
        let mut add = |vertex: Vertex, size: u32| {
            let sum = &mut retained[vertex as usize];
            *sum = sum.saturating_add(size).min(MOST_RETAINED);
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
        for vertex in (TOP + 1..graph.count as u32).rev() {
            let size = retained[vertex as usize];
            let sum = &mut retained[self.immediate[vertex as usize] as usize];
            *sum = sum.saturating_add(size).min(MOST_RETAINED);
        }
        Ok(retained)
    }
}

/// The immediate dominator of each vertex.
fn immediate_dominators(graph: &Graph, parents: Vec<Vertex>) -> Result<Vec<Vertex>> {
    let mut ancestors = copied(&parents)?;
    // The lowest semidominator on the path to the ancestor.
    let mut lowest = filled(graph.count, 0)?;
    // The semidominators of vertices with several holders, in descending order of the vertices.
    let mut semidominators = Vec::new();
    let mut several = graph.holders.all().rev().peekable();
    let mut path = Vec::new();
    for vertex in (TOP + 1..graph.count as u32).rev() {
        let mut semidominator = parents[vertex as usize];
        if let Some((_, holders)) = several.next_if(|row| row.0 == vertex) {
            for &holder in holders {
                let candidate = if holder <= vertex {
                    holder
                } else {
                    lowest_above(vertex, holder, &mut ancestors, &mut lowest, &mut path)?
                };
                semidominator = semidominator.min(candidate);
            }
            semidominators.try_push((vertex, semidominator))?;
        }
        lowest[vertex as usize] = semidominator;
    }
    let mut dominators = lowest;
    let mut semidominators = semidominators.iter().rev().peekable();
    dominators[TOP as usize] = 0;
    for vertex in TOP + 1..graph.count as u32 {
        let mut dominator = parents[vertex as usize];
        if let Some(&(_, semidominator)) = semidominators.next_if(|row| row.0 == vertex) {
            while dominator > semidominator {
                dominator = dominators[dominator as usize];
            }
        }
        dominators[vertex as usize] = dominator;
    }
    Ok(dominators)
}

/// The dominator of a leaf with several holders is their common dominator.
fn shared_dominators(graph: &Graph, immediate: &[Vertex]) -> Result<Vec<Vertex>> {
    let tree = Tree::new(immediate)?;
    let common = graph.shared.all().map(|(_, holders)| {
        let holders = holders.iter().copied();
        let common = holders.reduce(|one, other| tree.common(immediate, one, other));
        common.unwrap_or(TOP)
    });
    common.try_vec()
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

#[cfg(test)]
mod tests;
