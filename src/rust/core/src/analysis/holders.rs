//! What holds the memory in use: the paths of a profile below which most of it is, or below which it has grown since
//! another profile.
//!
//! A tree of all paths is too large to read, and most of its nodes hold the same memory as the node above them. From
//! each root on, a row goes down as long as one child keeps [`KEPT`] of the memory, so it ends where the memory is
//! divided. The children there, and those that were passed by, begin new rows if they are large enough. Rows that differ
//! in a key only, such as the entries of a cache, become one row.

use super::frame_names::FrameNames;
use super::heap_frames::TypeFrames;
use super::keys::{self, ALIKE};
use super::paths::{Path, Paths, ROOT};
use super::sample_types::check_sums;
use super::weights::{Counted, Weight, sum_by_stack, type_of};
use crate::collections::Lists;
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, TryPut, TryText, copied, filled, owned};
use crate::model::{Profile, SourceId};
use std::collections::HashMap;

/// The part of the memory of a row that a child must have to continue it.
const KEPT: f64 = 0.8;

pub const SEPARATOR: &str = " > ";

pub struct Request {
    /// The number of sources that are compared with the others; they come first. 0 if nothing is compared.
    pub base: usize,
    /// The smallest part of the whole that begins a row. Roots always do, unless profiles are compared.
    pub min_share: f64,
    /// The maximum number of rows.
    pub most: usize,
}

pub struct Holders<'p> {
    /// Name and unit of the type of bytes.
    pub type_: (&'p str, &'p str),
    /// Whether objects are counted.
    pub has_objects: bool,
    /// Bytes and objects of the base and of the other sources.
    pub base: [Counted; 2],
    pub new: [Counted; 2],
    /// In descending order of bytes or, if profiles are compared, of their growth.
    pub rows: Vec<Holder>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Holder {
    /// The frames, outermost first. If it stands for several paths, their keys are `*`, and their number follows:
    /// `globalenv > $cache > $key* (20 new)`.
    pub path: String,
    /// Of everything below this path.
    pub total: Amounts,
    /// Of the objects of this path itself.
    pub own: Amounts,
}

impl Holder {
    fn add(&mut self, other: Holder) {
        self.total.add(other.total);
        self.own.add(other.own);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Amounts {
    pub base: [f64; 2],
    pub new: [f64; 2],
}

impl Amounts {
    fn add(&mut self, other: Amounts) {
        let [base, new] = [other.base, other.new];
        let sums = self.base.iter_mut().chain(&mut self.new);
        for (sum, value) in sums.zip(base.into_iter().chain(new)) {
            *sum += value;
        }
    }

    /// The growth in bytes.
    fn growth(&self) -> f64 {
        self.new[0] - self.base[0]
    }
}

/// `None` if the profile has no bytes in use.
pub fn holders<'p>(
    profile: &'p Profile,
    names: &FrameNames,
    request: &Request,
    stop: Stop,
) -> Result<Option<Holders<'p>>> {
    let Some(bytes) = profile.in_use("bytes") else {
        return Ok(None);
    };
    check_sums(profile)?;
    let objects = profile.in_use("count");
    let weights = [Weight::column(Some(bytes)), Weight::column(objects)];
    let is_base = |source: SourceId| source.row() < request.base;
    let sums = |of_base: bool| {
        let is_wanted = |source| is_base(source) == of_base;
        sum_by_stack(profile, &weights, is_wanted, stop)
    };
    let (new, new_by_stack) = sums(false)?;
    let (base, base_by_stack) = match request.base {
        0 => (
            [Counted::default(); 2],
            filled(profile.stacks.len(), [0.0; 2])?,
        ),
        _ => sums(true)?,
    };
    let groups = profile.locations.ids().map(|id| names.row(id));
    let groups = groups.try_vec()?;
    let types = TypeFrames::new(profile, names)?;
    let mut paths = Paths::default();
    // By path.
    let mut own = Vec::new();
    let mut space = Vec::new();
    let by_stack = base_by_stack.iter().zip(&new_by_stack);
    for (stack, (&base, &new)) in profile.stacks.ids().zip(by_stack) {
        cancel::at_row(stack.row(), stop)?;
        if base == [0.0; 2] && new == [0.0; 2] {
            continue;
        }
        // Innermost first.
        let frames = profile.stacks.get(stack).unpacked(&mut space)?;
        let frames = types.holders(frames);
        let node = paths.add(frames.iter().rev().copied(), &groups)?;
        own.try_fill(paths.nodes().len(), Amounts::default())?;
        if let Some(node) = node {
            own[node as usize].add(Amounts { base, new });
        }
    }
    let tree = Tree::new(paths.nodes(), &own)?;
    let found = tree.find(request, stop)?;
    let rows = found.iter().map(|&node| {
        Ok(Holder {
            path: tree.path(node, names)?,
            total: tree.totals[node as usize],
            own: own[node as usize],
        })
    });
    let mut rows = folded(rows.try_vec_of()?, request.base > 0)?;
    let size = |row: &Holder| row.total.growth();
    let by_path = |a: &Holder, b: &Holder| a.path.cmp(&b.path);
    rows.sort_unstable_by(|a, b| {
        let order = size(b).abs().total_cmp(&size(a).abs());
        order.then_with(|| by_path(a, b))
    });
    rows.truncate(request.most);
    rows.sort_unstable_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| by_path(a, b)));
    Ok(Some(Holders {
        type_: type_of(Some(bytes)),
        has_objects: objects.is_some(),
        base,
        new,
        rows,
    }))
}

/// The rows, in which those that differ in a key only are one. `are_compared` is whether there is a base.
fn folded(rows: Vec<Holder>, are_compared: bool) -> Result<Vec<Holder>> {
    let mut patterns = rows.iter().map(|row| pattern(&row.path)).try_vec_of()?;
    let mut alike: HashMap<String, (usize, Option<usize>)> = HashMap::new();
    for pattern in patterns.iter_mut().filter(|pattern| pattern.contains('*')) {
        match alike.get_mut(pattern) {
            Some((count, _)) => *count += 1,
            None => drop(alike.try_put(owned(pattern)?, (1, None))?),
        }
    }
    let mut found: Vec<Holder> = Vec::new();
    for (row, pattern) in rows.into_iter().zip(patterns) {
        match alike.get_mut(&pattern) {
            Some((count, first)) if *count > ALIKE => match first {
                Some(first) => found[*first].add(row),
                None => {
                    *first = Some(found.len());
                    found.try_push(Holder {
                        path: pattern,
                        ..row
                    })?;
                }
            },
            _ => found.try_push(row)?,
        }
    }
    for (count, first) in alike.into_values() {
        if let Some(row) = first.and_then(|first| found.get_mut(first)) {
            let new = if are_compared && row.total.base == [0.0; 2] {
                " new"
            } else {
                ""
            };
            row.path.try_write(format_args!(" ({count}{new})"))?;
        }
    }
    Ok(found)
}

/// A path with `*` for keys, see [`keys`].
fn pattern(path: &str) -> Result<String> {
    let mut pattern = String::new();
    for (number, step) in path.split(SEPARATOR).enumerate() {
        if number > 0 {
            pattern.try_push_str(SEPARATOR)?;
        }
        keys::push_pattern(&mut pattern, step)?;
    }
    Ok(pattern)
}

struct Tree<'t> {
    nodes: &'t [Path],
    /// By node.
    totals: Vec<Amounts>,
    /// The sum of the absolute growths of the node and all nodes below it: if memory has grown in one place and shrunk in
    /// another one, their sum may be small.
    changed: Vec<f64>,
    /// The children of each node; the roots are the last list.
    children: Lists<u32>,
}

impl<'t> Tree<'t> {
    fn new(nodes: &'t [Path], own: &[Amounts]) -> Result<Tree<'t>> {
        let mut totals = copied(own)?;
        let mut changed = own.iter().map(|own| own.growth().abs()).try_vec()?;
        // Children come after their parents.
        for (row, node) in nodes.iter().enumerate().rev() {
            if node.parent != ROOT {
                let total = totals[row];
                totals[node.parent as usize].add(total);
                changed[node.parent as usize] += changed[row];
            }
        }
        let parents = nodes.iter().map(|node| match node.parent {
            ROOT => nodes.len(),
            parent => parent as usize,
        });
        let children = Lists::grouped(nodes.len() + 1, parents)?;
        Ok(Tree {
            nodes,
            totals,
            changed,
            children,
        })
    }

    fn growth(&self, node: u32) -> f64 {
        self.totals[node as usize].growth()
    }

    /// The nodes of rows.
    fn find(&self, request: &Request, stop: Stop) -> Result<Vec<u32>> {
        let roots = self.children.get(self.nodes.len());
        let whole: f64 = roots.iter().map(|&root| self.changed[root as usize]).sum();
        let limit = request.min_share * whole;
        let is_large = |node: u32| self.changed[node as usize] >= limit;
        let mut found = Vec::new();
        let mut visited = 0;
        let mut open = copied(roots)?;
        while let Some(start) = open.pop() {
            let size = self.growth(start);
            let mut node = start;
            loop {
                visited += 1;
                cancel::at_row(visited, stop)?;
                let children = self.children.get(node as usize);
                let kept = children.iter().copied().filter(|&child| {
                    let growth = self.growth(child);
                    growth * size > 0.0 && growth.abs() >= KEPT * size.abs()
                });
                let kept =
                    kept.max_by(|&a, &b| self.growth(a).abs().total_cmp(&self.growth(b).abs()));
                for &child in children {
                    if Some(child) != kept && is_large(child) {
                        open.try_push(child)?;
                    }
                }
                match kept {
                    Some(child) => node = child,
                    None => break,
                }
            }
            let growth = self.growth(node);
            let always = request.base == 0 && self.nodes[start as usize].parent == ROOT;
            if growth != 0.0 && (always || growth.abs() >= limit) {
                found.try_push(node)?;
            }
        }
        Ok(found)
    }

    fn path(&self, node: u32, names: &FrameNames) -> Result<String> {
        let mut steps = Vec::new();
        let mut next = node;
        while let Some(path) = self.nodes.get(next as usize) {
            steps.try_push(path.group)?;
            next = path.parent;
        }
        let mut text = String::new();
        for (at, &group) in steps.iter().rev().enumerate() {
            if at > 0 {
                text.try_push_str(SEPARATOR)?;
            }
            text.try_push_str(names.get(group))?;
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests;
