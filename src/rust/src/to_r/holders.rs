//! Converts what holds memory to R objects.

use crate::arena::{Arena, RObject};
use crate::tibble::Tibble;
use profile_core::analysis::holders::{Holder, Holders};
use profile_core::error::Result;
use profile_core::limits::memory::TryCollect;
use profile_core::model::Profile;

/// `list(rows, type, unit, has_objects, base, new)`: `base` and `new` are the number of samples with bytes, the sum of
/// bytes, and the number of objects. Without bytes in use only `list(types)`, the names of the sample types.
pub fn holders<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    holders: Option<&Holders>,
) -> Result<RObject<'call>> {
    let Some(holders) = holders else {
        let types = profile.values.iter();
        let types = types.map(|values| values.type_.name.as_str()).try_vec()?;
        return arena.list(&[("types", arena.texts(&types)?)]);
    };
    let rows = || holders.rows.iter();
    let mut table = Tibble::new(arena, holders.rows.len())?;
    let mut amounts = |name, of: fn(&Holder) -> f64| table.doubles(name, rows().map(of));
    amounts("base", |row| row.total.base[0])?;
    amounts("new", |row| row.total.new[0])?;
    amounts("self", |row| row.own.new[0])?;
    amounts("base_objects", |row| row.total.base[1])?;
    amounts("new_objects", |row| row.total.new[1])?;
    table.texts("held_by", rows().map(|row| Some(row.path.as_str())))?;
    let (type_, unit) = holders.type_;
    let [base, new] = [&holders.base, &holders.new]
        .map(|[bytes, objects]| [bytes.samples as f64, bytes.sum, objects.sum]);
    arena.list(&[
        ("rows", table.finish()?),
        ("type", arena.text(type_)?),
        ("unit", arena.text(unit)?),
        ("has_objects", arena.flag(holders.has_objects)?),
        ("base", arena.numbers(&base)?),
        ("new", arena.numbers(&new)?),
    ])
}
