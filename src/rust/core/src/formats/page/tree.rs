//! The call tree of a page: functions, frames, and nodes in preorder.

use super::numbers::{column, deltas, refer, row, same_length};
use crate::error::Result;
use crate::formats::json_file::{Reader, fields};
use crate::limits::memory::{TryGrow, filled};
use crate::message;
use crate::model::{Function, Location, LocationId, Profile, StackId, StringId};

/// The columns as they are in the file; rows refer to each other.
#[derive(Default)]
pub struct Tree {
    pub strings: Vec<StringId>,
    name: Vec<f64>,
    file: Vec<f64>,
    start: Vec<f64>,
    package: Vec<f64>,
    function: Vec<f64>,
    line: Vec<f64>,
    kind: Vec<f64>,
    depth: Vec<f64>,
    frame: Vec<f64>,
}

impl Tree {
    pub fn read_functions(&mut self, json: &mut Reader) -> Result<()> {
        fields! { json,
            "name" => self.name = column(json)?,
            "file" => self.file = column(json)?,
            "line" => self.start = column(json)?,
            "package" => self.package = column(json)?,
        }
        Ok(())
    }

    pub fn read_frames(&mut self, json: &mut Reader) -> Result<()> {
        fields! { json,
            "function" => self.function = column(json)?,
            "line" => self.line = column(json)?,
            "kind" => self.kind = column(json)?,
        }
        Ok(())
    }

    pub fn read_nodes(&mut self, json: &mut Reader) -> Result<()> {
        fields! { json,
            "depth" => self.depth = deltas(json)?,
            "frame" => self.frame = column(json)?,
        }
        Ok(())
    }

    /// Adds the functions and frames to the profile, and returns the nodes.
    pub fn nodes(&self, profile: &mut Profile, json: &mut Reader) -> Result<Nodes> {
        let columns = [&*self.name, &self.file, &self.start, &self.package];
        let mut functions = Vec::new();
        for at in 0..same_length(&columns, json)? {
            let text = |column: &[f64]| refer(&self.strings, column[at], json).copied();
            let (name, file, package) =
                (text(&self.name)?, text(&self.file)?, text(&self.package)?);
            let none = profile.strings.intern("")?;
            let start = line(self.start[at]);
            let function = Function::recorded([name, none], file, start, &mut profile.strings)?;
            let has_package = !profile.strings.get(package).is_empty();
            functions.try_push(profile.functions.intern(Function {
                package: has_package.then_some(package),
                ..function
            })?)?;
        }
        let mut frames = Vec::new();
        for at in 0..same_length(&[&*self.function, &self.line, &self.kind], json)? {
            let kind = *refer(&self.strings, self.kind[at], json)?;
            frames.try_push(profile.locations.intern(Location {
                function: Some(*refer(&functions, self.function[at], json)?),
                line: Some(line(self.line[at])),
                frame_type: profile.frame_type_of_text(kind),
                ..Location::default()
            })?)?;
        }
        let count = same_length(&[&*self.depth, &self.frame], json)?;
        let mut nodes = Nodes {
            parent: Vec::new(),
            depth: Vec::new(),
            frame: Vec::new(),
            stacks: filled(count, None)?,
        };
        let mut path: Vec<u32> = Vec::new();
        for at in 0..count {
            json.check(at)?;
            // Node 0 is the root, which has no frame, and the only one at its depth.
            let is_root = at == 0;
            let depth = row(self.depth[at], path.len() + 1, json)?;
            if is_root != (depth == 0) {
                return Err(json.error(message!("The tree in the data of the page has no root.")));
            }
            path.truncate(depth);
            nodes.parent.try_push(path.last().copied().unwrap_or(0))?;
            nodes.depth.try_push(depth as u32)?;
            path.try_push(at as u32)?;
            let frame = if is_root {
                None
            } else {
                Some(*refer(&frames, self.frame[at], json)?)
            };
            nodes.frame.try_push(frame)?;
        }
        Ok(nodes)
    }
}

fn line(number: f64) -> i64 {
    crate::model::whole(number).unwrap_or(0)
}

pub struct Nodes {
    parent: Vec<u32>,
    depth: Vec<u32>,
    frame: Vec<Option<LocationId>>,
    /// The stack of each node that a sample has.
    stacks: Vec<Option<StackId>>,
}

impl Nodes {
    /// The node that a number refers to.
    pub fn node(&self, number: f64, json: &Reader) -> Result<usize> {
        row(number, self.depth.len(), json)
    }

    /// The stack of a node, and the number of its frames.
    pub fn stack(
        &mut self,
        node: usize,
        profile: &mut Profile,
        json: &mut Reader,
    ) -> Result<(StackId, usize)> {
        let depth = self.depth[node] as usize;
        if let Some(stack) = self.stacks[node] {
            return Ok((stack, depth));
        }
        json.take(depth * size_of::<LocationId>())?;
        let mut stack = Vec::new();
        let mut at = node;
        while let Some(frame) = self.frame[at] {
            stack.try_push(frame)?;
            at = self.parent[at] as usize;
        }
        let id = profile.stacks.intern(&stack)?;
        self.stacks[node] = Some(id);
        Ok((id, depth))
    }
}
