//! Version "1.0": five tables, the stacks in a list column.

use super::columns::{Columns, Named, no_text, wrong};
use super::{functions, locations};
use crate::argument::{INTSXP, STRSXP, Sexp, VECSXP, utf8};
use profile_core::error::{Error, Invalid, Result};
use profile_core::formats::pprof;
use profile_core::formats::rprof::{self, Header};
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_core::message;
use profile_core::model::{Period, RprofOptions, Source, SourceKind};
use profile_core::tables::{Meta, TablesV1, V1};
use std::collections::HashMap;

pub fn tables_v1<'call>(all: &Named<'call>, meta: Meta<'call>) -> Result<TablesV1<'call>> {
    for (position, schema) in V1.iter().enumerate() {
        if let Some((name, _)) = all.elements.get(position) {
            if *name != schema.name && all.get(schema.name).is_some() {
                return Err(wrong(
                    schema.name,
                    None,
                    message!("must be component {} of the list", position + 1),
                ));
            }
        }
    }
    let table = |i: usize| Columns::required(all, &V1[i]);
    let (types, samples) = (table(1)?, table(2)?);
    let mut origin = origin(all)?;
    let further = origin.sources.split_off(1.min(origin.sources.len()));
    let (stack_of, stacks) = stacks_v1(samples.column("locations")?)?;
    Ok(TablesV1 {
        meta,
        type_: types.text("type")?,
        unit: types.text("unit")?,
        value: samples.integers("value")?,
        stack_of,
        stacks,
        locations: locations(&table(3)?)?,
        functions: functions(&table(4)?)?,
        source: origin.sources.pop().unwrap_or_default(),
        further,
        files: origin.files,
        comments: origin.comments,
    })
}

/// The list column: which of the distinct tibbles each sample has, and their
/// ids. Samples that share a tibble share its address.
fn stacks_v1<'call>(column: Sexp<'call>) -> Result<(Vec<u32>, Vec<&'call [i32]>)> {
    let mut known: HashMap<Sexp, u32> = HashMap::new();
    let mut stack_of = Vec::new();
    let mut stacks = Vec::new();
    for (row, element) in column.elements()?.iter().enumerate() {
        let stack = match known.get(element) {
            Some(stack) => *stack,
            None => {
                let ids = Named::new(*element)?.get("location_id");
                let Some(ids) = ids.filter(|ids| ids.kind() == INTSXP && ids.is_plain()) else {
                    return Err(Error::Invalid(Invalid {
                        table: "samples".into(),
                        column: Some("locations"),
                        row: Some(row + 1),
                        rule: message!("must be a tibble with one integer column, `location_id`"),
                    }));
                };
                stacks.try_push(ids.integers()?, "stacks")?;
                let stack = stacks.len() as u32 - 1;
                known.try_put(*element, stack, "stacks")?;
                stack
            }
        };
        stack_of.try_push(stack, "samples")?;
    }
    Ok((stack_of, stacks))
}

/// What the hidden component tells: `.rprof` with headers and files, `.msg` with comments,
/// or neither.
#[derive(Default)]
struct Origin<'call> {
    sources: Vec<Source>,
    files: Vec<(u32, &'call str)>,
    comments: Vec<&'call str>,
}

fn origin<'call>(all: &Named<'call>) -> Result<Origin<'call>> {
    let mut origin = Origin::default();
    let kind = match (all.get(".rprof"), all.get(".msg")) {
        (Some(_), _) => SourceKind::RPROF,
        (None, Some(_)) => SourceKind::named(pprof::FORMAT.name),
        (None, None) => SourceKind::MANUAL,
    };
    if let Some(recorded) = all.get(".rprof") {
        for header in texts(".rprof", recorded, "header")? {
            if let Some(header) = rprof::parse_header(header.as_bytes()) {
                origin.sources.try_push(run(header)?, "sources")?;
            }
        }
        for file in texts(".rprof", recorded, "files")? {
            // What is no such line has no place in a table.
            let line = rprof::parse_file(file.as_bytes());
            if let Some((number, Ok(path))) = line.map(|(n, path)| (n, std::str::from_utf8(path))) {
                origin.files.try_push((number, path), "files")?;
            }
        }
    } else if let Some(message) = all.get(".msg") {
        origin.comments = texts(".msg", message, "comment")?;
    }
    if origin.sources.is_empty() {
        let source = Source {
            kind,
            ..Source::default()
        };
        origin.sources.try_push(source, "sources")?;
    }
    Ok(origin)
}

fn run(header: Header) -> Result<Source> {
    Ok(Source {
        kind: SourceKind::RPROF,
        period: header.interval.map(Period::of_rprof).transpose()?,
        options: Some(RprofOptions {
            memory: header.memory,
            gc: header.gc,
            line: header.line,
        }),
        ..Source::default()
    })
}

/// The texts of a component; none where it is something else, as older versions of the
/// package have it.
fn texts<'call>(component: &'static str, list: Sexp<'call>, name: &str) -> Result<Vec<&'call str>> {
    let mut texts = Vec::new();
    if list.kind() != VECSXP {
        return Ok(texts);
    }
    let column = list.named(name)?.filter(|column| column.kind() == STRSXP);
    if let Some(column) = column {
        for &string in column.strings()? {
            let text = utf8(string).map_err(|error| no_text(error, component, None, None))?;
            if let Some(text) = text {
                texts.try_push(text, "texts")?;
            }
        }
    }
    Ok(texts)
}
