//! Converts profiles from R: a list of tables of either version, which the core reads and checks.

mod environments;
mod rules;
mod shape;
mod table;
mod v1;

use crate::argument::{REALSXP, STRSXP, Sexp, utf8};
use profile_core::analysis::content_keys::Cells;
use profile_core::analysis::convert;
use profile_core::analysis::packages::assign::Added;
use profile_core::error::{Error, Result};
use profile_core::limits::cancel::Stop;
use profile_core::limits::memory::TryCollect;
use profile_core::message;
use profile_core::model::Profile;
use profile_core::schema::{Reading, TABLES, TableInput};
use profile_core::tables::{TableList, check_v1, check_v2, profile_from_v2, version};
use table::{Table, is_of_type};

const TIBBLE: [&str; 3] = ["tbl_df", "tbl", "data.frame"];

/// A profile in which packages were looked up, and the rows that were added for this.
pub struct WithPackages {
    pub profile: Profile,
    pub added: Added,
}

/// Checks a list of tables of version "2.0", and passes it to `work`, with the profile in which packages are looked up,
/// if they are.
pub fn with_checked<'call, T>(
    x: Sexp<'call>,
    stop: Stop,
    work: impl FnOnce(&TableList<'_, 'call>, &Reading<'call>, Option<&WithPackages>) -> Result<T>,
) -> Result<T> {
    let found = environments::of(&[x])?;
    with_list(x, |version, list| match version {
        "2.0" => {
            let reading = check_v2(list, stop)?;
            if found.is_none() {
                return work(list, &reading, None);
            }
            let mut profile = profile_from_v2(list, stop)?;
            let added = environments::assign(found, &mut profile, stop)?;
            work(list, &reading, Some(&WithPackages { profile, added }))
        }
        _ => Err(Error::Unsupported(message!("Tables of version 1.0."))),
    })
}

/// Checks a list of tables by every rule of its version.
pub fn check(x: Sexp, stop: Stop) -> Result<()> {
    with_list(x, |version, list| match version {
        "1.0" => {
            v1::origin(x)?;
            check_v1(list, stop)
        }
        _ => check_v2(list, stop).map(|_| ()),
    })
}

/// Checks a list of tables and creates a profile from it, with the packages of functions if they are looked up.
pub fn profile(x: Sexp, stop: Stop) -> Result<Profile> {
    let mut profile = with_list(x, |version, list| match version {
        "1.0" => convert::counted(list, &v1::origin(x)?, stop),
        _ => profile_from_v2(list, stop),
    })?;
    environments::assign(environments::of(&[x])?, &mut profile, stop)?;
    Ok(profile)
}

/// Checks a list of tables and creates a profile for an analysis: each type has one unit.
pub fn analysed(x: Sexp, stop: Stop) -> Result<Profile> {
    let mut profile = profile(x, stop)?;
    profile.unify_units()?;
    Ok(profile)
}

/// Looks up the packages of functions of a profile that was combined from these, if they have what is necessary.
pub fn assign_packages(profiles: &[Sexp], profile: &mut Profile, stop: Stop) -> Result<()> {
    environments::assign(environments::of(profiles)?, profile, stop).map(|_| ())
}

/// Checks a list of tables and creates a profile of version "2.0": one recorded sample in each row, and all runs.
pub fn recorded(x: Sexp, stop: Stop) -> Result<Profile> {
    with_list(x, |version, list| match version {
        "1.0" => convert::from_v1(list, &v1::origin(x)?, stop),
        _ => profile_from_v2(list, stop),
    })
}

/// Checks lists of tables of version "2.0" and passes them to `work`.
pub fn with_lists<'call, T>(
    profiles: &[Sexp<'call>],
    stop: Stop,
    work: impl FnOnce(&[&TableList<'_, 'call>]) -> Result<T>,
) -> Result<T> {
    let all = profiles.iter().map(|&x| tables(x)).try_vec_of()?;
    let lists = all.iter().map(|tables| list(tables)).try_vec_of()?;
    for list in &lists {
        if version(list)? != "2.0" {
            return Err(Error::Unsupported(message!("Tables of version 1.0.")));
        }
        check_v2(list, stop)?;
    }
    work(&lists.iter().map(Vec::as_slice).try_vec()?)
}

/// Passes a list of tables, which need not be valid, to `work`.
pub fn with_tables<'call, T>(
    x: Sexp<'call>,
    work: impl FnOnce(&TableList<'_, 'call>) -> Result<T>,
) -> Result<T> {
    work(&list(&tables(x)?)?)
}

/// The cells of a column.
pub fn cells<'call>(column: Sexp<'call>) -> Result<Cells<'call>> {
    Ok(match column.kind() {
        REALSXP => Cells::Numbers(column.doubles()?),
        STRSXP => {
            let texts = column.strings()?.iter().map(|&string| utf8(string));
            Cells::Texts(texts.try_vec_of()?)
        }
        _ => Cells::Integers(column.integers()?),
    })
}

/// Whether the tables of version "2.0" are tibbles with all required columns, and the columns of
/// the schema have the declared types.
pub fn has_types(x: Sexp) -> Result<bool> {
    let list = tables(x)?;
    for declared in TABLES {
        let info = declared.info();
        let Some(at) = list.iter().position(|(name, _)| *name == info.name) else {
            if info.required() {
                return Ok(false);
            }
            continue;
        };
        let (_, rows) = &list[at];
        if x.elements()?[at].classes()? != TIBBLE {
            return Ok(false);
        }
        for column in declared.columns() {
            let is_right = match rows.find(column.name) {
                Some(found) => is_of_type(found, column.type_),
                None => !(info.required() && column.required),
            };
            if !is_right {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The elements of a list of tables, after the checks that hold for all tables.
fn tables<'call>(x: Sexp<'call>) -> Result<Vec<(&'call str, Table<'call>)>> {
    shape::check(x)?;
    let named = x.names()?.into_iter().zip(x.elements()?);
    named
        .map(|(name, &element)| Ok((name, Table::new(element)?)))
        .try_vec_of()
}

fn list<'t, 'call>(
    tables: &'t [(&'call str, Table<'call>)],
) -> Result<Vec<(&'call str, &'t dyn TableInput<'call>)>> {
    let list = tables.iter();
    list.map(|(name, table)| (*name, table as &dyn TableInput))
        .try_vec()
}

/// Passes the version of a list of tables, and the list, to `work`.
fn with_list<'call, T>(
    x: Sexp<'call>,
    work: impl FnOnce(&str, &TableList<'_, 'call>) -> Result<T>,
) -> Result<T> {
    let tables = tables(x)?;
    let list = list(&tables)?;
    work(&version(&list)?, &list)
}
