//! Traces of Chrome's performance panel: arrays of events, some of which contain parts of CPU profiles.
//!
//! `Profile` begins a profile, and each `ProfileChunk` with the same process and id contains new nodes and samples. V8
//! writes the start as `startTime` in the data of `Profile`, the end as `endTime` in the data of the last chunk, and
//! `timeDeltas` beside `cpuProfile` in the data of each chunk (`CpuProfile::StreamPendingTraceEvents()`). Node writes
//! `CpuProfile` events, each of which contains a whole profile. Other events are skipped.

use super::run::{Run, SortedTime};
use crate::error::Result;
use crate::formats::json_file::{JsonKind, Reader, fields};
use crate::json::Number;
use crate::limits::memory::{TryGrow, TryPut, owned, sort_by_key, written};
use crate::model::{StringId, Strings};
use foldhash::fast::RandomState;
use std::collections::HashMap;

#[derive(Default)]
pub struct Trace {
    profiles: Vec<Traced>,
    /// By process and id: the last profile that began.
    by_key: HashMap<String, usize, RandomState>,
    /// The names of threads, by process and thread.
    names: HashMap<String, StringId, RandomState>,
    /// Whether there are events with a begin and an end, which other tools write.
    pub has_spans: bool,
}

/// A profile.
#[derive(Default)]
struct Traced {
    /// Its parts, with the times of their events.
    parts: Vec<(Option<f64>, Run)>,
    /// Process and thread, once the event that begins it was read.
    thread: Option<String>,
}

/// The content of an event.
#[derive(Default)]
struct Event {
    name: String,
    id: String,
    process: i64,
    thread: i64,
    time: Option<f64>,
    is_span: bool,
    part: Run,
    /// The argument `name`.
    text: Option<StringId>,
}

impl Trace {
    /// Reads the array of events, which is next. `may_be_open` tells whether its end may be missing: the format allows
    /// that if the file is only this array, so that programs can append events until they are killed.
    pub fn read(
        &mut self,
        may_be_open: bool,
        json: &mut Reader,
        strings: &mut Strings,
    ) -> Result<()> {
        json.begin_array()?;
        while if may_be_open {
            json.element_or_end()?
        } else {
            json.element()?
        } {
            match json.peek()? {
                JsonKind::Object => {
                    let event = Event::read(json, strings)?;
                    self.has_spans |= event.is_span;
                    self.add(event, json)?;
                }
                _ => json.skip()?,
            }
        }
        Ok(())
    }

    fn add(&mut self, event: Event, json: &mut Reader) -> Result<()> {
        let thread = || written(format_args!("{}/{}", event.process, event.thread));
        let key = || written(format_args!("{}/{}", event.process, event.id));
        let profile = match event.name.as_str() {
            // A whole profile, without an id.
            "CpuProfile" => {
                let profile = self.begin(json)?;
                self.profiles[profile].thread = Some(thread()?);
                profile
            }
            "Profile" => {
                let known = self.by_key.get(&key()?).copied();
                let has_begun = |&profile: &usize| self.profiles[profile].thread.is_some();
                let profile = match known.filter(|known| !has_begun(known)) {
                    Some(profile) => profile,
                    None => self.begin_as(key()?, json)?,
                };
                self.profiles[profile].thread = Some(thread()?);
                profile
            }
            "ProfileChunk" => match self.by_key.get(&key()?) {
                Some(&profile) => profile,
                None => self.begin_as(key()?, json)?,
            },
            "thread_name" => {
                if let Some(text) = event.text {
                    self.names.try_put(thread()?, text)?;
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        json.take(2 * size_of::<(Option<f64>, Run)>())?;
        let part = (event.time, event.part);
        self.profiles[profile].parts.try_push(part)
    }

    fn begin(&mut self, json: &mut Reader) -> Result<usize> {
        json.take(2 * size_of::<Traced>())?;
        self.profiles.try_push(Traced::default())?;
        Ok(self.profiles.len() - 1)
    }

    fn begin_as(&mut self, key: String, json: &mut Reader) -> Result<usize> {
        let profile = self.begin(json)?;
        self.by_key.try_put(key, profile)?;
        Ok(profile)
    }

    /// The profiles, with the names of their threads.
    pub fn into_runs(self) -> Result<Vec<Run>> {
        let mut runs = Vec::new();
        for mut profile in self.profiles {
            // The events of a trace need not be in the order of their times.
            let has_times = profile.parts.iter().all(|(time, _)| time.is_some());
            if has_times {
                let time = |(time, _): &(Option<f64>, Run)| SortedTime(time.unwrap_or(0.0));
                sort_by_key(&mut profile.parts, time)?;
            }
            let mut run = Run::default();
            for (_, part) in &profile.parts {
                run.append(part)?;
            }
            run.comment = profile.thread.and_then(|t| self.names.get(&t).copied());
            if !run.nodes.is_empty() {
                runs.try_push(run)?;
            }
        }
        Ok(runs)
    }
}

impl Event {
    fn read(json: &mut Reader, strings: &mut Strings) -> Result<Event> {
        let mut event = Event::default();
        fields! { json,
            "name" => event.name = own(json.text_if_any()?)?,
            "id" => event.id = id(json)?,
            // An id of this process or of all processes.
            "id2" if json.peek()? == JsonKind::Object => {
                fields! { json,
                    "local" | "global" => event.id = id(json)?,
                }
            },
            "ph" => event.is_span = matches!(json.text_if_any()?, Some("B" | "E" | "X")),
            "ts" => event.time = time(json)?,
            "pid" => event.process = whole(json)?,
            "tid" => event.thread = whole(json)?,
            "args" if json.peek()? == JsonKind::Object => {
                event.read_arguments(json, strings)?
            },
        }
        Ok(event)
    }

    fn read_arguments(&mut self, json: &mut Reader, strings: &mut Strings) -> Result<()> {
        fields! { json,
            "data" if json.peek()? == JsonKind::Object => self.read_data(json, strings)?,
            "name" => {
                let text = json.text_if_any()?;
                self.text = text.map(|text| strings.intern(text)).transpose()?;
            },
        }
        Ok(())
    }

    fn read_data(&mut self, json: &mut Reader, strings: &mut Strings) -> Result<()> {
        json.begin_object()?;
        while let Some(key) = json.key()? {
            match key.as_str() {
                "cpuProfile" if json.peek()? == JsonKind::Object => {
                    json.begin_object()?;
                    self.part.read_fields(json, strings)?;
                }
                // Events of other kinds have fields of the same names with other content.
                key @ ("timeDeltas" | "lines" | "columns") if json.peek()? == JsonKind::Array => {
                    self.part.field(key, json, strings)?;
                }
                // V8's clock starts with the computer, so 0 is an unknown start.
                "startTime" => {
                    self.part.traced.start = time(json)?.filter(|&start| start != 0.0);
                }
                "endTime" => self.part.traced.end = time(json)?,
                _ => json.skip()?,
            }
        }
        Ok(())
    }
}

/// An id, which is a text or a number.
fn id(json: &mut Reader) -> Result<String> {
    match json.peek()? {
        JsonKind::Number => written(format_args!("{}", json.number()?.real())),
        _ => own(json.text_if_any()?),
    }
}

fn time(json: &mut Reader) -> Result<Option<f64>> {
    Ok(json.number_if_any()?.map(Number::real))
}

fn own(text: Option<&str>) -> Result<String> {
    owned(text.unwrap_or_default())
}

fn whole(json: &mut Reader) -> Result<i64> {
    let number = json.number_if_any()?;
    Ok(number.and_then(|number| number.whole()).unwrap_or(0))
}
