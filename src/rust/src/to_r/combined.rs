//! Converts the result of combining profiles to R objects.

use super::tables::Tables;
use crate::arena::{Arena, RObject};
use profile_core::analysis::combine::{Groups, combine};
use profile_core::error::Result;
use profile_core::limits::cancel::Stop;
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_core::tables::TableList;

/// `list(tables, kept, ids)`, see `rust_combine()`; only `tables` without `groups`.
pub fn combined<'call>(
    arena: Arena<'call>,
    profiles: &[&TableList],
    groups: Option<&Groups>,
    close_gaps: bool,
    lazy: bool,
    stop: Stop,
) -> Result<RObject<'call>> {
    let mut tables = Tables::new(arena, lazy);
    let rows_in_groups = groups.unwrap_or_default();
    let combined = combine(profiles, rows_in_groups, close_gaps, &mut tables, stop)?;
    if groups.is_none() {
        return arena.list(&[("tables", tables.finish()?)]);
    }
    let mut ids = Vec::new();
    for (key, profiles) in &combined.new_ids()? {
        let new = profiles.iter().map(|new| {
            let (value, slots) = arena.integers(new.len())?;
            slots.copy_from_slice(new);
            Ok(("", value))
        });
        ids.try_push((key.name(), arena.list(&new.try_vec_of()?)?))?;
    }
    arena.list(&[
        ("tables", tables.finish()?),
        ("kept", rows(arena, &combined.kept)?),
        ("ids", arena.list(&ids)?),
    ])
}

/// Only the tables.
pub fn combined_tables<'call>(
    arena: Arena<'call>,
    profiles: &[&TableList],
    close_gaps: bool,
    lazy: bool,
    stop: Stop,
) -> Result<RObject<'call>> {
    let mut tables = Tables::new(arena, lazy);
    combine(profiles, &[], close_gaps, &mut tables, stop)?;
    tables.finish()
}

/// Rows of tables, counted from 1.
pub fn rows<'call>(arena: Arena<'call>, tables: &[(&str, Vec<u32>)]) -> Result<RObject<'call>> {
    let tables = tables.iter().map(|(table, rows)| {
        let (value, slots) = arena.integers(rows.len())?;
        for (slot, &row) in slots.iter_mut().zip(rows) {
            *slot = row as i32 + 1;
        }
        Ok((*table, value))
    });
    arena.list(&tables.try_vec_of()?)
}
