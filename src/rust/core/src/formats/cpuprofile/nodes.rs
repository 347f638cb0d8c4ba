//! The tree of calls, as a list of nodes that refer to each other by their ids, or nested in each other.

use super::names::{ANONYMOUS, ROOT};
use crate::error::Result;
use crate::formats::json_file::{JsonKind, Reader, fields};
use crate::formats::problems::ProblemKind;
use crate::json::Number;
use crate::limits::memory::{TryGrow, TryPut};
use crate::message;
use crate::model::{
    Function, Location, LocationId, Profile, StackId, StringId, Strings, integer_for_r,
};
use foldhash::fast::RandomState;
use std::collections::HashMap;

const NODES: &str = "nodes";

#[derive(Debug, Clone, Copy, Default)]
struct Node {
    id: Option<u32>,
    name: Option<StringId>,
    url: Option<StringId>,
    /// Where the function starts, as in the file; `None` in nodes with a `callFrame`.
    own_line: Option<i64>,
    line: Option<i64>,
    parent: Option<u32>,
    hits: i64,
    /// Whether others refer to it, but the file does not contain it.
    is_missing: bool,
}

/// Lines that were running in the function of a node.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    pub node: u32,
    pub line: i64,
    pub ticks: i64,
}

/// A line and a column that were running in a function; 0 if they are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Place {
    pub line: i64,
    pub column: i64,
}

#[derive(Default)]
pub struct Nodes {
    rows: Vec<Node>,
    /// Rows of nodes, and the ids of their children.
    children: Vec<(u32, u32)>,
    /// Rows of nodes, and the ids of their parents.
    parents: Vec<(u32, u32)>,
    pub ticks: Vec<Ticks>,
    by_id: HashMap<u32, u32, RandomState>,
    has_missing: bool,
    stacks: HashMap<(u32, Place), StackId, RandomState>,
    /// The locations of nodes as callers, if they have occurred. Stacks have most of their callers in common.
    callers: Vec<Option<LocationId>>,
}

impl Nodes {
    /// Reads a node, and all nodes in it.
    pub fn read(&mut self, json: &mut Reader, strings: &mut Strings) -> Result<()> {
        // The nodes around the current one.
        let mut open: Vec<u32> = Vec::new();
        let mut row = self.begin(None, json)?;
        loop {
            let is_nested = match json.key()? {
                Some(key) if key.as_str() == "children" => {
                    json.begin_array()?;
                    open.try_push(row)?;
                    true
                }
                Some(key) => {
                    self.field(row, key.as_str(), json, strings)?;
                    false
                }
                None if open.is_empty() => return Ok(()),
                None => true,
            };
            // The reader is in the list of children of the innermost open node.
            while let Some(&parent) = open.last().filter(|_| is_nested) {
                if !json.element()? {
                    row = parent;
                    open.pop();
                    break;
                }
                if json.peek()? == JsonKind::Object {
                    row = self.begin(Some(parent), json)?;
                    break;
                }
                let child = id(json)?;
                self.children.try_push((parent, child))?;
            }
        }
    }

    fn begin(&mut self, parent: Option<u32>, json: &mut Reader) -> Result<u32> {
        json.begin_object()?;
        json.take(4 * size_of::<Node>())?;
        let row = crate::collections::next_row(self.rows.len(), NODES)?;
        let node = Node {
            parent,
            ..Node::default()
        };
        self.rows.try_push(node)?;
        Ok(row)
    }

    fn field(
        &mut self,
        row: u32,
        key: &str,
        json: &mut Reader,
        strings: &mut Strings,
    ) -> Result<()> {
        let node = &mut self.rows[row as usize];
        match key {
            "id" => node.id = Some(id(json)?),
            "hitCount" => node.hits = count(json)?,
            "parent" if json.peek()? != JsonKind::Word => {
                let parent = id(json)?;
                self.parents.try_push((row, parent))?;
            }
            "callFrame" => {
                fields! { json,
                    "lineNumber" => {
                        node.line = json.number_if_any()?.and_then(Number::whole);
                    },
                    "functionName" => node.name = Some(strings.intern(json.text()?)?),
                    "url" => node.url = Some(strings.intern(json.text()?)?),
                }
            }
            "functionName" => node.name = Some(strings.intern(json.text()?)?),
            "url" => node.url = Some(strings.intern(json.text()?)?),
            "lineNumber" => node.own_line = json.number_if_any()?.and_then(Number::whole),
            "positionTicks" => self.read_ticks(row, json)?,
            "selfSize" => {
                return Err(json.error(message!(
                    "This is a heap profile, which records memory. Only CPU profiles are supported."
                )));
            }
            _ => json.skip()?,
        }
        Ok(())
    }

    fn read_ticks(&mut self, node: u32, json: &mut Reader) -> Result<()> {
        if json.peek()? != JsonKind::Array {
            return json.skip();
        }
        json.begin_array()?;
        while json.element()? {
            let (mut line, mut ticks) = (0, 0);
            fields! { json,
                "line" => line = json.number()?.whole().unwrap_or(0),
                "ticks" => ticks = count(json)?,
            }
            let at = json.position() as usize;
            let line = json.problems.line_number(line, at);
            json.take(2 * size_of::<Ticks>())?;
            let ticks = Ticks { node, line, ticks };
            self.ticks.try_push(ticks)?;
        }
        Ok(())
    }

    /// Adds the nodes of another part of the same tree.
    pub fn append(&mut self, other: &Nodes) -> Result<()> {
        let first = crate::collections::next_row(self.rows.len(), NODES)?;
        for node in &other.rows {
            let parent = node.parent.map(|row| row + first);
            self.rows.try_push(Node { parent, ..*node })?;
        }
        for &(row, id) in &other.children {
            self.children.try_push((row + first, id))?;
        }
        for &(row, id) in &other.parents {
            self.parents.try_push((row + first, id))?;
        }
        for ticks in &other.ticks {
            let node = ticks.node + first;
            self.ticks.try_push(Ticks { node, ..*ticks })?;
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn rows(&self) -> impl ExactSizeIterator<Item = u32> + use<> {
        0..self.rows.len() as u32
    }

    /// The number of samples that ended in a node.
    pub fn hits(&self, row: u32) -> i64 {
        self.rows[row as usize].hits
    }

    /// Resolves ids. Nodes that are later in the file may have been added before.
    pub fn link(&mut self, json: &mut Reader) -> Result<()> {
        for (row, node) in (0..).zip(&self.rows) {
            if let Some(id) = node.id {
                if self.by_id.try_put(id, row)?.is_some() {
                    return Err(json.error(message!("Two nodes have the id {id}.")));
                }
            }
        }
        for (row, child) in std::mem::take(&mut self.children) {
            match self.by_id.get(&child) {
                Some(&child) => self.set_parent(child, row, json)?,
                // A truncated file may not have the child.
                None if json.is_truncated() => {}
                None => drop(self.find(child, json)?),
            }
        }
        for (row, parent) in std::mem::take(&mut self.parents) {
            let parent = self.find(parent, json)?;
            self.set_parent(row, parent, json)?;
        }
        Ok(())
    }

    fn set_parent(&mut self, row: u32, parent: u32, json: &Reader) -> Result<()> {
        let node = &mut self.rows[row as usize];
        match node.parent.replace(parent) {
            Some(other) if other != parent => {
                let id = node.id.unwrap_or(row);
                Err(json.error(message!("The node with the id {id} has two parents.")))
            }
            _ => Ok(()),
        }
    }

    /// The row of the node with this id. If there is none, an unknown function is added: chunks of a trace may be lost.
    pub fn find(&mut self, id: u32, json: &mut Reader) -> Result<u32> {
        if let Some(&row) = self.by_id.get(&id) {
            if self.rows[row as usize].is_missing {
                json.note(ProblemKind::MissingNode, message!("{id}").as_bytes());
            }
            return Ok(row);
        }
        json.note(ProblemKind::MissingNode, message!("{id}").as_bytes());
        json.take(4 * size_of::<Node>())?;
        let row = crate::collections::next_row(self.rows.len(), NODES)?;
        let node = Node {
            id: Some(id),
            is_missing: true,
            ..Node::default()
        };
        self.rows.try_push(node)?;
        self.by_id.try_put(id, row)?;
        self.has_missing = true;
        Ok(row)
    }

    pub fn has_missing(&self) -> bool {
        self.has_missing
    }

    /// Whether a node is the outermost one, which is no function.
    pub fn is_root(&self, row: u32, strings: &Strings) -> bool {
        let node = &self.rows[row as usize];
        node.parent.is_none() && node.name.is_some_and(|name| strings.get(name) == ROOT)
    }

    /// The stack of a node while this place in its function was running.
    pub fn stack(
        &mut self,
        row: u32,
        place: Place,
        profile: &mut Profile,
        json: &mut Reader,
    ) -> Result<StackId> {
        if let Some(&stack) = self.stacks.get(&(row, place)) {
            return Ok(stack);
        }
        let mut locations = Vec::new();
        let (mut next, mut place_of) = (Some(row), place);
        while let Some(row) = next.filter(|&row| !self.is_root(row, &profile.strings)) {
            if locations.len() > self.rows.len() {
                return Err(json.error(message!("Node {row} is among its own callers.")));
            }
            let known = self.callers.get(row as usize).copied().flatten();
            let location = match known.filter(|_| place_of == Place::default()) {
                Some(location) => location,
                None => self.location(row, place_of, profile)?,
            };
            if place_of == Place::default() {
                self.callers.try_fill(self.rows.len(), None)?;
                self.callers[row as usize] = Some(location);
            }
            locations.try_push(location)?;
            place_of = Place::default();
            next = self.rows[row as usize].parent;
        }
        json.take(2 * size_of_val(&locations[..]))?;
        let stack = profile.stacks.intern(&locations)?;
        self.stacks.try_put((row, place), stack)?;
        Ok(stack)
    }

    fn location(&self, row: u32, place: Place, profile: &mut Profile) -> Result<LocationId> {
        let node = self.rows[row as usize];
        if node.is_missing {
            return profile.locations.intern(Location::default());
        }
        let strings = &mut profile.strings;
        let empty = strings.intern("")?;
        let name = node.name.filter(|&name| name != empty);
        let name = match name {
            Some(name) => name,
            None => strings.intern(ANONYMOUS)?,
        };
        let start = node
            .own_line
            .or(node.line.and_then(|line| line.checked_add(1)));
        let start = i64::from(integer_for_r(start.unwrap_or(0)));
        let url = node.url.unwrap_or(empty);
        let function = Function::recorded([name, empty], url, start, strings)?;
        let function = profile.functions.intern(function)?;
        profile.locations.intern(Location {
            function: Some(function),
            line: Some(place.line),
            column: place.column,
            ..Location::default()
        })
    }
}

/// An id, which old files write as text.
fn id(json: &mut Reader) -> Result<u32> {
    let start = json.position();
    let id = match json.peek()? {
        JsonKind::Text => json.text()?.parse().ok(),
        _ => json.number()?.index(),
    };
    id.ok_or_else(|| json.error_at(start, message!("This is not the id of a node.")))
}

/// A number of samples; 0 if there is none.
fn count(json: &mut Reader) -> Result<i64> {
    let start = json.position();
    let count = match json.number_if_any()? {
        Some(number) => number.whole().filter(|&count| count >= 0),
        None => Some(0),
    };
    count.ok_or_else(|| json.error_at(start, message!("This is not a number of samples.")))
}
