//! Version "2.0": flat tables.

use super::checks::{self, dangling, invalid, not_empty};
use super::ids::Ids;
use super::{Functions, Locations, Meta, NA, Text};
use crate::cancel::{self, Stop};
use crate::error::{Error, Result};
use crate::memory::TryGrow;
use crate::model::{
    Label, LocationId, Period, Profile, RprofOptions, Source, SourceFile, SourceId, StackId,
    Toplevel, Values,
};
use foldhash::fast::RandomState;
use std::collections::HashMap;

const ROWS_PER_CHECK: usize = 1 << 20;
const SAMPLES_PER_CHECK: usize = 10_000;

/// The seven tables, and what stands beside them.
#[derive(Debug, Default)]
pub struct TablesV2<'a> {
    pub meta: Meta<'a>,
    pub source_id: &'a [i32],
    pub source_type: Text<'a>,
    pub source_uri: Text<'a>,
    pub source_timestamp: &'a [f64],
    pub facts: SourceFacts<'a>,
    pub sample_id: &'a [i32],
    pub sample_source: &'a [i32],
    pub places: Option<SamplePlaces<'a>>,
    pub value_sample: &'a [i32],
    pub value_type: Text<'a>,
    pub value_unit: Text<'a>,
    pub value: &'a [f64],
    pub frame_sample: &'a [i32],
    pub frame_depth: &'a [i32],
    pub frame_location: &'a [i32],
    pub locations: Locations<'a>,
    pub functions: Functions<'a>,
    pub files: Option<Files<'a>>,
    pub labels: Option<Labels<'a>>,
    pub comments: Option<Comments<'a>>,
}

/// Columns of `sources` with a leading dot, as far as they are there.
#[derive(Debug, Default)]
pub struct SourceFacts<'a> {
    pub period: Option<&'a [f64]>,
    pub period_type: Option<Text<'a>>,
    pub period_unit: Option<Text<'a>>,
    pub duration: Option<&'a [f64]>,
    pub default_type: Option<Text<'a>>,
    pub memory: Option<&'a [i32]>,
    pub gc: Option<&'a [i32]>,
    pub line: Option<&'a [i32]>,
}

/// `samples$.toplevel_filename` and `.toplevel_line`.
#[derive(Debug)]
pub struct SamplePlaces<'a> {
    pub filename: Text<'a>,
    pub line: &'a [i32],
}

/// `.files`: the `#File` lines of Rprof sources.
#[derive(Debug)]
pub struct Files<'a> {
    pub source_id: &'a [i32],
    pub number: &'a [i32],
    pub filename: Text<'a>,
    /// The sample it stands before; NA at the end of the block.
    pub sample_id: &'a [i32],
}

/// `.labels`: key and value pairs of samples.
#[derive(Debug)]
pub struct Labels<'a> {
    pub sample_id: &'a [i32],
    pub key: Text<'a>,
    pub str: Text<'a>,
    pub num: &'a [f64],
    pub unit: Text<'a>,
}

/// `.comments` of sources.
#[derive(Debug)]
pub struct Comments<'a> {
    pub source_id: &'a [i32],
    pub comment: Text<'a>,
}

/// What the checks found on their way and the taking in needs.
struct Checked {
    sources: Ids,
    samples: Ids,
    functions: Ids,
    locations: Ids,
    values: Vec<Values>,
    runs: Runs,
}

/// Which rows of `sample_locations` make the stack of each sample.
struct Runs {
    /// For each sample its first row and the one behind its last.
    of_sample: Vec<(usize, usize)>,
    /// The rows in the order (sample, depth), where the table is in another.
    order: Option<Vec<u32>>,
}

/// Every rule of version "2.0".
pub fn check_v2(tables: &TablesV2, stop: Stop) -> Result<()> {
    check(tables, stop).map(|_| ())
}

fn check(tables: &TablesV2, stop: Stop) -> Result<Checked> {
    checks::meta(&tables.meta, "2.0")?;
    let sources = Ids::new("sources", "source_id", tables.source_id)?;
    for row in 0..tables.source_id.len() {
        not_empty("sources", "source_type", &tables.source_type, row)?;
    }
    let samples = Ids::new("samples", "sample_id", tables.sample_id)?;
    for (row, &id) in tables.sample_source.iter().enumerate() {
        if sources.row(id).is_none() {
            return Err(dangling("samples", "source_id", row, id, "sources"));
        }
    }
    let functions = checks::functions(&tables.functions)?;
    let locations = checks::locations(&tables.locations, &functions)?;
    let values = values(tables, &samples)?;
    cancel::check(stop)?;
    let runs = runs(tables, &samples, &locations, stop)?;
    check_dotted(tables, &sources, &samples)?;
    Ok(Checked {
        sources,
        samples,
        functions,
        locations,
        values,
        runs,
    })
}

/// One column for each type, with every value in its sample's row.
fn values(tables: &TablesV2, samples: &Ids) -> Result<Vec<Values>> {
    const TABLE: &str = "sample_values";
    let (types, units) = (&tables.value_type, &tables.value_unit);
    let count = tables.sample_id.len();
    let mut columns: Vec<Values> = Vec::new();
    let mut pairs: Vec<(i32, i32)> = Vec::new();
    for (row, &id) in tables.value_sample.iter().enumerate() {
        let Some(sample) = samples.row(id) else {
            return Err(dangling(TABLE, "sample_id", row, id, "samples"));
        };
        let pair = (types.rows[row], units.rows[row]);
        let column = match pairs.iter().position(|p| *p == pair) {
            Some(column) => column,
            None => {
                let name = not_empty(TABLE, "type", types, row)?;
                let Some(unit) = units.get(row) else {
                    return Err(invalid(TABLE, "unit", row, "must not be NA"));
                };
                columns.push(Values::absent(name, unit, count)?);
                pairs.try_push(pair, "sample types")?;
                pairs.len() - 1
            }
        };
        let value = tables.value[row];
        if !value.is_finite() {
            return Err(invalid(TABLE, "value", row, "must be a finite number"));
        }
        let slot = &mut columns[column].column[sample];
        if !slot.is_nan() {
            return Err(twice(row, id, &columns[column]));
        }
        *slot = value;
    }
    // The key is (sample, type): a type may come in two units only where no
    // sample has both.
    for (i, a) in columns.iter().enumerate() {
        for b in &columns[i + 1..] {
            if a.type_.name != b.type_.name {
                continue;
            }
            let both = |row: &usize| !a.column[*row].is_nan() && !b.column[*row].is_nan();
            if let Some(sample) = (0..count).find(both) {
                let id = tables.sample_id[sample];
                let of_b = |&row: &usize| {
                    tables.value_sample[row] == id
                        && units.get(row) == Some(b.type_.unit.as_str())
                        && types.get(row) == Some(b.type_.name.as_str())
                };
                let row = (0..tables.value.len()).find(of_b).unwrap_or(0);
                return Err(twice(row, id, b));
            }
        }
    }
    Ok(columns)
}

fn twice(row: usize, sample: i32, values: &Values) -> Error {
    invalid(
        "sample_values",
        "type",
        row,
        format!("sample {sample} has `{}` twice", values.type_.name),
    )
}

fn runs(tables: &TablesV2, samples: &Ids, locations: &Ids, stop: Stop) -> Result<Runs> {
    const TABLE: &str = "sample_locations";
    let (ids, depths) = (tables.frame_sample, tables.frame_depth);
    let mut of_sample = Vec::new();
    of_sample.try_fill(tables.sample_id.len(), (0, 0), "stacks")?;
    let mut sorted = true;
    let mut row = 0;
    let mut next_sample = 0;
    let mut next_check = ROWS_PER_CHECK;
    while row < ids.len() {
        let id = ids[row];
        let Some(sample) = samples.row(id) else {
            return Err(dangling(TABLE, "sample_id", row, id, "samples"));
        };
        sorted &= sample >= next_sample;
        next_sample = sample + 1;
        let start = row;
        let mut depth = 0;
        while row < ids.len() && ids[row] == id {
            if depths[row] < 1 {
                return Err(invalid(
                    TABLE,
                    "depth",
                    row,
                    "must be 1 (innermost) or more, and not NA",
                ));
            }
            sorted &= depths[row] > depth;
            depth = depths[row];
            let location = tables.frame_location[row];
            if locations.row(location).is_none() {
                return Err(dangling(TABLE, "location_id", row, location, "locations"));
            }
            row += 1;
        }
        of_sample[sample] = (start, row);
        if row > next_check {
            next_check = row + ROWS_PER_CHECK;
            cancel::check(stop)?;
        }
    }
    if sorted {
        return Ok(Runs {
            of_sample,
            order: None,
        });
    }
    sorted_runs(tables, samples, of_sample)
}

/// The slow way, for a table in another order than readers make.
fn sorted_runs(
    tables: &TablesV2,
    samples: &Ids,
    mut of_sample: Vec<(usize, usize)>,
) -> Result<Runs> {
    let (ids, depths) = (tables.frame_sample, tables.frame_depth);
    let mut order = Vec::new();
    order
        .try_reserve_exact(ids.len())
        .map_err(|_| Error::Memory("the order of a table"))?;
    order.extend(0..ids.len() as u32);
    let key = |row: u32| {
        let row = row as usize;
        (samples.row(ids[row]), depths[row], row)
    };
    order.sort_unstable_by_key(|&row| key(row));
    of_sample.fill((0, 0));
    for (at, &row) in order.iter().enumerate() {
        let (sample, depth, row) = key(row);
        if let Some(&before) = at.checked_sub(1).and_then(|b| order.get(b)) {
            let (other, same_depth, _) = key(before);
            if other == sample && same_depth == depth {
                return Err(invalid(
                    "sample_locations",
                    "depth",
                    row,
                    format!("sample {} has depth {depth} twice", ids[row]),
                ));
            }
        }
        if let Some(run) = sample.and_then(|s| of_sample.get_mut(s)) {
            if run.1 == 0 {
                run.0 = at;
            }
            run.1 = at + 1;
        }
    }
    Ok(Runs {
        of_sample,
        order: Some(order),
    })
}

fn check_dotted(tables: &TablesV2, sources: &Ids, samples: &Ids) -> Result<()> {
    if let Some(files) = &tables.files {
        for (row, &id) in files.source_id.iter().enumerate() {
            if sources.row(id).is_none() {
                return Err(dangling(".files", "source_id", row, id, "sources"));
            }
            if files.number[row] < 0 {
                return Err(invalid(".files", "number", row, "must be 0 or more"));
            }
            if files.filename.get(row).is_none() {
                return Err(invalid(".files", "filename", row, "must not be NA"));
            }
        }
    }
    if let Some(labels) = &tables.labels {
        for (row, &id) in labels.sample_id.iter().enumerate() {
            if samples.row(id).is_none() {
                return Err(dangling(".labels", "sample_id", row, id, "samples"));
            }
            not_empty(".labels", "key", &labels.key, row)?;
            let num = labels.num[row];
            if !num.is_nan() && (num.fract() != 0.0 || num.abs() > 9.2e18) {
                return Err(invalid(".labels", "num", row, "must be a whole number"));
            }
        }
    }
    if let Some(comments) = &tables.comments {
        for (row, &id) in comments.source_id.iter().enumerate() {
            if sources.row(id).is_none() {
                return Err(dangling(".comments", "source_id", row, id, "sources"));
            }
        }
    }
    Ok(())
}

/// Checks the tables and makes a profile of them.
pub fn profile_from_v2(tables: &TablesV2, stop: Stop) -> Result<Profile> {
    let checked = check(tables, stop)?;
    let mut profile = Profile::default();
    let locations = checks::take_locations(
        &mut profile,
        &tables.functions,
        &checked.functions,
        &tables.locations,
    )?;
    for row in 0..tables.source_id.len() {
        profile.add_source(source(tables, row))?;
    }
    let stacks = take_stacks(&mut profile, tables, &checked, &locations, stop)?;
    for (&stack, &source) in stacks.iter().zip(tables.sample_source) {
        let source = checked.sources.row(source).unwrap_or(0) as u32;
        profile.samples.stack.try_push(stack, "samples")?;
        profile
            .samples
            .source
            .try_push(SourceId(source), "samples")?;
    }
    profile.values = checked.values;
    take_dotted(&mut profile, tables, &checked.sources, &checked.samples)?;
    Ok(profile)
}

/// The stack of each sample. Runs of rows repeat, so a run is looked up as the
/// bytes it is, before anybody looks at its locations.
fn take_stacks<'a>(
    profile: &mut Profile,
    tables: &TablesV2<'a>,
    checked: &Checked,
    locations: &[LocationId],
    stop: Stop,
) -> Result<Vec<StackId>> {
    let mut known: HashMap<&'a [i32], StackId, RandomState> = HashMap::default();
    let mut stacks = Vec::new();
    let mut stack: Vec<LocationId> = Vec::new();
    for (row, &(start, end)) in checked.runs.of_sample.iter().enumerate() {
        if row % SAMPLES_PER_CHECK == 0 {
            cancel::check(stop)?;
        }
        let run = match checked.runs.order {
            Some(_) => &[],
            None => &tables.frame_location[start..end],
        };
        if let Some(&stack) = known.get(run).filter(|_| !run.is_empty()) {
            stacks.try_push(stack, "samples")?;
            continue;
        }
        stack.clear();
        for at in start..end {
            let frame = match &checked.runs.order {
                Some(order) => order[at] as usize,
                None => at,
            };
            if let Some(location) = checked.locations.row(tables.frame_location[frame]) {
                stack.try_push(locations[location], "a stack")?;
            }
        }
        let id = profile.stacks.intern(&stack)?;
        known
            .try_reserve(1)
            .map_err(|_| Error::Memory("the index of stacks"))?;
        known.insert(run, id);
        stacks.try_push(id, "samples")?;
    }
    Ok(stacks)
}

fn source(tables: &TablesV2, row: usize) -> Source {
    let facts = &tables.facts;
    let text = |column: &Option<Text>| column.as_ref()?.get(row).map(str::to_owned);
    let number = |column: Option<&[f64]>| column.map(|c| c[row]).filter(|v| !v.is_nan());
    let flag = |column: Option<&[i32]>| column.map(|c| c[row]).filter(|v| *v != NA);
    let options = match (flag(facts.memory), flag(facts.gc), flag(facts.line)) {
        (None, None, None) => None,
        (memory, gc, line) => Some(RprofOptions {
            memory: memory == Some(1),
            gc: gc == Some(1),
            line: line == Some(1),
        }),
    };
    Source {
        kind: tables.source_type.get(row).unwrap_or_default().to_owned(),
        uri: tables.source_uri.get(row).map(str::to_owned),
        timestamp: Some(tables.source_timestamp[row]).filter(|v| !v.is_nan()),
        period: number(facts.period).map(|value| Period {
            value,
            type_: text(&facts.period_type).unwrap_or_default(),
            unit: text(&facts.period_unit).unwrap_or_default(),
        }),
        duration: number(facts.duration).map(|v| v as i64),
        default_type: text(&facts.default_type),
        comments: Vec::new(),
        options,
        files: Vec::new(),
    }
}

fn take_dotted(
    profile: &mut Profile,
    tables: &TablesV2,
    sources: &Ids,
    samples: &Ids,
) -> Result<()> {
    if let Some(places) = &tables.places {
        for sample in 0..places.line.len() {
            let (Some(filename), line) = (places.filename.get(sample), places.line[sample]) else {
                continue;
            };
            let filename = profile.strings.intern(filename)?;
            profile.samples.toplevel.try_push(
                Toplevel {
                    sample,
                    filename,
                    line: line.max(0),
                },
                "samples",
            )?;
        }
    }
    if let Some(files) = &tables.files {
        for row in 0..files.source_id.len() {
            let file = SourceFile {
                number: files.number[row].max(0) as u32,
                filename: profile
                    .strings
                    .intern(files.filename.get(row).unwrap_or(""))?,
                // A sample that was filtered away leaves its file to the next.
                before: samples
                    .row(files.sample_id[row])
                    .unwrap_or_else(|| next_sample(tables, files.sample_id[row])),
            };
            if let Some(source) = sources.row(files.source_id[row]) {
                profile.sources[source].files.try_push(file, "files")?;
            }
        }
    }
    if let Some(labels) = &tables.labels {
        for row in 0..labels.sample_id.len() {
            let mut intern = |text: Option<&str>| match text {
                Some(text) => profile.strings.intern(text).map(Some),
                None => Ok(None),
            };
            let key = labels.key.get(row).unwrap_or("");
            let label = Label {
                sample: samples.row(labels.sample_id[row]).unwrap_or(0),
                str: intern(labels.str.get(row))?,
                unit: intern(labels.unit.get(row))?,
                num: Some(labels.num[row])
                    .filter(|v| !v.is_nan())
                    .map(|v| v as i64),
                key: profile.strings.intern(key)?,
            };
            profile.labels.try_push(label, "labels")?;
        }
        profile.labels.sort_by_key(|label| label.sample);
    }
    if let Some(comments) = &tables.comments {
        for (row, &id) in comments.source_id.iter().enumerate() {
            if let (Some(source), Some(comment)) = (sources.row(id), comments.comment.get(row)) {
                profile.sources[source].comments.push(comment.to_owned());
            }
        }
    }
    Ok(())
}

/// The row of the first sample with a greater id; NA is the end.
fn next_sample(tables: &TablesV2, id: i32) -> usize {
    let end = tables.sample_id.len();
    if id == NA {
        return end;
    }
    tables
        .sample_id
        .iter()
        .position(|&other| other > id)
        .unwrap_or(end)
}
