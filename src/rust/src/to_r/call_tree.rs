//! Converts a call tree to R objects.

use super::summary::{counted, other_types};
use crate::arena::{Arena, RObject};
use crate::tibble::{NA, Tibble};
use profile_core::analysis::call_tree::{CallTree, Node};
use profile_core::analysis::groups::Group;
use profile_core::error::Result;
use profile_core::limits::memory::TryCollect;
use profile_core::model::Profile;

/// `list(nodes, type, unit, counted, whole, other_types, sum_at_least, since_previous)`.
pub fn call_tree<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    tree: &CallTree,
) -> Result<RObject<'call>> {
    let nodes = || tree.nodes.iter();
    // Rows are counted from 1 in R, and there are less than 2^31 of them.
    let id = |row: u32| row as i32 + 1;
    let group = |node: &Node| &tree.groups[node.group as usize];
    let mut table = Tibble::new(arena, tree.nodes.len())?;
    table.integers("node_id", (1..).take(tree.nodes.len()))?;
    table.integers("parent_id", nodes().map(|node| node.parent.map_or(NA, id)))?;
    table.integers("depth", nodes().map(|node| node.depth as i32))?;
    let labels = tree.groups.iter().map(Group::label);
    let labels = labels.try_vec_of()?;
    table.texts(
        "name",
        nodes().map(|node| labels[node.group as usize].as_deref()),
    )?;
    table.texts("filename", nodes().map(|node| group(node).filename))?;
    table.integers("line", nodes().map(|node| group(node).line.unwrap_or(NA)))?;
    table.texts("package", nodes().map(|node| group(node).package))?;
    table.doubles("self", nodes().map(|node| node.self_))?;
    table.doubles("total", nodes().map(|node| node.total))?;
    table.doubles("x", nodes().map(|node| node.x))?;
    table.doubles("width", nodes().map(|node| node.width))?;
    let (type_, unit) = tree.type_;
    arena.list(&[
        ("nodes", table.finish()?),
        ("type", arena.text(type_)?),
        ("unit", arena.text(unit)?),
        ("counted", counted(arena, &tree.counted)?),
        ("whole", arena.number(tree.counted.whole.get())?),
        ("other_types", other_types(arena, profile, &tree.counted)?),
        ("sum_at_least", arena.flag(tree.measured.is_lower_bound)?),
        ("since_previous", arena.flag(tree.measured.since_previous)?),
    ])
}
