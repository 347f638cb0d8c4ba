//! The prefix tree of stacks: a node for each distinct path of calls from the outermost frame on.

use crate::collections::next_row;
use crate::error::Result;
use crate::limits::memory::{TryGrow, TryPut};
use crate::model::LocationId;
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The parent of the outermost nodes.
pub const ROOT: u32 = u32::MAX;

/// The nodes in the order in which they were found: callers precede their callees.
#[derive(Default)]
pub struct Paths {
    nodes: Vec<Path>,
    /// By parent and group.
    rows: HashMap<(u32, u32), u32, RandomState>,
    /// The locations of the stack that was added last, with their nodes, outermost first.
    /// Consecutive stacks have most of their outer frames in common.
    last: Vec<(LocationId, u32)>,
    /// Whether a call within a group is the same node as its caller.
    merged: bool,
}

/// A node: the path of its parent, and one more frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    pub parent: u32,
    /// Frames of the same group that have the same parent are one node.
    pub group: u32,
}

impl Paths {
    /// A tree in which calls within a group are one node.
    pub fn merged() -> Paths {
        Paths {
            merged: true,
            ..Paths::default()
        }
    }

    /// Adds a stack, outermost frame first. `groups` contains the group of each location. Returns
    /// the node of the whole stack; `None` if it is empty.
    pub fn add(
        &mut self,
        frames: impl Iterator<Item = LocationId> + Clone,
        groups: &[u32],
    ) -> Result<Option<u32>> {
        let both = self.last.iter().zip(frames.clone());
        let common = both.take_while(|((last, _), frame)| last == frame).count();
        self.last.truncate(common);
        for location in frames.skip(common) {
            let parent = self.last.last().map_or(ROOT, |&(_, node)| node);
            let group = groups[location.row()];
            let node = match self.nodes.get(parent as usize) {
                Some(caller) if self.merged && caller.group == group => parent,
                _ => self.node(parent, group)?,
            };
            self.last.try_push((location, node))?;
        }
        Ok(self.last.last().map(|&(_, node)| node))
    }

    fn node(&mut self, parent: u32, group: u32) -> Result<u32> {
        if let Some(&node) = self.rows.get(&(parent, group)) {
            return Ok(node);
        }
        let node = next_row(self.nodes.len(), "paths")?;
        self.rows.try_put((parent, group), node)?;
        self.nodes.try_push(Path { parent, group })?;
        Ok(node)
    }

    pub fn nodes(&self) -> &[Path] {
        &self.nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_paths_are_one_node() {
        let mut paths = Paths::default();
        // Locations 2 and 3 are in the same group.
        let groups = [7, 8, 9, 9];
        let mut add = |frames: &[u32]| {
            let outermost_first = frames.iter().rev().map(|&row| LocationId(row));
            paths.add(outermost_first, &groups).unwrap()
        };
        assert_eq!(add(&[]), None);
        assert_eq!(add(&[1, 0]), Some(1));
        assert_eq!(add(&[2, 0]), Some(2));
        assert_eq!(add(&[3, 0]), Some(2));
        assert_eq!(add(&[0]), Some(0));
        assert_eq!(add(&[0, 0]), Some(3));
        assert_eq!(add(&[1]), Some(4));
        assert_eq!(add(&[]), None);
        let found: Vec<_> = paths.nodes().iter().map(|n| (n.parent, n.group)).collect();
        assert_eq!(found, [(ROOT, 7), (0, 8), (0, 9), (0, 7), (ROOT, 8)]);
    }
}
