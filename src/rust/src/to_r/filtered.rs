//! The result of filtering: what remains of samples, of their frames, and of other tables.

use super::rows;
use crate::arena::{Arena, RObject};
use profile_core::error::Result;
use profile_core::tables::Filtered;

/// `list(samples, outermost, depths, no_longer_inlined, rows)`, see `rust_filter()`.
pub fn filtered<'call>(
    arena: Arena<'call>,
    left: &Filtered,
    other: &[(&str, Vec<u32>)],
) -> Result<RObject<'call>> {
    let flags = |flags: &[bool]| {
        let (vector, slots) = arena.logicals(flags.len())?;
        for (slot, &flag) in slots.iter_mut().zip(flags) {
            *slot = i32::from(flag);
        }
        Ok::<_, profile_core::error::Error>(vector)
    };
    let (depths, slots) = arena.integers(left.depths.len())?;
    slots.copy_from_slice(&left.depths);
    let (no_longer_inlined, slots) = arena.integers(left.no_longer_inlined.len())?;
    for (slot, &row) in slots.iter_mut().zip(&left.no_longer_inlined) {
        *slot = row as i32 + 1;
    }
    arena.list(&[
        ("samples", flags(&left.samples)?),
        ("outermost", flags(&left.outermost)?),
        ("depths", depths),
        ("no_longer_inlined", no_longer_inlined),
        ("rows", rows(arena, other)?),
    ])
}
