//! Describes the format, and reads a file.
//!
//! Each thread with samples or allocations becomes a source. Markers, counters, categories and pages are skipped.

use super::tables::{Mappings, Part};
use super::threads::{Thread, text};
use crate::error::Result;
use crate::formats::bytes::is_json;
use crate::formats::format::{Format, Opened};
use crate::formats::problems::Problems;
use crate::formats::signatures::GECKO;
use crate::json::{self, Kind, Number, Reader, keys};
use crate::limits::cancel::Stop;
use crate::limits::memory::{TryGrow, owned};
use crate::message;
use crate::model::{Profile, Source, SourceKind, ValueType, Values};
use memchr::memmem;

const WHAT: &str = "sample values";

pub const FORMAT: Format = Format {
    name: "firefox",
    title: "a profile of the Firefox Profiler",
    recognises,
    is_guessed: false,
    read,
};

fn recognises(start: &[u8]) -> bool {
    const TABLES: [&str; 5] = [
        "\"preprocessedProfileVersion\"",
        "\"stackTable\"",
        "\"frameTable\"",
        "\"stackwalk\"",
        "\"markerSchema\"",
    ];
    is_json(start)
        && keys::has_any(start, &["meta", "threads", "shared", "libs"])
        && TABLES
            .iter()
            .any(|name| memmem::find(start, name.as_bytes()).is_some())
}

fn read(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    let uri = opened.origin.own_uri()?;
    json::read::read(opened, stop, |json| {
        let mut file = File::default();
        file.meta.uri = uri;
        let result = file.read(json);
        json.accept_end(result)?;
        let is_gecko = |part: &Part| part.is_gecko;
        if is_gecko(&file.shared) || file.threads.iter().any(|thread| is_gecko(&thread.part)) {
            return Err(json.is_of_kind(&FORMAT, &GECKO));
        }
        if !file.has_threads {
            return Err(json.foreign(&FORMAT, "it has no `threads`"));
        }
        file.into_profile(json)
    })
}

/// What applies to all threads; times are in milliseconds.
#[derive(Default)]
pub struct Meta {
    pub uri: Option<String>,
    pub interval: Option<f64>,
    /// The time to which times refer, since 1970.
    pub origin: Option<f64>,
    /// When the recording began.
    pub recording: Option<f64>,
    pub product: Option<String>,
    cpu_unit: Option<String>,
}

impl Meta {
    fn read(&mut self, json: &mut Reader) -> Result<()> {
        json.begin_object()?;
        while let Some(key) = json.key()? {
            match key.as_str() {
                "interval" => self.interval = number(json)?,
                "startTime" => self.origin = number(json)?.filter(|&start| start > 0.0),
                "profilingStartTime" => self.recording = number(json)?,
                "product" => self.product = text(json)?,
                "sampleUnits" if json.peek()? == Kind::Object => {
                    json.begin_object()?;
                    while let Some(key) = json.key()? {
                        match key.as_str() {
                            "threadCPUDelta" => self.cpu_unit = text(json)?,
                            _ => json.skip()?,
                        }
                    }
                }
                _ => json.skip()?,
            }
        }
        Ok(())
    }

    pub fn cpu_unit(&self) -> &'static str {
        match self.cpu_unit.as_deref() {
            Some("ns") => "nanoseconds",
            Some("µs") | None => "microseconds",
            Some(_) => "cycles",
        }
    }
}

fn number(json: &mut Reader) -> Result<Option<f64>> {
    Ok(json.number_if_any()?.map(Number::real))
}

#[derive(Default)]
struct File {
    meta: Meta,
    shared: Part,
    threads: Vec<Thread>,
    has_threads: bool,
    profile: Profile,
}

impl File {
    fn read(&mut self, json: &mut Reader) -> Result<()> {
        json.begin_object()?;
        while let Some(key) = json.key()? {
            let strings = &mut self.profile.strings;
            match key.as_str() {
                "meta" => self.meta.read(json)?,
                "shared" => {
                    json.begin_object()?;
                    while let Some(key) = json.key()? {
                        if !self.shared.field(key.as_str(), json, strings)? {
                            json.skip()?;
                        }
                    }
                }
                "threads" => {
                    self.has_threads = true;
                    json.begin_array()?;
                    while json.element()? {
                        json.take(size_of::<Thread>() + size_of::<Source>())?;
                        self.threads.try_push(Thread::default(), "sources")?;
                        // The profiles of other processes, as text.
                        if json.peek()? == Kind::Text {
                            return Err(json.is_of_kind(&FORMAT, &GECKO));
                        }
                        if let Some(thread) = self.threads.last_mut() {
                            thread.read(json, strings)?;
                        }
                    }
                }
                key => {
                    // `libs` is not in `shared`.
                    if key != "libs" || !self.shared.field(key, json, strings)? {
                        json.skip()?;
                    }
                }
            }
        }
        Ok(())
    }

    fn into_profile(mut self, json: &mut Reader) -> Result<Profile> {
        let mut columns = Columns::default();
        let mut mappings = Mappings::default();
        for thread in self.threads {
            if thread.has_samples() {
                let profile = &mut self.profile;
                let shared = &mut self.shared;
                thread.add_to(
                    shared,
                    &self.meta,
                    profile,
                    &mut columns,
                    &mut mappings,
                    json,
                )?;
            }
        }
        if self.profile.sources.is_empty() {
            self.profile.add_source(Source {
                kind: SourceKind::named(FORMAT.name),
                uri: self.meta.uri,
                ..Source::default()
            })?;
        }
        let rows = self.profile.samples.len();
        for mut values in columns.0 {
            values.column.try_fill(rows, f64::NAN, WHAT)?;
            self.profile.values.try_push(values, WHAT)?;
        }
        Ok(self.profile)
    }
}

/// The values of samples.
#[derive(Default)]
pub struct Columns(Vec<Values>);

impl Columns {
    /// The column of a sample type, which is added if it is missing.
    pub fn find(&mut self, name: &str, unit: &str) -> Result<usize> {
        let is = |v: &Values| v.type_.name == name && v.type_.unit == unit;
        if let Some(column) = self.0.iter().position(is) {
            return Ok(column);
        }
        self.0.try_push(Values::absent(name, unit, 0)?, WHAT)?;
        Ok(self.0.len() - 1)
    }

    /// Sets the value of the last sample.
    pub fn set(&mut self, column: usize, row: usize, value: Option<f64>) -> Result<()> {
        let values = &mut self.0[column].column;
        values.try_fill(row, f64::NAN, WHAT)?;
        values.try_push(value.unwrap_or(f64::NAN), WHAT)
    }

    pub fn type_of(&self, column: usize) -> Result<ValueType> {
        let Some(values) = self.0.get(column) else {
            return Err(crate::Error::Unsupported(message!("No column {column}.")));
        };
        Ok(ValueType {
            name: owned(&values.type_.name, WHAT)?,
            unit: owned(&values.type_.unit, WHAT)?,
        })
    }
}
