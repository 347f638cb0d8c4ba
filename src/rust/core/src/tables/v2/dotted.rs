//! The rules of what stands beside the tables of version "2.0".

use super::TablesV2;
use super::origins::{self, Owners, value_of};
use crate::error::Result;
use crate::model::{Payload, nanoseconds, nearest, seconds};
use crate::tables::checks::{dangling, invalid, not_empty};
use crate::tables::ids::Ids;
use crate::tables::{NA, Text, exact};

/// The ids of the tables that others refer to, where they are there.
pub struct Beside {
    pub mappings: Option<Ids>,
    pub resources: Option<Ids>,
    pub scopes: Option<Ids>,
}

impl Beside {
    pub fn owners<'i>(&'i self, sources: &'i Ids, locations: &'i Ids) -> Owners<'i> {
        let [resources, scopes, mappings] =
            [&self.resources, &self.scopes, &self.mappings].map(Option::as_ref);
        Owners([resources, scopes, Some(sources), mappings, Some(locations)])
    }
}

/// Every rule; gives the ids.
pub fn check(tables: &TablesV2, sources: &Ids, samples: &Ids, locations: &Ids) -> Result<Beside> {
    of_sources(tables)?;
    of_samples(tables)?;
    let mappings = mappings(tables)?;
    of_locations(tables, mappings.as_ref())?;
    of_functions(tables)?;
    let source = |table, row, id| match sources.row(id) {
        Some(_) => Ok(()),
        None => Err(dangling(table, "source_id", row, id, "sources")),
    };
    if let Some(types) = &tables.sample_types {
        const TABLE: &str = ".sample_types";
        for (row, &id) in types.source_id.iter().enumerate() {
            source(TABLE, row, id)?;
            not_empty(TABLE, "type", &types.type_, row)?;
            not_na(TABLE, "unit", &types.unit, row)?;
            not_na(TABLE, "recorded", &types.recorded, row)?;
        }
    }
    if let Some(files) = &tables.files {
        for (row, &id) in files.source_id.iter().enumerate() {
            source(".files", row, id)?;
            if files.number[row] < 0 {
                return Err(invalid(".files", "number", row, "must be 0 or more"));
            }
            not_na(".files", "filename", &files.filename, row)?;
        }
    }
    if let Some(labels) = &tables.labels {
        let none = Text::default();
        const TABLE: &str = ".labels";
        for (row, &id) in labels.sample_id.iter().enumerate() {
            if samples.row(id).is_none() {
                return Err(dangling(TABLE, "sample_id", row, id, "samples"));
            }
            not_na(TABLE, "key", &labels.key, row)?;
            let num = labels.num[row];
            if !num.is_nan() && (num.fract() != 0.0 || num.abs() > 9.3e18) {
                return Err(invalid(
                    TABLE,
                    "num",
                    row,
                    "must be a whole number of 64 bits",
                ));
            }
            exact::decimal(TABLE, "num_exact", labels.num_exact.as_ref(), row)?;
            let [type_, value] =
                [&labels.type_, &labels.value].map(|c| c.as_ref().unwrap_or(&none));
            let other = value_of(TABLE, ["type", "value"], [type_, value], row)?;
            if other.is_some() && (labels.str.get(row).is_some() || !num.is_nan()) {
                let rule = "must be NA where `str` or `num` has the value";
                return Err(invalid(TABLE, "type", row, rule));
            }
        }
    }
    if let Some(comments) = &tables.comments {
        for (row, &id) in comments.source_id.iter().enumerate() {
            source(".comments", row, id)?;
        }
    }
    let (resources, scopes) = origins::check(tables)?;
    let beside = Beside {
        mappings,
        resources,
        scopes,
    };
    origins::check_attributes(tables, &beside.owners(sources, locations))?;
    Ok(beside)
}

fn of_samples(tables: &TablesV2) -> Result<()> {
    let origins = &tables.origins;
    for (column, text) in [
        (".trace_id", &origins.trace_id),
        (".span_id", &origins.span_id),
    ] {
        hex_digits("samples", column, text.as_ref())?;
    }
    for row in 0..tables.sample_id.len() {
        let exact = exact::decimal("samples", ".time_nanos", origins.time_nanos.as_ref(), row)?;
        let Some(times) = origins.timestamp else {
            continue;
        };
        let is_held = times[row].is_nan() || nanoseconds(times[row]).is_some();
        if !is_held && exact.map(seconds) != Some(times[row]) {
            let rule = "must be seconds since 1970, up to the year 2262, or NA";
            return Err(invalid("samples", ".timestamp", row, rule));
        }
    }
    Ok(())
}

/// Bytes, each as two digits.
fn hex_digits(table: &'static str, column: &'static str, text: Option<&Text>) -> Result<()> {
    let Some(text) = text else { return Ok(()) };
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
    let is_hex = |text: &str| text.len() % 2 == 0 && text.as_bytes().iter().all(is_digit);
    let wrong = text.distinct.iter().position(|text| !is_hex(text));
    let row = wrong.and_then(|wrong| text.rows.iter().position(|&row| row == wrong as i32));
    match row {
        Some(row) => {
            let rule = "must be hexadecimal digits, two for each byte, or NA";
            Err(invalid(table, column, row, rule))
        }
        None => Ok(()),
    }
}

fn of_sources(tables: &TablesV2) -> Result<()> {
    let facts = &tables.facts;
    for row in 0..tables.source_id.len() {
        for (name, column) in [
            (".time_nanos", &facts.time_nanos),
            (".period_exact", &facts.period_exact),
            (".duration_nanos_exact", &facts.duration_exact),
        ] {
            exact::decimal("sources", name, column.as_ref(), row)?;
        }
        if let Some(duration) = facts.duration.map(|durations| durations[row]) {
            let exact = facts.duration_exact.as_ref();
            let exact = exact::decimal("sources", ".duration_nanos_exact", exact, row)?;
            let is_held = exact::of_double(exact, duration)
                .or(nearest(duration))
                .is_some();
            if !is_held && !duration.is_nan() {
                let rule = "must be nanoseconds below 2^63, or NA";
                return Err(invalid("sources", ".duration_nanos", row, rule));
            }
        }
        let text = |column: &Option<Text>| column.as_ref().is_some_and(|c| c.get(row).is_some());
        if text(&facts.payload) != text(&facts.payload_format) {
            let rule = "must be there where `.original_payload_format` is, and only there";
            return Err(invalid("sources", ".original_payload", row, rule));
        }
        if let Some(Some(payload)) = facts.payload.as_ref().map(|payload| payload.get(row)) {
            if Payload::of_base64("", payload)?.is_none() {
                let rule = "must be bytes in base64, or NA";
                return Err(invalid("sources", ".original_payload", row, rule));
            }
        }
    }
    hex_digits("sources", ".profile_id", facts.profile_id.as_ref())
}

fn mappings(tables: &TablesV2) -> Result<Option<Ids>> {
    const TABLE: &str = ".mappings";
    let Some(mappings) = &tables.mappings else {
        return Ok(None);
    };
    let ids = Ids::new(TABLE, "mapping_id", mappings.mapping_id)?;
    for row in 0..mappings.mapping_id.len() {
        for (name, column) in [
            ("memory_start", &mappings.memory_start),
            ("memory_limit", &mappings.memory_limit),
            ("file_offset", &mappings.file_offset),
        ] {
            exact::hexadecimal(TABLE, name, Some(column), row)?;
        }
        not_na(TABLE, "filename", &mappings.filename, row)?;
        not_na(TABLE, "build_id", &mappings.build_id, row)?;
        exact::native_id(TABLE, "native_id", mappings.native_id.as_ref(), row)?;
    }
    Ok(Some(ids))
}

fn of_locations(tables: &TablesV2, mappings: Option<&Ids>) -> Result<()> {
    const TABLE: &str = "locations";
    let facts = &tables.location_facts;
    for row in 0..tables.locations.location_id.len() {
        exact::decimal(TABLE, ".line_exact", facts.line_exact.as_ref(), row)?;
        exact::decimal(TABLE, ".column_exact", facts.column_exact.as_ref(), row)?;
        exact::hexadecimal(TABLE, ".address", facts.address.as_ref(), row)?;
        exact::native_id(TABLE, ".native_id", facts.native_id.as_ref(), row)?;
        if facts.column.is_some_and(|c| c[row] != NA && c[row] < 0) {
            return Err(invalid(TABLE, ".column", row, "must not be negative"));
        }
        if facts.frame_type.as_ref().and_then(|t| t.get(row)) == Some("") {
            let rule = "must not be empty; NA is unknown";
            return Err(invalid(TABLE, ".frame_type", row, rule));
        }
        let id = facts.mapping_id.map_or(NA, |ids| ids[row]);
        if id != NA && mappings.and_then(|ids| ids.row(id)).is_none() {
            return Err(dangling(TABLE, ".mapping_id", row, id, ".mappings"));
        }
    }
    Ok(())
}

fn of_functions(tables: &TablesV2) -> Result<()> {
    const TABLE: &str = "functions";
    let facts = &tables.function_facts;
    for row in 0..tables.functions.function_id.len() {
        exact::decimal(
            TABLE,
            ".start_line_exact",
            facts.start_line_exact.as_ref(),
            row,
        )?;
        exact::native_id(TABLE, ".native_id", facts.native_id.as_ref(), row)?;
    }
    Ok(())
}

fn not_na(table: &'static str, column: &'static str, text: &Text, row: usize) -> Result<()> {
    match text.get(row) {
        Some(_) => Ok(()),
        None => Err(invalid(table, column, row, "must not be NA")),
    }
}
