//! The paths of what retains objects, as a tree: each step is there once below the step before.

use super::steps::Kind;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut};
use std::collections::HashMap;

/// The number of a path. 0 is the one without steps.
pub type PathId = u32;
pub const EMPTY: PathId = 0;

/// The most steps of a path, with the root and without the type.
const DEEPEST: u32 = 58;
/// The most paths: numbers of paths have 28 bits in [`super::naming`].
const MOST: usize = 1 << 28;
/// How many of the last steps are compared with a new one, to find recursion.
const RECURSION: usize = 8;

/// The last step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node {
    /// The path before.
    pub up: PathId,
    pub kind: Kind,
    /// The address of the name, 0 if there is none; or the number of the text.
    pub name: u64,
    /// The class of the object, see [`super::steps::class_of`].
    pub class: u64,
    /// Whether the step has a text, as roots and steps to objects with several holders do.
    pub has_text: bool,
}

#[derive(Debug, Default)]
pub struct Paths {
    pub nodes: Vec<Node>,
    depths: Vec<u32>,
    numbers: HashMap<Node, PathId, foldhash::fast::RandomState>,
}

impl Paths {
    pub fn new() -> Result<Paths> {
        let mut paths = Paths::default();
        paths.nodes.try_push(Node {
            up: EMPTY,
            kind: Kind::Root,
            name: 0,
            class: 0,
            has_text: true,
        })?;
        paths.depths.try_push(0)?;
        Ok(paths)
    }

    /// The path with one more step. A step that equals one of the last steps leads back to it, so that lists of lists do
    /// not become endless paths.
    pub fn enter(&mut self, node: Node) -> Result<PathId> {
        let mut id = node.up;
        for _ in 0..RECURSION {
            let last = self.nodes[id as usize];
            if last.kind == Kind::Root {
                break;
            }
            let is_same = Node {
                up: node.up,
                ..last
            } == node;
            if is_same && node.kind != Kind::Attribute {
                return Ok(id);
            }
            id = last.up;
        }
        let depth = self.depths[node.up as usize] + 1;
        if depth > DEEPEST {
            return Ok(node.up);
        }
        if let Some(&id) = self.numbers.get(&node) {
            return Ok(id);
        }
        if self.nodes.len() >= MOST {
            return Ok(node.up);
        }
        let id = self.nodes.len() as PathId;
        self.nodes.try_push(node)?;
        self.depths.try_push(depth)?;
        self.numbers.try_put(node, id)?;
        Ok(id)
    }

    /// The paths from the last step to the first one.
    pub fn upwards(&self, id: PathId) -> impl Iterator<Item = Node> + '_ {
        let mut id = id;
        std::iter::from_fn(move || {
            let node = self.nodes.get(id as usize).filter(|_| id != EMPTY)?;
            id = node.up;
            Some(*node)
        })
    }
}
