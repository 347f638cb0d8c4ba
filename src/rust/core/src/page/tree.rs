//! The call tree of a page: a node for each path of frames, in preorder, and the names of the
//! frames.
//!
//! Frames are the same if function, line and kind are the same, and in heap snapshots also the name
//! that they have in common with their siblings. The page itself groups them, by function or line.
//! Only frames and functions in stacks of samples get a row, in the order of the nodes.

use crate::analysis::frame_names::{self, FrameNames};
use crate::analysis::frameworks::Frameworks;
use crate::analysis::keys::{ALIKE, push_pattern};
use crate::analysis::packages::package_of;
use crate::analysis::paths::{Paths, ROOT};
use crate::collections::{Interner, Lists, TextList, add};
use crate::error::Result;
use crate::limits::cancel::{self, ROWS, Stop};
use crate::limits::memory::{TryCollect, TryGrow, copied, filled, with_room, written};
use crate::model::heap::SNAPSHOT;
use crate::model::{FrameType, LocationId, Profile, StringId};
use crate::tables::{Plumbing, Position};

#[derive(Default)]
pub struct Tree {
    /// Distinct texts; the first is empty.
    pub strings: Interner<TextList>,
    pub functions: Vec<Function>,
    pub frames: Vec<Frame>,
    /// The depth of each node except the root, counted from 1, and its frame.
    pub depths: Vec<u32>,
    pub frame_of_node: Vec<u32>,
    /// The node of each stack. Empty stacks have the root, which is node 0.
    pub node_of_stack: Vec<u32>,
    /// The nodes that frameworks add, in ascending order.
    pub plumbing: Vec<u32>,
}

/// Name, file and package are rows of the strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    pub name: u32,
    pub file: u32,
    pub line: i64,
    pub package: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    pub function: u32,
    pub line: i32,
    pub kind: u32,
    /// The address as text, if it has no symbol.
    pub address: u32,
    /// The name that it has in common with its siblings, see [`alike`].
    pub alike: u32,
}

/// The same with the names of frames and the strings of the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FunctionKey<'p> {
    name: u32,
    file: Option<StringId>,
    line: i64,
    package: Option<&'p str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FrameKey {
    /// The row of the function's key.
    function: u32,
    line: i32,
    kind: Option<FrameType>,
    /// 0 if it has a symbol.
    address: u64,
}

impl Tree {
    pub fn new(profile: &Profile, stop: Stop) -> Result<Tree> {
        let keys = Keys::new(profile)?;
        let mut paths = Paths::default();
        let used = used_stacks(profile, stop)?;
        let mut node_of_stack = filled(profile.stacks.len(), None)?;
        let mut space = Vec::new();
        for (stack, node) in profile.stacks.ids().zip(&mut node_of_stack) {
            if stack.row() % ROWS == 0 {
                cancel::check(stop)?;
            }
            if used[stack.row()] {
                let frames = profile.stacks.get(stack).unpacked(&mut space)?;
                *node = paths.add(frames.iter().rev().copied(), &keys.of_location)?;
            }
        }
        let mut tree = Tree::default();
        tree.strings.intern("")?;
        let callees = callees(&paths)?;
        let alike = if profile.sources.iter().any(|source| source.kind == SNAPSHOT) {
            alike(&paths, &callees, &keys, &mut tree.strings, stop)?
        } else {
            filled(paths.nodes().len(), 0)?
        };
        let new = tree.add_nodes(&paths, &callees, stop)?;
        let mut alike_of_node = filled(alike.len(), 0)?;
        for (&node, alike) in new.iter().zip(alike) {
            alike_of_node[node as usize - 1] = alike;
        }
        let new = |node: Option<u32>| node.map_or(0, |node| new[node as usize]);
        tree.node_of_stack = node_of_stack.into_iter().map(new).try_vec()?;
        tree.find_plumbing(&Frameworks::new(profile)?, &keys)?;
        tree.add_names(profile, &keys, &alike_of_node)?;
        Ok(tree)
    }

    /// Adds the nodes in preorder, with their groups as frames. Returns the new row of each.
    fn add_nodes(&mut self, paths: &Paths, callees: &Lists<u32>, stop: Stop) -> Result<Vec<u32>> {
        let nodes = paths.nodes();
        self.depths = with_room(nodes.len())?;
        self.frame_of_node = with_room(nodes.len())?;
        let mut new = filled(nodes.len(), 0)?;
        // Nodes that are still to be visited, the next one last, and their depths.
        let mut open: Vec<(u32, u32)> = Vec::new();
        let mut last = Some((ROOT, 0));
        while let Some((node, depth)) = last {
            let first = open.len();
            let callees = callees.get(list_of(node)).iter();
            open.try_extend_from(callees.map(|&callee| (callee, depth + 1)))?;
            open[first..].reverse();
            last = open.pop();
            if let Some((node, depth)) = last {
                if self.depths.len() % ROWS == 0 {
                    cancel::check(stop)?;
                }
                self.depths.try_push(depth)?;
                let group = nodes[node as usize].group;
                self.frame_of_node.try_push(group)?;
                new[node as usize] = self.depths.len() as u32;
            }
        }
        Ok(new)
    }

    /// Finds the nodes that frameworks add. The frames of nodes are groups.
    fn find_plumbing(&mut self, frameworks: &Frameworks, keys: &Keys) -> Result<()> {
        // The position below each node of the current path.
        let mut path = Vec::new();
        path.try_push(Position::default())?;
        for (node, (&depth, &group)) in (1..).zip(self.depths.iter().zip(&self.frame_of_node)) {
            path.truncate(depth as usize);
            let mut position = path.last().copied().unwrap_or_default();
            if !frameworks.shows(keys.location_of[group as usize], &mut position) {
                self.plumbing.try_push(node)?;
            }
            path.try_push(position)?;
        }
        Ok(())
    }

    /// Replaces the groups of nodes by frames, which are numbered by their first nodes.
    fn add_names(&mut self, profile: &Profile, keys: &Keys, alike_of_node: &[u32]) -> Result<()> {
        let mut frames: Interner<Vec<(u32, u32)>> = Interner::default();
        let mut functions = filled(keys.functions.len(), None)?;
        let mut groups = std::mem::take(&mut self.frame_of_node);
        for (group, &alike) in groups.iter_mut().zip(alike_of_node) {
            let frame = frames.intern((*group, alike))?;
            if frame as usize == self.frames.len() {
                let key = keys.frames.get(*group);
                self.add_frame(key, alike, &mut functions, profile, keys)?;
            }
            *group = frame;
        }
        self.frame_of_node = groups;
        Ok(())
    }

    /// `functions`: the new rows of functions that were added before.
    fn add_frame(
        &mut self,
        key: FrameKey,
        alike: u32,
        functions: &mut [Option<u32>],
        profile: &Profile,
        keys: &Keys,
    ) -> Result<()> {
        let known = &mut functions[key.function as usize];
        let function = match *known {
            Some(function) => function,
            None => self.add_function(keys.functions.get(key.function), profile, keys)?,
        };
        *known = Some(function);
        let address = match key.address {
            0 => 0,
            address => {
                let text = written(format_args!("{address:#x}"))?;
                self.strings.intern(&text)?
            }
        };
        let kind = key.kind.map_or("", |kind| profile.strings.get(kind.text()));
        let frame = Frame {
            function,
            line: key.line,
            kind: self.strings.intern(kind)?,
            address,
            alike,
        };
        self.frames.try_push(frame)
    }

    fn add_function(&mut self, key: FunctionKey, profile: &Profile, keys: &Keys) -> Result<u32> {
        let text = |id: Option<StringId>| id.map_or("", |id| profile.strings.get(id));
        let function = Function {
            name: self.strings.intern(keys.names.get(key.name))?,
            file: self.strings.intern(text(key.file))?,
            line: key.line,
            package: self.strings.intern(key.package.unwrap_or_default())?,
        };
        add(&mut self.functions, function)
    }
}

/// The list of a node's callees in [`callees`].
fn list_of(node: u32) -> usize {
    node.wrapping_add(1) as usize
}

/// The outermost nodes come first, then the callees of each node.
fn callees(paths: &Paths) -> Result<Lists<u32>> {
    let nodes = paths.nodes();
    Lists::grouped(
        nodes.len() + 1,
        nodes.iter().map(|node| list_of(node.parent)),
    )
}

/// For each node, the name that it has in common with its siblings, if there are many that differ in a key only:
/// `$key* (20)`. 0 for none. Siblings are compared below nodes that are shown as one.
fn alike(
    paths: &Paths,
    callees: &Lists<u32>,
    keys: &Keys,
    strings: &mut Interner<TextList>,
    stop: Stop,
) -> Result<Vec<u32>> {
    let mut patterns: Interner<TextList> = Interner::default();
    // By frame, its pattern and its name.
    let mut names: Vec<(u32, u32)> = Vec::new();
    for frame in keys.frames.iter() {
        let name = keys.functions.get(frame.function).name;
        let mut pattern = String::new();
        push_pattern(&mut pattern, keys.names.get(name))?;
        names.try_push((patterns.intern(&pattern)?, name))?;
    }
    let name = |node: u32| names[paths.nodes()[node as usize].group as usize];
    let mut alike = filled(paths.nodes().len(), 0)?;
    let mut open = Vec::new();
    open.try_push(copied(callees.get(list_of(ROOT)))?)?;
    let mut visited = 0;
    while let Some(mut siblings) = open.pop() {
        siblings.sort_unstable_by_key(|&node| name(node));
        for similar in siblings.chunk_by(|&a, &b| name(a).0 == name(b).0) {
            let count = similar.chunk_by(|&a, &b| name(a) == name(b)).count();
            let mut shown_as_one = |nodes: &[u32]| {
                let mut below = Vec::new();
                for &node in nodes {
                    visited += 1;
                    cancel::at_row(visited, stop)?;
                    below.try_extend(callees.get(list_of(node)))?;
                }
                open.try_push(below)
            };
            if count > ALIKE {
                let pattern = patterns.get(name(similar[0]).0);
                let text = strings.intern(&written(format_args!("{pattern} ({count})"))?)?;
                similar.iter().for_each(|&node| alike[node as usize] = text);
                shown_as_one(similar)?;
            } else {
                similar
                    .chunk_by(|&a, &b| name(a) == name(b))
                    .try_for_each(shown_as_one)?;
            }
        }
    }
    Ok(alike)
}

/// The distinct functions and frames of all locations.
struct Keys<'p> {
    names: FrameNames,
    functions: Interner<Vec<FunctionKey<'p>>>,
    frames: Interner<Vec<FrameKey>>,
    of_location: Vec<u32>,
    /// A location of each frame.
    location_of: Vec<LocationId>,
}

impl<'p> Keys<'p> {
    fn new(profile: &'p Profile) -> Result<Keys<'p>> {
        let mut keys = Keys {
            names: FrameNames::new(profile)?,
            functions: Interner::default(),
            frames: Interner::default(),
            of_location: with_room(profile.locations.len())?,
            location_of: Vec::new(),
        };
        for (id, location) in profile.locations.ids().zip(profile.locations.iter()) {
            let function = profile.function_of(id);
            let function = FunctionKey {
                name: keys.names.row(id),
                file: frame_names::file(profile, id),
                line: function.map_or(0, |function| function.start_line),
                package: package_of(profile, id),
            };
            let key = FrameKey {
                function: keys.functions.intern(function)?,
                line: location.line_for_r(),
                kind: location.frame_type,
                address: keys.names.address(profile, id),
            };
            let frame = keys.frames.intern(key)?;
            if frame as usize == keys.location_of.len() {
                keys.location_of.try_push(id)?;
            }
            keys.of_location.try_push(frame)?;
        }
        Ok(keys)
    }
}

/// For each stack, whether a sample has it.
fn used_stacks(profile: &Profile, stop: Stop) -> Result<Vec<bool>> {
    let mut used = filled(profile.stacks.len(), false)?;
    for (row, stack) in profile.samples.stack.iter().enumerate() {
        if row % ROWS == 0 {
            cancel::check(stop)?;
        }
        used[stack.row()] = true;
    }
    Ok(used)
}
