//! Entry points for the tables of profiles: they check, convert, combine and filter them.

use crate::arena::RObject;
use crate::argument::{VECSXP, argument, text};
use crate::guard::stop;
use crate::options::Matches;
use crate::outcome::outcome;
use crate::{from_r, to_r};
use extendr_api::prelude::{Robj, extendr, extendr_module};
use profile_core::analysis::clocked::by_clock;
use profile_core::analysis::compact;
use profile_core::analysis::content_keys::content_keys;
use profile_core::error::Error;
use profile_core::formats::Problems;
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_core::message;
use profile_core::model::known_types::{CPU, WALL};
use profile_core::schema::Key;
use profile_core::tables::{Renamed, filter, remap, rows_of_samples};

// Returns the schema, see `to_r/schema.rs`.
#[extendr]
fn rust_schema() -> Robj {
    outcome(to_r::schema)
}

#[extendr]
fn rust_validate(x: &Robj) -> Robj {
    outcome(|_| {
        from_r::check(argument(x), &stop)?;
        Ok(RObject::null())
    })
}

// Checks tables of version "2.0" and looks up packages, see `to_r/packages.rs`. `as_stacks`: whether `sample_locations`
// contains only columns of the schema. NULL if `x` does not say where to look.
#[extendr]
fn rust_packages(x: &Robj, as_stacks: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let (as_stacks, lazy) = (argument(as_stacks).flag()?, argument(lazy).flag()?);
        from_r::with_checked(argument(x), &stop, |_, reading, packages| match packages {
            Some(found) => to_r::packages(arena, reading, found, as_stacks, lazy, &stop),
            None => Ok(RObject::null()),
        })
    })
}

// Converts the samples of the first source, counts of ticks of R's profiler, to amounts of time with times. `clock`: "cpu"
// or "wall"; `duration`: of the recording, in seconds; `dates` and `cpu`: readings of clocks, in nanoseconds.
#[extendr]
fn rust_by_clock(
    x: &Robj,
    clock: &Robj,
    duration: &Robj,
    dates: &Robj,
    cpu: &Robj,
    lazy: &Robj,
) -> Robj {
    outcome(|arena| {
        let mut profile = from_r::recorded(argument(x), &stop)?;
        let clock = if text(clock)? == WALL.name {
            &WALL
        } else {
            &CPU
        };
        let duration = argument(duration).doubles()?.first().copied();
        let duration = (duration.unwrap_or(0.0) * 1e9) as i64;
        let (dates, cpu) = (argument(dates).doubles()?, argument(cpu).doubles()?);
        by_clock(&mut profile, clock, duration, dates, cpu)?;
        let lazy = argument(lazy).flag()?;
        to_r::tables(arena, &profile, &Problems::default(), "2.0", lazy, &stop)
    })
}

// Converts tables from the other version to `version`.
#[extendr]
fn rust_convert(x: &Robj, version: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let version = text(version)?;
        let x = argument(x);
        let profile = match version {
            "2.0" => from_r::recorded(x, &stop)?,
            _ => from_r::profile(x, &stop)?,
        };
        let lazy = argument(lazy).flag()?;
        to_r::tables(arena, &profile, &Problems::default(), version, lazy, &stop)
    })
}

// Checks profiles of version "2.0" and combines them. Returns `list(tables, kept, ids)`. R uses `kept` and `ids` to
// combine columns and tables that the schema does not contain: `kept` contains the remaining rows of tables whose
// equal rows are merged, and `ids`, for each key, the new ids of each profile. `groups` contains, for some tables, a
// number for each row; rows are only merged if their numbers are equal. If there are no user-defined columns and
// tables, it is NULL, and only `tables` is returned. `close_gaps`: whether frames are renumbered.
#[extendr]
fn rust_combine(profiles: &Robj, groups: &Robj, close_gaps: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let groups = argument(groups);
        let has_own = groups.kind() == VECSXP;
        let numbers = groups.elements()?.iter().map(|numbers| numbers.integers());
        let groups = groups.names()?.into_iter().zip(numbers);
        let groups = groups
            .map(|(table, numbers)| Ok((table, numbers?)))
            .try_vec_of()?;
        from_r::with_lists(argument(profiles).elements()?, &stop, |lists| {
            let groups = has_own.then_some(groups.as_slice());
            let (close_gaps, lazy) = (argument(close_gaps).flag()?, argument(lazy).flag()?);
            to_r::combined(arena, lists, groups, close_gaps, lazy, &stop)
        })
    })
}

// Checks tables of version "2.0" and filters them. `rules` is a list: `matches`: for each requested filter, by its name,
// `list(functions, mappings)`, the matching rows of these tables; `drops`: an unnamed list of such lists;
// `drop_of_source`: which of them applies to each source; `outermost`: the number of outermost frames to remove;
// `samples`: 1 for samples to keep, 0 for others; empty to keep all. `as_stacks`: whether `sample_locations` contains
// only columns of the schema.
//
// Returns a list with `samples` and `outermost`, for each sample whether it and its outermost frame are kept;
// `frames`, the columns of the remaining `sample_locations`, or `depths` and `no_longer_inlined`, see
// `FilteredFrames`; and `rows`, the remaining rows of other tables from which some are removed.
#[extendr]
fn rust_filter(x: &Robj, rules: &Robj, as_stacks: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let matches = Matches::new(rules)?;
        from_r::with_checked(argument(x), &stop, |list, reading, packages| {
            let locations =
                matches.locations(&reading.profile, packages.map(|found| &found.profile))?;
            let filters = locations.filters(&matches)?;
            let (as_stacks, lazy) = (argument(as_stacks).flag()?, argument(lazy).flag()?);
            let left = filter(reading, &filters, as_stacks, &stop)?;
            let rows = rows_of_samples(list, reading, &left.samples, &stop)?;
            to_r::filtered(arena, &reading.profile, &left, &rows, lazy, &stop)
        })
    })
}

// Prepares tables, which need not be valid, to be compacted. Returns `list(has_types, rows, tables)`: whether the tables
// of version "2.0" are complete tibbles whose columns have the types of the schema, and, if so, the rows that are used,
// for each table that has unused rows. If there are no such tables, and `combines`, `tables` are the compacted tables.
#[extendr]
fn rust_compact(x: &Robj, combines: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let (x, lazy) = (argument(x), argument(lazy).flag()?);
        let has_types = from_r::has_types(x)?;
        let (mut rows, mut tables) = (Vec::new(), RObject::null());
        if has_types {
            rows = from_r::with_tables(x, |list| compact::rows_in_use(list, &stop))?;
            if rows.is_empty() && argument(combines).flag()? {
                tables = from_r::with_lists(&[x], &stop, |lists| {
                    to_r::combined_tables(arena, lists, true, lazy, &stop)
                })?;
            }
        }
        arena.list(&[
            ("has_types", arena.flag(has_types)?),
            ("rows", to_r::rows(arena, &rows)?),
            ("tables", tables),
        ])
    })
}

// Replaces ids. `columns`, `from` and `to` are lists of integer vectors of the same length. Each id
// in a column is looked up in the corresponding vector of `from` and replaced by the element at that
// position of `to`, or by NA if it is not found. `key` is the name of the column that contains the
// ids in their own table. Returns one vector with the new ids of all columns.
#[extendr]
fn rust_remap(columns: &Robj, from: &Robj, to: &Robj, key: &Robj) -> Robj {
    outcome(|arena| {
        let (from, to) = (argument(from).elements()?, argument(to).elements()?);
        let mut all = Vec::new();
        for ((column, from), to) in argument(columns).elements()?.iter().zip(from).zip(to) {
            let renamed = Renamed {
                column: column.integers()?,
                from: from.integers()?,
                to: to.integers()?,
            };
            all.try_push(renamed)?;
        }
        let rows = all.iter().map(|renamed| renamed.column.len()).sum();
        let name = text(key)?;
        let key = Key::from_column(name);
        let key = key.ok_or_else(|| Error::Unsupported(message!("No key `{name}`.")))?;
        let (ids, slots) = arena.integers(rows)?;
        remap(&all, key, slots, &stop)?;
        Ok(ids)
    })
}

// Returns the keys of `count` rows, see `content_keys.rs` in the core.
#[extendr]
fn rust_content_keys(columns: &Robj, count: &Robj) -> Robj {
    outcome(|arena| {
        let columns = argument(columns);
        let cells = columns
            .elements()?
            .iter()
            .map(|column| from_r::cells(*column));
        let mut columns = columns
            .names()?
            .into_iter()
            .zip(cells)
            .map(|(name, cells)| Ok((name, cells?)))
            .try_vec_of()?;
        let count = argument(count).integers()?.first().copied();
        let count = usize::try_from(count.unwrap_or(0)).unwrap_or(0);
        let keys = content_keys(&mut columns, count, &stop)?;
        let keys = keys.iter().map(String::as_str).try_vec()?;
        arena.texts(&keys)
    })
}

extendr_module! {
    mod tables;
    fn rust_schema;
    fn rust_validate;
    fn rust_packages;
    fn rust_by_clock;
    fn rust_convert;
    fn rust_combine;
    fn rust_filter;
    fn rust_compact;
    fn rust_remap;
    fn rust_content_keys;
}
