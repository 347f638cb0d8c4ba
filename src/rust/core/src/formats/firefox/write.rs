//! Writes version 66: the metadata of the file, tables, and a thread for each source.

mod tables;
#[cfg(test)]
mod tests;
mod threads;
mod times;

use crate::analysis::measures::Measure;
use crate::analysis::rows_by_source::RowsBySource;
use crate::analysis::sample_types::left_out_types;
use crate::analysis::source_facts::time;
use crate::error::Result;
use crate::formats::losses::{LossKind, Losses};
use crate::formats::write;
use crate::json::Json;
use crate::limits::cancel::Stop;
use crate::limits::memory::{TryCollect, TryGrow};
use crate::model::Profile;
use std::io::Write;
use tables::Tables;
pub use tables::Text;
use threads::{Run, Thread};
use times::{INTERVAL, elapsed, milliseconds, period};

const VERSION: i64 = 66;
/// The version of Gecko's own form from which version 66 is made.
const GECKO_VERSION: i64 = 24;
/// Name and colour of the categories. Each needs a subcategory.
const CATEGORIES: [(&str, &str); 4] = [
    ("Other", "grey"),
    ("R", "blue"),
    ("Native code", "lightblue"),
    ("Garbage collection", "orange"),
];

/// Writes processed profiles.
#[derive(Debug, Clone, Default)]
pub struct Writer<'a> {
    pub texts: Vec<Text<'a>>,
}

impl write::Writer for Writer<'_> {
    fn write(&self, profile: &Profile, out: &mut dyn Write, stop: Stop) -> Result<Losses> {
        let measures = Measure::all(profile)?;
        let rows = RowsBySource::new(profile)?;
        let tables = Tables::new(profile, stop)?;
        let mut losses = Losses::default();
        let times = profile.sources.iter().map(time).try_vec()?;
        let start = times.iter().flatten().copied().min().unwrap_or(0);
        let mut written = Vec::new();
        for source in profile.source_ids() {
            let run = Run {
                profile,
                source,
                rows: rows.of(source),
                start: times[source.row()].map_or(Some(0.0), |time| elapsed(start, time)),
                origin: start,
            };
            written.try_push(Thread::new(run, &measures)?)?;
        }
        losses.add(LossKind::OtherType, undistinguished(&written)?);
        let types = written.iter().flat_map(Thread::types).try_vec()?;
        losses.add(LossKind::LeftOutType, left_out_types(profile, &types)?);
        let mut json = Json::new(out, stop)?;
        json.object(|json| {
            json.field("meta")?
                .object(|json| write_meta(profile, start, &tables, json))?;
            json.field("libs")?
                .array(|json| tables.write_libs(profile, json))?;
            json.field("shared")?
                .object(|json| tables.write(profile, &self.texts, json))?;
            json.field("threads")?.array(|json| {
                for thread in &written {
                    json.object(|json| thread.write(&tables, &mut losses, json, stop))?;
                }
                Ok(())
            })?;
            for empty in ["counters", "pages", "profilerOverhead"] {
                json.field(empty)?.array(|_| Ok(()))?;
            }
            Ok(())
        })?;
        json.finish()?;
        Ok(losses)
    }
}

/// The number of threads whose weights would be read as values of another type: the format knows times, bytes and counts.
fn undistinguished(threads: &[Thread]) -> Result<usize> {
    let threads = threads.iter().filter(|thread| thread.has_samples());
    // A thread for each type: there may be many threads.
    let mut distinct: Vec<&Thread> = Vec::new();
    for thread in threads.clone() {
        if !distinct.iter().any(|other| thread.has_weight_of(other)) {
            distinct.try_push(thread)?;
        }
    }
    let is_like_another = |thread: &&Thread| {
        let mut others = distinct.iter();
        thread.is_read_as_other_type() || others.any(|other| thread.is_other_type(other))
    };
    Ok(threads.filter(is_like_another).count())
}

fn write_meta(profile: &Profile, start: i64, tables: &Tables, json: &mut Json) -> Result<()> {
    let mut periods = profile.sources.iter().filter_map(period);
    json.field("interval")?
        .number(periods.next().unwrap_or(INTERVAL))?;
    json.field("startTime")?.number(milliseconds(start))?;
    json.field("processType")?.integer(0)?;
    json.field("product")?
        .text(concat!("R package profile ", env!("CARGO_PKG_VERSION")))?;
    json.field("stackwalk")?.integer(1)?;
    json.field("debug")?.flag(false)?;
    json.field("version")?.integer(GECKO_VERSION)?;
    json.field("preprocessedProfileVersion")?.integer(VERSION)?;
    json.field("categories")?.array(|json| {
        CATEGORIES.iter().try_for_each(|(name, colour)| {
            json.object(|json| {
                json.field("name")?.text(name)?;
                json.field("color")?.text(colour)?;
                json.field("subcategories")?.texts(["Other"].into_iter())
            })
        })
    })?;
    json.field("extensions")?.object(|json| {
        json.field("length")?.integer(0)?;
        for column in ["baseURL", "id", "name"] {
            json.field(column)?.array(|_| Ok(()))?;
        }
        Ok(())
    })?;
    json.field("markerSchema")?.array(|_| Ok(()))?;
    json.field("sampleUnits")?.object(|json| {
        json.field("time")?.text("ms")?;
        json.field("eventDelay")?.text("ms")?;
        json.field("threadCPUDelta")?.text("µs")
    })?;
    json.field("symbolicated")?.flag(true)?;
    // R and native code are distinguished if the profile has both.
    json.field("usesOnlyOneStackType")?
        .flag(!tables.has_native())?;
    json.field("sourceCodeIsNotOnSearchfox")?.flag(true)?;
    json.field("keepProfileThreadOrder")?.flag(true)?;
    json.field("initialVisibleThreads")?
        .integers(0..profile.sources.len() as i64)?;
    json.field("initialSelectedThreads")?
        .integers(0..profile.sources.len().min(1) as i64)
}
