//! Takes a profile from R: a list of tables of either version.
//!
//! Here it is checked that tables and columns are there and of their type; what
//! is in them is for the core to check.

mod columns;
mod v1;
mod v2;

use crate::argument::Sexp;
use columns::{Columns, Named};
use profile_core::analysis::convert;
use profile_core::error::{Error, Invalid, Result};
use profile_core::limits::cancel::Stop;
use profile_core::message;
use profile_core::model::Profile;
use profile_core::tables::{
    Functions, Locations, Meta, TablesV1, TablesV2, V1, V2, check_v1, check_v2, profile_from_v1,
    profile_from_v2,
};

/// The tables of one version, not yet checked row by row.
enum Tables<'call> {
    V1(Box<TablesV1<'call>>),
    V2(Box<TablesV2<'call>>),
}

/// The tables of version "2.0", and only those.
pub fn second<'call>(x: Sexp<'call>) -> Result<Box<TablesV2<'call>>> {
    match tables(x)? {
        Tables::V2(tables) => Ok(tables),
        Tables::V1(_) => Err(Error::Unsupported(message!("Tables of version 1.0."))),
    }
}

/// Holds a list of tables against every rule of its version.
pub fn check(x: Sexp, stop: Stop) -> Result<()> {
    match tables(x)? {
        Tables::V1(tables) => check_v1(&tables, stop),
        Tables::V2(tables) => check_v2(&tables, stop),
    }
}

/// Checks a list of tables and makes a profile of it.
pub fn profile(x: Sexp, stop: Stop) -> Result<Profile> {
    match tables(x)? {
        Tables::V1(tables) => profile_from_v1(&tables, stop),
        Tables::V2(tables) => profile_from_v2(&tables, stop),
    }
}

/// The same with a sample in each row, and all that version "1.0" says of its origin.
pub fn recorded(x: Sexp, stop: Stop) -> Result<Profile> {
    match tables(x)? {
        Tables::V1(tables) => convert::from_v1(&tables, stop),
        Tables::V2(tables) => profile_from_v2(&tables, stop),
    }
}

fn tables<'call>(x: Sexp<'call>) -> Result<Tables<'call>> {
    let all = Named::new(x)?;
    let meta = meta(&all)?;
    let row = (0..meta.key.len()).find(|&row| meta.key.get(row) == Some("version"));
    match row.and_then(|row| meta.value.get(row)) {
        Some("1.0") => {
            all.check_names(V1)?;
            Ok(Tables::V1(Box::new(v1::tables_v1(&all, meta)?)))
        }
        Some("2.0") => {
            all.check_names(V2)?;
            Ok(Tables::V2(Box::new(v2::tables_v2(&all, meta)?)))
        }
        version => Err(Error::Invalid(Invalid {
            table: "meta".into(),
            column: Some("value"),
            row: row.map(|row| row + 1),
            rule: match version {
                Some(version) => {
                    message!("version \"{version}\" is not known, only \"1.0\" and \"2.0\" are")
                }
                None => message!("must hold the version under the key `version`"),
            },
        })),
    }
}

fn meta<'call>(all: &Named<'call>) -> Result<Meta<'call>> {
    let meta = Columns::required(all, &V2[0])?;
    Ok(Meta {
        key: meta.text("key")?,
        value: meta.text("value")?,
    })
}

fn locations<'call>(columns: &Columns<'call>) -> Result<Locations<'call>> {
    Ok(Locations {
        location_id: columns.integers("location_id")?,
        function_id: columns.integers("function_id")?,
        line: columns.integers("line")?,
    })
}

fn functions<'call>(columns: &Columns<'call>) -> Result<Functions<'call>> {
    Ok(Functions {
        function_id: columns.integers("function_id")?,
        name: columns.text("name")?,
        system_name: columns.text("system_name")?,
        filename: columns.text("filename")?,
        start_line: columns.integers("start_line")?,
    })
}
