//! Version "1.0": five tables, the stacks in a list column.

use super::columns::{Columns, Named, wrong};
use super::{functions, locations};
use crate::r::{INTSXP, Sexp};
use profile_core::error::{Error, Invalid, Result};
use profile_core::memory::TryGrow;
use profile_core::model::{Period, RprofOptions, Source};
use profile_core::rprof;
use profile_core::tables::{Meta, TablesV1, V1};
use std::collections::HashMap;

pub fn tables_v1<'call>(all: &Named<'call>, meta: Meta<'call>) -> Result<TablesV1<'call>> {
    for (position, schema) in V1.iter().enumerate() {
        if let Some((name, _)) = all.elements.get(position) {
            if *name != schema.name && all.get(schema.name).is_some() {
                return Err(wrong(
                    schema.name,
                    None,
                    format!("must be component {} of the list", position + 1),
                ));
            }
        }
    }
    let table = |i: usize| Columns::required(all, &V1[i]);
    let (types, samples) = (table(1)?, table(2)?);
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
        source: source_v1(all)?,
    })
}

/// The list column: which of the distinct tibbles each sample has, and their
/// ids. Samples that share a tibble share its address.
fn stacks_v1<'call>(column: Sexp<'call>) -> Result<(Vec<u32>, Vec<&'call [i32]>)> {
    let mut known: HashMap<Sexp, u32> = HashMap::new();
    let mut stack_of = Vec::new();
    let mut stacks = Vec::new();
    for (row, element) in column.elements().enumerate() {
        let stack = match known.get(&element) {
            Some(stack) => *stack,
            None => {
                let ids = Named::new(element)?.get("location_id");
                let Some(ids) = ids.filter(|ids| ids.kind() == INTSXP && ids.is_plain()) else {
                    return Err(Error::Invalid(Invalid {
                        table: "samples".into(),
                        column: Some("locations"),
                        row: Some(row + 1),
                        rule: "must be a tibble with one integer column, `location_id`".to_owned(),
                    }));
                };
                stacks.try_push(ids.integers()?, "stacks")?;
                let stack = stacks.len() as u32 - 1;
                known.insert(element, stack);
                stack
            }
        };
        stack_of.try_push(stack, "samples")?;
    }
    Ok((stack_of, stacks))
}

/// What the hidden component tells: `.rprof` with a header, `.msg`, or neither.
fn source_v1(all: &Named) -> Result<Source> {
    let Some(rprof) = all.get(".rprof") else {
        let kind = match all.get(".msg") {
            Some(_) => "pprof",
            None => "manual",
        };
        return Ok(Source {
            kind: kind.to_owned(),
            ..Source::default()
        });
    };
    let header = match rprof.named("header")? {
        Some(header) => header.text()?,
        None => None,
    };
    let header = header.and_then(|text| rprof::parse_header(text.as_bytes()));
    Ok(Source {
        kind: "rprof".to_owned(),
        period: header.and_then(|h| h.interval).map(Period::of_rprof),
        // Version "1.0" keeps no memory figures to write.
        options: header.map(|h| RprofOptions {
            memory: false,
            gc: h.gc,
            line: h.line,
        }),
        ..Source::default()
    })
}
