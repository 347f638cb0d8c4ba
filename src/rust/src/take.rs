//! Takes a profile from R: a list of tables of either version.
//!
//! Here it is checked that tables and columns are there and of their type; what
//! is in them is for the core to check.

use crate::r::{INTSXP, LGLSXP, REALSXP, STRSXP, Sexp, VECSXP, utf8};
use profile_core::cancel::Stop;
use profile_core::error::{Error, Invalid, Result};
use profile_core::memory::TryGrow;
use profile_core::model::{Period, Profile, RprofOptions, Source};
use profile_core::rprof;
use profile_core::tables::{
    Comments, Files, Functions, Kind, Labels, Locations, Meta, SamplePlaces, SourceFacts, Table,
    TablesV1, TablesV2, Text, V1, V2, check_v1, check_v2, profile_from_v1, profile_from_v2,
};
use std::collections::HashMap;

/// The tables of one version, not yet checked row by row.
enum Tables<'call> {
    V1(Box<TablesV1<'call>>),
    V2(Box<TablesV2<'call>>),
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

fn tables<'call>(x: Sexp<'call>) -> Result<Tables<'call>> {
    let all = Named::new(x)?;
    let meta = meta(&all)?;
    let row = (0..meta.key.len()).find(|&row| meta.key.get(row) == Some("version"));
    match row.and_then(|row| meta.value.get(row)) {
        Some("1.0") => Ok(Tables::V1(Box::new(tables_v1(&all, meta)?))),
        Some("2.0") => Ok(Tables::V2(Box::new(tables_v2(&all, meta)?))),
        version => Err(Error::Invalid(Invalid {
            table: "meta",
            column: Some("value"),
            row: row.map(|row| row + 1),
            rule: match version {
                Some(version) => {
                    format!("version \"{version}\" is not known, only \"1.0\" and \"2.0\" are")
                }
                None => "must hold the version under the key `version`".to_owned(),
            },
        })),
    }
}

/// A list and the names of its elements.
struct Named<'call> {
    elements: Vec<(&'call str, Sexp<'call>)>,
}

impl<'call> Named<'call> {
    fn new(list: Sexp<'call>) -> Result<Named<'call>> {
        let elements = list.names()?.into_iter().zip(list.elements()).collect();
        Ok(Named { elements })
    }

    fn get(&self, name: &str) -> Option<Sexp<'call>> {
        let found = self.elements.iter().find(|(n, _)| *n == name);
        found.map(|(_, element)| *element)
    }
}

/// The columns of one table, there and of the right type.
struct Columns<'call> {
    table: &'static str,
    columns: Named<'call>,
    rows: usize,
}

fn wrong(table: &'static str, column: Option<&'static str>, rule: impl Into<String>) -> Error {
    Error::Invalid(Invalid {
        table,
        column,
        row: None,
        rule: rule.into(),
    })
}

impl<'call> Columns<'call> {
    /// A table of the schema: all its columns and no other, but for those with a
    /// leading dot.
    fn required(all: &Named<'call>, schema: &Table) -> Result<Columns<'call>> {
        let found = all
            .get(schema.name)
            .ok_or_else(|| wrong(schema.name, None, "it is missing"))?;
        let columns = Columns::of(schema.name, found)?;
        for column in schema.columns {
            columns.check(column.name, column.kind)?;
        }
        for (name, _) in &columns.columns.elements {
            let known = schema.columns.iter().any(|c| c.name == *name);
            if !known && !name.starts_with('.') {
                return Err(wrong(
                    schema.name,
                    None,
                    format!(
                        "the column `{name}` is not part of it; further columns need a leading dot"
                    ),
                ));
            }
        }
        Ok(columns)
    }

    /// A table with a leading dot, where it is there.
    fn optional(
        all: &Named<'call>,
        name: &'static str,
        schema: &[(&'static str, Kind)],
    ) -> Result<Option<Columns<'call>>> {
        let Some(found) = all.get(name) else {
            return Ok(None);
        };
        let columns = Columns::of(name, found)?;
        for (column, kind) in schema {
            columns.check(column, *kind)?;
        }
        Ok(Some(columns))
    }

    fn of(table: &'static str, found: Sexp<'call>) -> Result<Columns<'call>> {
        if found.kind() != VECSXP || !found.inherits(c"data.frame") {
            let rule = format!("must be a data frame, not {}", found.kind_name());
            return Err(wrong(table, None, rule));
        }
        let columns = Named::new(found)?;
        let rows = columns.elements.first().map_or(0, |(_, c)| c.len());
        Ok(Columns {
            table,
            columns,
            rows,
        })
    }

    fn check(&self, name: &'static str, kind: Kind) -> Result<()> {
        let column = self
            .columns
            .get(name)
            .ok_or_else(|| wrong(self.table, Some(name), "it is missing"))?;
        let wanted = match kind {
            Kind::Integer => INTSXP,
            Kind::Double => REALSXP,
            Kind::Text => STRSXP,
            Kind::List => VECSXP,
            Kind::Logical => LGLSXP,
        };
        if column.kind() != wanted || column.inherits(c"factor") {
            return Err(wrong(
                self.table,
                Some(name),
                format!("must be {}, not {}", kind.name(), column.kind_name()),
            ));
        }
        if column.len() != self.rows {
            return Err(wrong(
                self.table,
                Some(name),
                format!(
                    "has {} rows where the first column has {}",
                    column.len(),
                    self.rows
                ),
            ));
        }
        Ok(())
    }

    fn column(&self, name: &'static str) -> Result<Sexp<'call>> {
        self.columns
            .get(name)
            .ok_or_else(|| wrong(self.table, Some(name), "it is missing"))
    }

    fn integers(&self, name: &'static str) -> Result<&'call [i32]> {
        self.column(name)?.integers()
    }

    fn doubles(&self, name: &'static str) -> Result<&'call [f64]> {
        self.column(name)?.doubles()
    }

    fn text(&self, name: &'static str) -> Result<Text<'call>> {
        text(self.column(name)?)
    }

    /// A column with a leading dot: of its type where it is there.
    fn has(&self, name: &'static str, kind: Kind) -> Result<bool> {
        match self.columns.get(name) {
            None => Ok(false),
            Some(_) => self.check(name, kind).map(|()| true),
        }
    }

    fn optional_doubles(&self, name: &'static str) -> Result<Option<&'call [f64]>> {
        Ok(match self.has(name, Kind::Double)? {
            true => Some(self.doubles(name)?),
            false => None,
        })
    }

    fn optional_logicals(&self, name: &'static str) -> Result<Option<&'call [i32]>> {
        Ok(match self.has(name, Kind::Logical)? {
            true => Some(self.integers(name)?),
            false => None,
        })
    }

    fn optional_text(&self, name: &'static str) -> Result<Option<Text<'call>>> {
        Ok(match self.has(name, Kind::Text)? {
            true => Some(self.text(name)?),
            false => None,
        })
    }
}

/// The distinct strings of a column. R holds equal strings once, so they are
/// told apart by their address; two encodings of one text are merged.
fn text<'call>(column: Sexp<'call>) -> Result<Text<'call>> {
    let strings = column.strings()?;
    let mut out = Text::default();
    out.rows
        .try_reserve_exact(strings.len())
        .map_err(|_| Error::Memory("a column of strings"))?;
    let mut by_address = HashMap::new();
    let mut by_text: HashMap<&str, i32> = HashMap::new();
    // A column of sample types takes turns between a few strings.
    let mut recent = [(std::ptr::null_mut(), -1); 8];
    for (i, &string) in strings.iter().enumerate() {
        if let Some((_, row)) = recent.iter().find(|(s, _)| *s == string) {
            out.rows.push(*row);
            continue;
        }
        let row = match by_address.get(&string) {
            Some(row) => *row,
            None => {
                let row = match utf8(string)? {
                    None => -1,
                    Some(text) => match by_text.get(text) {
                        Some(row) => *row,
                        None => {
                            out.distinct.try_push(text, "a column of strings")?;
                            let row = out.distinct.len() as i32 - 1;
                            by_text.insert(text, row);
                            row
                        }
                    },
                };
                by_address.insert(string, row);
                row
            }
        };
        recent[i % recent.len()] = (string, row);
        out.rows.push(row);
    }
    Ok(out)
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

fn tables_v2<'call>(all: &Named<'call>, meta: Meta<'call>) -> Result<TablesV2<'call>> {
    let table = |i: usize| Columns::required(all, &V2[i]);
    let (sources, samples, values, frames) = (table(1)?, table(2)?, table(3)?, table(4)?);
    Ok(TablesV2 {
        meta,
        source_id: sources.integers("source_id")?,
        source_type: sources.text("source_type")?,
        source_uri: sources.text("source_uri")?,
        source_timestamp: sources.doubles("source_timestamp")?,
        facts: SourceFacts {
            period: sources.optional_doubles(".period")?,
            period_type: sources.optional_text(".period_type")?,
            period_unit: sources.optional_text(".period_unit")?,
            duration: sources.optional_doubles(".duration_nanos")?,
            default_type: sources.optional_text(".default_type")?,
            memory: sources.optional_logicals(".memory_profiling")?,
            gc: sources.optional_logicals(".gc_profiling")?,
            line: sources.optional_logicals(".line_profiling")?,
        },
        sample_id: samples.integers("sample_id")?,
        sample_source: samples.integers("source_id")?,
        places: match samples.optional_text(".toplevel_filename")? {
            Some(filename) => {
                samples.check(".toplevel_line", Kind::Integer)?;
                Some(SamplePlaces {
                    filename,
                    line: samples.integers(".toplevel_line")?,
                })
            }
            None => None,
        },
        value_sample: values.integers("sample_id")?,
        value_type: values.text("type")?,
        value_unit: values.text("unit")?,
        value: values.doubles("value")?,
        frame_sample: frames.integers("sample_id")?,
        frame_depth: frames.integers("depth")?,
        frame_location: frames.integers("location_id")?,
        locations: locations(&table(5)?)?,
        functions: functions(&table(6)?)?,
        files: files(all)?,
        labels: labels(all)?,
        comments: comments(all)?,
    })
}

fn files<'call>(all: &Named<'call>) -> Result<Option<Files<'call>>> {
    let schema = [
        ("source_id", Kind::Integer),
        ("number", Kind::Integer),
        ("filename", Kind::Text),
        ("sample_id", Kind::Integer),
    ];
    let Some(table) = Columns::optional(all, ".files", &schema)? else {
        return Ok(None);
    };
    Ok(Some(Files {
        source_id: table.integers("source_id")?,
        number: table.integers("number")?,
        filename: table.text("filename")?,
        sample_id: table.integers("sample_id")?,
    }))
}

fn labels<'call>(all: &Named<'call>) -> Result<Option<Labels<'call>>> {
    let schema = [
        ("sample_id", Kind::Integer),
        ("key", Kind::Text),
        ("str", Kind::Text),
        ("num", Kind::Double),
        ("unit", Kind::Text),
    ];
    let Some(table) = Columns::optional(all, ".labels", &schema)? else {
        return Ok(None);
    };
    Ok(Some(Labels {
        sample_id: table.integers("sample_id")?,
        key: table.text("key")?,
        str: table.text("str")?,
        num: table.doubles("num")?,
        unit: table.text("unit")?,
    }))
}

fn comments<'call>(all: &Named<'call>) -> Result<Option<Comments<'call>>> {
    let schema = [("source_id", Kind::Integer), ("comment", Kind::Text)];
    let Some(table) = Columns::optional(all, ".comments", &schema)? else {
        return Ok(None);
    };
    Ok(Some(Comments {
        source_id: table.integers("source_id")?,
        comment: table.text("comment")?,
    }))
}

fn tables_v1<'call>(all: &Named<'call>, meta: Meta<'call>) -> Result<TablesV1<'call>> {
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
                let Some(ids) = ids.filter(|ids| ids.kind() == INTSXP) else {
                    return Err(Error::Invalid(Invalid {
                        table: "samples",
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
        period: header.and_then(|h| h.interval).map(|interval| Period {
            value: interval as f64,
            type_: "cpu".to_owned(),
            unit: "microseconds".to_owned(),
        }),
        // Version "1.0" keeps no memory figures to write.
        options: header.map(|h| RprofOptions {
            memory: false,
            gc: h.gc,
            line: h.line,
        }),
        ..Source::default()
    })
}
