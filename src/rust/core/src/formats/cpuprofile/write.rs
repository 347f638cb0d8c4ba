//! Writes the call tree with the lines in each function, and the samples of all sources, one after the other.
//!
//! A sample lasts until the next one, so after the last one there is a sample of the outermost node. Without it,
//! viewers would lose the time of the last sample.

use super::names::ROOT;
use crate::analysis::frame_names::shown;
use crate::analysis::measures::Measure;
use crate::analysis::paths::{Paths, ROOT as NO_PARENT};
use crate::analysis::rows_by_source::RowsBySource;
use crate::analysis::source_facts::{default_type, time};
use crate::collections::{Interner, Lists, TextList};
use crate::error::{Error, Result};
use crate::formats::losses::{LossKind, Losses};
use crate::formats::write;
use crate::json::Json;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, filled, written};
use crate::message;
use crate::model::{LocationId, Profile, SourceId};
use std::io::Write;

/// The id of the outermost node. Those of other nodes follow.
const ROOT_ID: i64 = 1;

/// Writes `.cpuprofile` files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Writer;

impl write::Writer for Writer {
    fn write(&self, profile: &Profile, out: &mut dyn Write, stop: Stop) -> Result<Losses> {
        let measures = Measure::all(profile)?;
        let measure = time_of(profile, &measures)?.unwrap_or(&Measure::NONE);
        let rows = RowsBySource::new(profile)?;
        let samples = Samples {
            profile,
            measure,
            rows: &rows,
        };
        let tree = Tree::new(&samples, stop)?;
        let mut losses = Losses::default();
        losses.add(LossKind::NotPositive, tree.left_out.not_positive);
        losses.add(LossKind::SampleWithoutValue, tree.left_out.without_time);
        let sources = profile.source_ids();
        let recorded = sources.filter(|&source| !rows.of(source).is_empty());
        losses.add(LossKind::JoinedSource, recorded.count().saturating_sub(1));
        let start = profile.sources.iter().find_map(time);
        let start = start.map_or(0.0, |time| time as f64 / 1e3);
        let mut json = Json::new(out, stop)?;
        json.object(|json| {
            json.field("nodes")?
                .array(|json| tree.write(profile, json))?;
            json.field("startTime")?.number(start)?;
            json.field("endTime")?.number(start + tree.sum)?;
            json.field("samples")?.array(|json| {
                samples.for_each(stop, |row, _| {
                    let stack = profile.samples.stack[row];
                    json.integer(tree.id_of_stack[stack.row()])
                })?;
                json.integer(ROOT_ID)
            })?;
            json.field("timeDeltas")?.array(|json| {
                json.integer(0)?;
                samples
                    .for_each(stop, |_, time| json.number(time))
                    .map(drop)
            })
        })?;
        json.finish()?;
        Ok(losses)
    }
}

/// The sample type that is written: the default type if it is a time, else the first type that is a time. `None` if
/// there are no samples.
fn time_of<'m, 'a>(
    profile: &'a Profile,
    measures: &'m [Measure<'a>],
) -> Result<Option<&'m Measure<'a>>> {
    let types = measures.iter().filter_map(Measure::as_type);
    let types = types.try_vec()?;
    let mut defaults = profile.sources.iter();
    let default = defaults.find_map(|source| default_type(source, &types));
    let is_time = |measure: &&Measure| measure.nanoseconds_of_samples().is_some();
    let is_default = |measure: &&Measure| default.is_some_and(|name| name == measure.key());
    let mut times = measures.iter().filter(is_time);
    let first = times.clone().next();
    match times.find(is_default).or(first) {
        None if !profile.samples.is_empty() => Err(Error::Lossy(message!(
            "A .cpuprofile file contains times, but the profile has no sample type with a unit of time."
        ))),
        time => Ok(time),
    }
}

/// The number of samples that are left out, by reason.
#[derive(Debug, Clone, Copy, Default)]
struct LeftOut {
    not_positive: usize,
    without_time: usize,
}

/// The samples that are written.
struct Samples<'a, 'm> {
    profile: &'a Profile,
    measure: &'m Measure<'a>,
    rows: &'m RowsBySource,
}

impl Samples<'_, '_> {
    /// Calls `each` with the row and the microseconds of each sample, as far as they are known and not negative.
    fn for_each(
        &self,
        stop: Stop,
        mut each: impl FnMut(usize, f64) -> Result<()>,
    ) -> Result<LeftOut> {
        let nanoseconds = self.measure.nanoseconds().unwrap_or(1e3);
        let mut left_out = LeftOut::default();
        for source in self.profile.source_ids() {
            for (count, &row) in self.rows.of(source).iter().enumerate() {
                cancel::at_row(count, stop)?;
                let time = self.time(row, source, nanoseconds);
                if time.is_nan() {
                    left_out.without_time += 1;
                } else if time < 0.0 {
                    left_out.not_positive += 1;
                } else {
                    each(row, time)?;
                }
            }
        }
        Ok(left_out)
    }

    #[inline]
    fn time(&self, row: usize, source: SourceId, nanoseconds: f64) -> f64 {
        self.measure.value(row, source) * nanoseconds / 1e3
    }
}

/// The tree of calls of functions.
struct Tree {
    paths: Paths,
    /// The functions of nodes.
    functions: Vec<Option<Seen>>,
    id_of_stack: Vec<i64>,
    /// By node, the number of samples.
    hits: Vec<i64>,
    root_hits: i64,
    /// Nodes, lines, and the number of samples in each, by node.
    ticks: Vec<(u32, i64, i64)>,
    /// Microseconds of all samples.
    sum: f64,
    left_out: LeftOut,
}

impl Tree {
    fn new(samples: &Samples, stop: Stop) -> Result<Tree> {
        let profile = samples.profile;
        let mut counts = filled(profile.stacks.len(), 0)?;
        let mut sum = 0.0;
        let left_out = samples.for_each(stop, |row, time| {
            counts[profile.samples.stack[row].row()] += 1;
            sum += time;
            Ok(())
        })?;
        let (groups, functions) = functions(profile)?;
        let mut tree = Tree {
            paths: Paths::default(),
            functions,
            id_of_stack: filled(profile.stacks.len(), ROOT_ID)?,
            hits: Vec::new(),
            root_hits: 0,
            ticks: Vec::new(),
            sum,
            left_out,
        };
        let mut space = Vec::new();
        for (row, stack) in profile.stacks.ids().enumerate() {
            cancel::at_row(row, stop)?;
            let count = counts[row];
            if count == 0 {
                continue;
            }
            let stack = profile.stacks.get(stack).unpacked(&mut space)?;
            let frames = stack.iter().rev().copied();
            let Some(node) = tree.paths.add(frames, &groups)? else {
                tree.root_hits += count;
                continue;
            };
            tree.id_of_stack[row] = id(node);
            tree.hits.try_fill(tree.paths.nodes().len(), 0)?;
            tree.hits[node as usize] += count;
            let line = stack
                .first()
                .map(|&leaf| shown(profile, leaf))
                .transpose()?;
            if let Some(frame) = line.filter(|frame| frame.line > 0) {
                tree.ticks.try_push((node, frame.line, count))?;
            }
        }
        tree.ticks.sort_unstable();
        Ok(tree)
    }

    fn write(&self, profile: &Profile, json: &mut Json) -> Result<()> {
        let nodes = self.paths.nodes();
        // The children of the outermost node are in an additional group after the groups of all other nodes.
        let parent_of = nodes.iter().map(|node| match node.parent {
            NO_PARENT => nodes.len(),
            parent => parent as usize,
        });
        let children = Lists::grouped(nodes.len() + 1, parent_of)?;
        let list = |node: usize, json: &mut Json| -> Result<()> {
            let children = children.get(node);
            if children.is_empty() {
                Ok(())
            } else {
                json.field("children")?
                    .integers(children.iter().map(|&c| id(c)))
            }
        };
        json.object(|json| {
            json.field("id")?.integer(ROOT_ID)?;
            let frame = call_frame(ROOT, "", 0, 0)?;
            json.field("callFrame")?.prepared(frame.as_bytes())?;
            json.field("hitCount")?.integer(self.root_hits)?;
            list(nodes.len(), json)
        })?;
        // Script 0 is none.
        let mut scripts: Interner<TextList> = Interner::default();
        scripts.intern("")?;
        let mut ticks = self.ticks.as_slice();
        for (row, node) in nodes.iter().enumerate() {
            json.object(|json| {
                json.field("id")?.integer(id(row as u32))?;
                let seen = self.functions[node.group as usize];
                let frame = match seen {
                    Some(seen) => frame_of(profile, seen, &mut scripts)?,
                    None => call_frame("", "", 0, 0)?,
                };
                json.field("callFrame")?.prepared(frame.as_bytes())?;
                let hits = self.hits.get(row).copied().unwrap_or(0);
                json.field("hitCount")?.integer(hits)?;
                list(row, json)?;
                let count = ticks.partition_point(|tick| tick.0 as usize <= row);
                let (mine, rest) = ticks.split_at(count);
                ticks = rest;
                if mine.is_empty() {
                    Ok(())
                } else {
                    json.field("positionTicks")?
                        .array(|json| write_ticks(mine, json))
                }
            })?;
        }
        Ok(())
    }
}

/// Writes the lines of a node, with the counts of equal lines summed.
fn write_ticks(ticks: &[(u32, i64, i64)], json: &mut Json) -> Result<()> {
    for ticks in ticks.chunk_by(|one, other| one.1 == other.1) {
        json.object(|json| {
            json.field("line")?
                .integer(ticks.first().map_or(0, |tick| tick.1))?;
            json.field("ticks")?
                .integer(ticks.iter().map(|tick| tick.2).sum())
        })?;
    }
    Ok(())
}

/// The id of a node of the tree.
fn id(node: u32) -> i64 {
    i64::from(node) + ROOT_ID + 1
}

/// A location of a function, and the first line of all its locations; 0 if none has one.
type Seen = (LocationId, i64);

/// The function of each location as a number, and the information about each function. Locations without a function
/// have one each.
fn functions(profile: &Profile) -> Result<(Vec<u32>, Vec<Option<Seen>>)> {
    let count = profile.functions.len();
    let mut of_group: Vec<Option<Seen>> = filled(count + profile.locations.len(), None)?;
    let mut groups = Vec::new();
    for id in profile.locations.ids() {
        let location = profile.locations.get(id);
        let group = match location.function {
            Some(function) => function.row(),
            None => count + id.row(),
        };
        let (_, first) = of_group[group].get_or_insert((id, 0));
        match location.line {
            Some(line) if line > 0 && (*first == 0 || line < *first) => *first = line,
            _ => {}
        }
        groups.try_push(group as u32)?;
    }
    Ok((groups, of_group))
}

/// The function of a location, with a link to where it starts, or else to its first line.
/// `scripts` are the files, which get numbers.
fn frame_of(
    profile: &Profile,
    (location, first_line): Seen,
    scripts: &mut Interner<TextList>,
) -> Result<String> {
    let frame = shown(profile, location)?;
    let function = profile.function_of(location);
    let start = function.map_or(0, |function| function.start_line);
    let line = if start > 0 { start } else { first_line };
    let script = scripts.intern(frame.file)?;
    call_frame(&frame.name, frame.file, line, script)
}

/// A function. V8 writes -1 for unknown numbers.
fn call_frame(name: &str, file: &str, start_line: i64, script: u32) -> Result<String> {
    let line = if start_line > 0 { start_line - 1 } else { -1 };
    written(format_args!(
        "{{\"functionName\":\"{}\",\"scriptId\":\"{script}\",\"url\":\"{}\",\
             \"lineNumber\":{line},\"columnNumber\":-1}}",
        crate::text::Escaped(name),
        crate::text::Escaped(file),
    ))
}
