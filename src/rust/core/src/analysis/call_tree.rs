//! The call tree of a profile: a node for each path of calls, with the values of the samples that
//! end in it (self) and of all samples that pass through it (total).
//!
//! Nodes are in preorder. Nodes with the same caller are in descending order of the absolute value of
//! their total, so the order does not depend on the file.

use super::allocations::{AllocatingFrames, Measured};
use super::frame_names::FrameNames;
use super::groups::{By, FrameGroups, Group};
use super::paths::{Path, Paths, ROOT};
use super::sample_types::summed_type;
use super::weights::{Counted, Weight, sum_by_stack, type_of};
use crate::collections::next_row;
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, copied, filled, with_room};
use crate::model::{Profile, SourceId};

/// The part of each stack that forms a path of the tree.
#[derive(Debug, Clone, Copy)]
pub enum TreePart<'a> {
    Whole,
    /// The name of frames, see [`FrameNames::is`]. A function and its callees: from its outermost frame inwards.
    Callees(&'a str),
    /// A function and its callers: from its outermost frame outwards. Self is the value of the samples whose outermost
    /// frame is at the node.
    Callers(&'a str),
}

pub struct CallTree<'p> {
    /// Name and unit of the type that is summed.
    pub type_: (&'p str, &'p str),
    /// How this type was measured.
    pub measured: Measured,
    /// The counts for the wanted sources, regardless of which part of their stacks is in the tree.
    pub counted: Counted,
    pub groups: Vec<Group<'p>>,
    /// In preorder.
    pub nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Node {
    /// The row of the caller; `None` for outermost frames.
    pub parent: Option<u32>,
    /// 1 for outermost frames.
    pub depth: u32,
    /// The row of its group.
    pub group: u32,
    pub self_: f64,
    pub total: f64,
    /// The horizontal position of the node if nodes are drawn side by side, each as wide as its
    /// total. The callees of a node start at its position.
    ///
    /// In differences, which have negative values, the width is the sum of the absolute self values
    /// of the node and all nodes below it.
    pub x: f64,
    pub width: f64,
}

/// Sums the sample type `wanted`, or the default one, of the samples of some sources.
pub fn call_tree<'p>(
    profile: &'p Profile,
    names: &'p FrameNames,
    wanted: Option<&str>,
    by: By,
    part: TreePart,
    is_wanted: impl Fn(SourceId) -> bool,
    stop: Stop,
) -> Result<CallTree<'p>> {
    let summed = summed_type(profile, wanted)?;
    let weights = [Weight::column(summed)];
    let ([counted], by_stack) = sum_by_stack(profile, &weights, is_wanted, stop)?;
    let groups = FrameGroups::new(profile, names, by)?;
    let mut is_chosen = with_room(profile.locations.len())?;
    for location in profile.locations.ids() {
        let chosen = match part {
            TreePart::Whole => false,
            TreePart::Callees(chosen) | TreePart::Callers(chosen) => names.is(location, chosen),
        };
        is_chosen.try_push(chosen)?;
    }
    let mut paths = match by {
        By::File | By::Package => Paths::merged(),
        By::Function | By::Line | By::Place => Paths::default(),
    };
    let allocating = AllocatingFrames::among(profile, names, &[summed])?;
    // By path.
    let mut self_ = Vec::new();
    let mut space = Vec::new();
    for (stack, &[sum]) in profile.stacks.ids().zip(&by_stack) {
        cancel::at_row(stack.row(), stop)?;
        if sum == 0.0 {
            continue;
        }
        // Innermost first.
        let frames = profile.stacks.get(stack).unpacked(&mut space)?;
        let frames = allocating.of(frames);
        let outermost_chosen = frames.iter().rposition(|frame| is_chosen[frame.row()]);
        let groups = &groups.of_location;
        let node = match (part, outermost_chosen) {
            (TreePart::Whole, _) => paths.add(frames.iter().rev().copied(), groups)?,
            (TreePart::Callees(_), Some(at)) => {
                paths.add(frames[..=at].iter().rev().copied(), groups)?
            }
            (TreePart::Callers(_), Some(at)) => paths.add(frames[at..].iter().copied(), groups)?,
            (_, None) => None,
        };
        self_.try_fill(paths.nodes().len(), 0.0)?;
        if let Some(node) = node {
            self_[node as usize] += sum;
        }
    }
    let groups = groups.shown(profile, names)?;
    let nodes = in_preorder(paths.nodes(), &self_, &groups, stop)?;
    Ok(CallTree {
        type_: type_of(summed),
        measured: Measured::of(profile, summed),
        counted,
        groups,
        nodes,
    })
}

/// Converts paths to nodes. `self_` contains the self value of each path.
fn in_preorder(nodes: &[Path], self_: &[f64], groups: &[Group], stop: Stop) -> Result<Vec<Node>> {
    let mut totals = copied(self_)?;
    let mut widths = self_.iter().map(|value| value.abs()).try_vec()?;
    for sums in [&mut totals, &mut widths] {
        // Callees come after their callers.
        for (row, node) in nodes.iter().enumerate().rev() {
            if node.parent != ROOT {
                sums[node.parent as usize] += sums[row];
            }
        }
    }
    // The callees of all nodes, grouped by caller; the outermost nodes are at the end.
    let mut callees = (0..nodes.len() as u32).try_vec()?;
    cancel::check(stop)?;
    callees.sort_unstable_by(|&a, &b| {
        let [one, other] = [a, b].map(|row| &nodes[row as usize]);
        let size = |row: u32| totals[row as usize].abs();
        let by_total = size(b).total_cmp(&size(a));
        let name = |node: &Path| &groups[node.group as usize];
        one.parent
            .cmp(&other.parent)
            .then(by_total)
            .then_with(|| name(one).cmp(name(other)))
    });
    let mut starts = filled(nodes.len() + 1, 0)?;
    let mut outermost = callees.len();
    for (at, &row) in callees.iter().enumerate().rev() {
        match nodes[row as usize].parent {
            ROOT => outermost = at,
            parent => starts[parent as usize] = at,
        }
    }
    let callees_of = |parent: u32, start: usize| {
        let rest = callees[start..].iter();
        rest.take_while(move |&&row| nodes[row as usize].parent == parent)
    };
    let mut out: Vec<Node> = with_room(nodes.len())?;
    // The nodes to be visited, the next one last.
    let mut open: Vec<(u32, Node)> = Vec::new();
    let visit = |open: &mut Vec<(u32, Node)>, caller: (u32, usize, Option<u32>, u32, f64)| {
        let (parent, start, row, depth, mut x) = caller;
        let first = open.len();
        for &callee in callees_of(parent, start) {
            let path = &nodes[callee as usize];
            let node = Node {
                parent: row,
                depth,
                group: path.group,
                self_: self_[callee as usize],
                total: totals[callee as usize],
                x,
                width: widths[callee as usize],
            };
            x += node.width;
            open.try_push((callee, node))?;
        }
        open[first..].reverse();
        Ok::<_, crate::error::Error>(())
    };
    visit(&mut open, (ROOT, outermost, None, 1, 0.0))?;
    while let Some((row, node)) = open.pop() {
        let own = next_row(out.len(), "paths")?;
        cancel::at_row(own as usize, stop)?;
        out.try_push(node)?;
        let start = starts[row as usize];
        visit(&mut open, (row, start, Some(own), node.depth + 1, node.x))?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
