//! The data of a page as JSON. `formats::page` reads them again: a change of this layout is one of that reader too.
//!
//! Columns are arrays. "Delta" marks arrays of differences to the previous number (for the first one,
//! to 0), which compress better.
//!
//! | field | content |
//! |---|---|
//! | `format` | 1, the version of this layout |
//! | `generator`, `title` | texts |
//! | `options` | [`Options`](super::content::Options), by their names |
//! | `strings` | all texts to which other fields refer by their row; the first is empty |
//! | `functions` | columns `name`, `file`, `package` (strings) and `line`, the first one; 0 is unknown; and `found`, 1 if a comparison of runs found a difference, which is missing if there are too few runs |
//! | `frames` | columns `function`, `line` (0: unknown) and `kind` (a string); and, if there are frames with one, `address` (a string) of frames without a symbol, and `alike` (a string), such as `$key* (20)`: the name of nodes and their siblings in a heap snapshot if they differ in a key only |
//! | `nodes` | columns `depth` (delta) and `frame`: the tree in preorder. Node 0 is the root, with depth 0 and frame -1 |
//! | `types` | objects with `name`, `unit` `allocated` (whether the values are allocations, which belong to the caller of a garbage collection), `since` (whether they are what has happened since the previous sample, so that allocations do not belong to native code) and `bound` (whether they are lower bounds): the sample types that may be summed |
//! | `type`, `counts`, `bytes` | rows of `types`: the default, the counts of samples, and allocated bytes; -1: none |
//! | `sources` | objects with `name` (of the process, if it is known, and the last part of the URI; or `worker 1 of 2, pid 1234`), `type`, `period` (nanoseconds, or null), `start` (seconds since 1970, or null), `samples` (their number, 0 for a source without counts in a profile with counts), `base` (whether other sources are compared with this one), `clock`, the CPU time of R's thread in nanoseconds, if it is known, and, for processes that work together, `seconds`, how long they were recorded, or null |
//! | `used` | only if the time of the samples differs from it: the CPU time that R's thread used, in seconds |
//! | `threads` | only if other threads than R's have used CPU time: that of R's thread, `r`, and of threads that have ended, `ended`, in nanoseconds; `others`, objects with the `name` of a library, `count`, the number of its threads, and `cpu`; and `processors`, how many may be used, if that is known |
//! | `heap` | only if a source is a heap snapshot: the kinds of its frames, in the order of their colours |
//! | `comparison` | only if the sources can be compared with the base: texts `head`, `whole` and `verdict` (of the whole run), lists of texts `notes`, `columns` and `cells` (row by row) of the table of differences, and `expression`: the names of the outermost function in the base and in the new version, and of both together, if they differ |
//! | `parallel` | only if it is known what the workers of parallel work did: texts `sentence` and lists of texts `columns`, `cells` (row by row) of a table, and `notes` |
//! | `labels` | objects with `key`, `value` and a column `set` (delta): the sets of labels that contain this one. The value `34 others` combines 34 values with fewer samples. Samples with the same labels belong to the same set |
//! | `values` | objects with `source`, `set` if there are labels, and `type`, and columns `node` (delta) and `value`: the sums of samples that end in these nodes, if they are not 0. Node 0: samples without a stack. In differences, which have negative values, also `whole`, to which shares are relative |
//! | `order` | objects with `source`, columns `node` (delta), `run`: how many consecutive samples have this node, and `set` if there are labels: the set of these samples; and `values`, objects with `type`, `constant`, and columns `sample` (delta, from 0) and `value` of samples whose value is not the constant. A type without an object is 0 in all samples (allocations that were recorded beside samples have no place in their order, so `values` has sums of these), and a source without one has no order. If it would be too large, also `slices` with `nanoseconds` or `samples` (the size of a slice) and `first` (delta, the first sample of each slice): the samples of a slice are sorted by node, and a run has the sum of its values at its first sample. If all samples have a time, also `times` with `start` (seconds since 1970), `step` (nanoseconds), and columns `sample` (delta) and `at` (nanoseconds since the start): where the time is not the previous one plus steps, and `each`, the step from there, if it is not always the same. If memory in use was recorded at each sample, also `memory` with `samples` (the size of a part) and `bytes`: the most that R's objects took, garbage included, in each part of so many samples, 0 if it is unknown |
//! | `plumbing` | the nodes that frameworks add (delta): functions that only run other code |
//! | `mine` | the files (strings) whose code is the user's |
//! | `texts` | objects with `file` (a string), `text`, and `changed`: whether it was changed after recording |

use super::content::{Comparison, Page, Parallel, SourceText};
use super::labels::{Labels, Value};
use super::order;
use super::samples::Samples;
use super::tree::{Frame, Function, Tree};
use crate::analysis::allocations::{Measured, is_allocation};
use crate::analysis::cpu_clock::{CpuTime, used_seconds};
use crate::analysis::recorded::allocated;
use crate::analysis::sample_types::summed_type;
use crate::analysis::source_facts::{attribute, file_name, process, program};
use crate::analysis::threads::Threads;
use crate::error::Result;
use crate::json::Json;
use crate::limits::cancel::Stop;
use crate::limits::memory::{TryAdd, TryCollect, TryPut};
use crate::message;
use crate::model::heap::{HeapFrame, SNAPSHOT};
use crate::model::{PROCESS_ROLE, Period, Profile, Source, Values, is_summable};
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};
use std::io::Write;

/// The version of this layout.
const FORMAT: i64 = 1;

/// Writes the data.
pub fn write(page: &Page, profile: &Profile, out: &mut dyn Write, stop: Stop) -> Result<()> {
    let tree = Tree::new(profile, stop)?;
    let types = profile.values.iter();
    let types = types.filter(|v| is_summable(&v.type_.name, &v.type_.unit));
    let types = types.try_vec()?;
    let labels = if page.options.labels {
        Labels::new(profile, stop)?
    } else {
        Labels::default()
    };
    let has_base = page.sources < profile.sources.len();
    let samples = Samples::new(profile, &tree, &types, &labels, stop)?;
    let mut json = Json::new(out, stop)?;
    json.object(|json| {
        json.field("format")?.integer(FORMAT)?;
        json.field("generator")?.text(page.generator)?;
        json.field("title")?.text(page.title)?;
        json.field("options")?.object(|json| {
            let options = &page.options;
            options.each(|name, value| json.field(name)?.flag(value))
        })?;
        write_tree(page, &tree, json)?;
        write_types(profile, &types, json)?;
        json.field("sources")?.array(|json| {
            let mut sources = profile.source_ids().zip(&profile.sources);
            sources.try_for_each(|(id, source)| {
                let is_base = id.row() >= page.sources;
                json.object(|json| write_source(profile, source, samples.count(id), is_base, json))
            })
        })?;
        if profile.sources.iter().any(|source| source.kind == SNAPSHOT) {
            let kinds = HeapFrame::ALL.into_iter().map(HeapFrame::name);
            json.field("heap")?.texts(kinds)?;
        }
        if let (false, Some(used)) = (has_base, used_seconds(profile)?) {
            json.field("used")?.number(used)?;
        }
        if let (false, Some(threads)) = (has_base, Threads::shown(profile)?) {
            json.field("threads")?
                .object(|json| write_threads(&threads, json))?;
        }
        if let Some(comparison) = &page.comparison {
            json.field("comparison")?
                .object(|json| write_comparison(comparison, json))?;
        }
        if let Some(parallel) = &page.parallel {
            json.field("parallel")?
                .object(|json| write_parallel(parallel, json))?;
        }
        json.field("labels")?.array(|json| {
            let mut pairs = (0..).zip(&labels.pairs);
            pairs.try_for_each(|(row, (key, value))| {
                json.object(|json| {
                    json.field("key")?.text(key.text(profile))?;
                    match value {
                        Value::Text(text) => json.field("value")?.text(profile.strings.get(*text)),
                        Value::Others(count) => {
                            json.field("value")?.text(&message!("{count} others"))
                        }
                    }?;
                    json.field("set")?.deltas(labels.sets_with(row))
                })
            })
        })?;
        json.field("values")?
            .array(|json| samples.write_sums(json))?;
        json.field("order")?.array(|json| {
            if page.options.timeline {
                order::write(&samples, json)
            } else {
                Ok(())
            }
        })?;
        json.field("plumbing")?
            .deltas(tree.plumbing.iter().copied())?;
        let mine = page.mine.iter().filter_map(|file| tree.strings.find(file));
        json.field("mine")?.integers(mine.map(i64::from))?;
        json.field("texts")?
            .array(|json| write_texts(page, &tree, json))
    })?;
    json.finish()
}

fn write_threads(threads: &Threads, json: &mut Json) -> Result<()> {
    json.field("r")?.number(threads.r)?;
    json.field("others")?.array(|json| {
        threads.others.iter().try_for_each(|one| {
            json.object(|json| {
                json.field("name")?.text(&one.name)?;
                json.field("count")?.number(one.count)?;
                json.field("cpu")?.number(one.cpu)
            })
        })
    })?;
    json.field("ended")?.number(threads.ended)?;
    match threads.processors {
        Some(processors) => json.field("processors")?.number(processors),
        None => Ok(()),
    }
}

fn write_tree(page: &Page, tree: &Tree, json: &mut Json) -> Result<()> {
    json.field("strings")?.texts(tree.strings.iter())?;
    json.field("functions")?.object(|json| {
        let functions = || tree.functions.iter();
        json.field("name")?
            .integers(functions().map(|f| i64::from(f.name)))?;
        json.field("file")?
            .integers(functions().map(|f| i64::from(f.file)))?;
        json.field("line")?.integers(functions().map(|f| f.line))?;
        json.field("package")?
            .integers(functions().map(|f| i64::from(f.package)))?;
        let Some(found) = &page.found else {
            return Ok(());
        };
        let mut names: HashSet<&str, RandomState> = HashSet::default();
        for &name in found {
            names.try_add(name)?;
        }
        let is_found = |f: &Function| names.contains(tree.strings.get(f.name));
        json.field("found")?
            .integers(functions().map(|f| i64::from(is_found(f))))
    })?;
    json.field("frames")?.object(|json| {
        let frames = || tree.frames.iter();
        json.field("function")?
            .integers(frames().map(|f| i64::from(f.function)))?;
        json.field("line")?
            .integers(frames().map(|f| i64::from(f.line)))?;
        json.field("kind")?
            .integers(frames().map(|f| i64::from(f.kind)))?;
        let mut unless_empty = |name: &str, text: fn(&Frame) -> u32| {
            if frames().all(|f| text(f) == 0) {
                return Ok(());
            }
            json.field(name)?
                .integers(frames().map(|f| i64::from(text(f))))
        };
        unless_empty("address", |f| f.address)?;
        unless_empty("alike", |f| f.alike)
    })?;
    json.field("nodes")?.object(|json| {
        let root = std::iter::once(0);
        json.field("depth")?
            .deltas(root.chain(tree.depths.iter().copied()))?;
        let frames = tree.frame_of_node.iter().map(|&frame| i64::from(frame));
        json.field("frame")?
            .integers(std::iter::once(-1).chain(frames))
    })
}

fn write_types(profile: &Profile, types: &[&Values], json: &mut Json) -> Result<()> {
    json.field("types")?.array(|json| {
        types.iter().try_for_each(|values| {
            json.object(|json| {
                json.field("name")?.text(&values.type_.name)?;
                json.field("unit")?.text(&values.type_.unit)?;
                json.field("allocated")?.flag(is_allocation(Some(values)))?;
                let measured = Measured::of(profile, Some(values));
                json.field("since")?.flag(measured.since_previous)?;
                json.field("bound")?.flag(measured.is_lower_bound)
            })
        })
    })?;
    let row = |wanted: Option<&Values>| {
        let wanted = wanted?;
        types
            .iter()
            .position(|values| std::ptr::eq(*values, wanted))
    };
    let mut field = |name: &str, values| {
        let row = row(values).map_or(-1, |row| row as i64);
        json.field(name)?.integer(row)
    };
    field("type", summed_type(profile, None)?)?;
    field("counts", profile.counts())?;
    field("bytes", allocated(profile))
}

fn write_source(
    profile: &Profile,
    source: &Source,
    samples: f64,
    is_base: bool,
    json: &mut Json,
) -> Result<()> {
    let uri = source.uri.as_deref().unwrap_or_default();
    let period = source.period.as_ref().and_then(Period::nanoseconds);
    let name = file_name(uri);
    match (process(profile, source), program(profile, source)) {
        (Some(process), _) => json.field("name")?.text(&process)?,
        (None, Some(program)) => json.field("name")?.text(&message!("{program} {name}"))?,
        (None, None) => json.field("name")?.text(name)?,
    }
    json.field("type")?.text(source.kind.as_str())?;
    json.field("period")?.number(period.unwrap_or(f64::NAN))?;
    json.field("start")?
        .number(source.timestamp.unwrap_or(f64::NAN))?;
    json.field("samples")?.number(samples)?;
    json.field("base")?.flag(is_base)?;
    let time = CpuTime::of_source(profile, source, samples);
    if let Some(time) = time.filter(|_| profile.counts().is_some()) {
        json.field("clock")?.number(time.clock)?;
    }
    if attribute(profile, source, PROCESS_ROLE).is_some() {
        let seconds = source
            .duration
            .map_or(f64::NAN, |length| length as f64 / 1e9);
        json.field("seconds")?.number(seconds)?;
    }
    Ok(())
}

fn write_comparison(comparison: &Comparison, json: &mut Json) -> Result<()> {
    json.field("head")?.text(comparison.head)?;
    json.field("whole")?.text(comparison.whole)?;
    json.field("verdict")?.text(comparison.verdict)?;
    let mut texts = |name: &str, texts: &[&str]| json.field(name)?.texts(texts.iter().copied());
    texts("notes", &comparison.notes)?;
    texts("columns", &comparison.columns)?;
    texts("cells", &comparison.cells)?;
    texts("expression", &comparison.expression)
}

fn write_parallel(parallel: &Parallel, json: &mut Json) -> Result<()> {
    json.field("sentence")?.text(parallel.sentence)?;
    let mut texts = |name: &str, texts: &[&str]| json.field(name)?.texts(texts.iter().copied());
    texts("columns", &parallel.columns)?;
    texts("cells", &parallel.cells)?;
    texts("notes", &parallel.notes)
}

/// Writes the text of each file that has a function in the tree.
fn write_texts(page: &Page, tree: &Tree, json: &mut Json) -> Result<()> {
    let mut files = tree.functions.iter().map(|f| f.file).try_vec()?;
    files.sort_unstable();
    files.dedup();
    let mut texts: HashMap<&str, &SourceText, RandomState> = HashMap::default();
    // If there are several texts of a file, the first one is written.
    for text in page.texts.iter().rev() {
        texts.try_put(text.name, text)?;
    }
    // Row 0 is the empty text, which is not a file.
    for file in files.into_iter().filter(|&file| file != 0) {
        let name = tree.strings.get(file);
        let Some(source) = texts.get(name) else {
            continue;
        };
        json.object(|json| {
            json.field("file")?.integer(i64::from(file))?;
            json.field("text")?.text(source.text)?;
            json.field("changed")?.flag(source.changed)
        })?;
    }
    Ok(())
}
