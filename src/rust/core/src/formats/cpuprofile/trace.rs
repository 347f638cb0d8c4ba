//! Traces of Chrome's performance panel: arrays of events, some of which contain parts of CPU profiles.
//!
//! `Profile` begins a profile, and each `ProfileChunk` with the same process and id contains new nodes and samples.
//! Node writes `CpuProfile` events, which contain a whole profile. Other events are skipped.

use super::run::Run;
use crate::error::Result;
use crate::json::{Kind, Reader};
use crate::limits::memory::{TryGrow, TryPut, owned, written};
use crate::model::{StringId, Strings};
use foldhash::fast::RandomState;
use std::collections::HashMap;

const WHAT: &str = "events";

#[derive(Default)]
pub struct Trace {
    pub runs: Vec<Run>,
    /// By process and id.
    by_key: HashMap<String, usize, RandomState>,
    /// The threads of profiles, and the names of threads, by process and thread.
    threads: Vec<(usize, String)>,
    names: HashMap<String, StringId, RandomState>,
}

/// What an event contains.
#[derive(Default)]
struct Event {
    name: String,
    id: String,
    process: i64,
    thread: i64,
    part: Run,
    /// The argument `name`.
    text: Option<StringId>,
}

impl Trace {
    /// Reads the array of events, which is next.
    pub fn read(&mut self, json: &mut Reader, strings: &mut Strings) -> Result<()> {
        json.begin_array()?;
        while json.element()? {
            match json.peek()? {
                Kind::Object => {
                    let event = Event::read(json, strings)?;
                    self.add(event, json)?;
                }
                _ => json.skip()?,
            }
        }
        Ok(())
    }

    fn add(&mut self, event: Event, json: &mut Reader) -> Result<()> {
        let thread = || written(format_args!("{}/{}", event.process, event.thread), WHAT);
        match event.name.as_str() {
            "Profile" | "ProfileChunk" | "CpuProfile" => {
                let key = written(format_args!("{}/{}", event.process, event.id), WHAT)?;
                let run = match self.by_key.get(&key) {
                    Some(&run) => run,
                    None => {
                        json.take(2 * size_of::<Run>())?;
                        self.runs.try_push(Run::default(), WHAT)?;
                        let run = self.runs.len() - 1;
                        self.by_key.try_put(key, run, WHAT)?;
                        run
                    }
                };
                if event.name == "Profile" {
                    self.threads.try_push((run, thread()?), WHAT)?;
                }
                self.runs[run].append(&event.part)
            }
            "thread_name" => match event.text {
                Some(text) => self.names.try_put(thread()?, text, WHAT).map(drop),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The profiles, with the names of their threads.
    pub fn into_runs(mut self) -> Vec<Run> {
        for (run, thread) in &self.threads {
            self.runs[*run].comment = self.names.get(thread).copied();
        }
        self.runs.retain(|run| !run.nodes.is_empty());
        self.runs
    }
}

impl Event {
    fn read(json: &mut Reader, strings: &mut Strings) -> Result<Event> {
        let mut event = Event::default();
        json.begin_object()?;
        while let Some(key) = json.key()? {
            match key.as_str() {
                "name" => event.name = own(json.text_if_any()?)?,
                "id" => match json.peek()? {
                    Kind::Number => {
                        let id = json.number()?.real();
                        event.id = written(format_args!("{id}"), WHAT)?;
                    }
                    _ => event.id = own(json.text_if_any()?)?,
                },
                "pid" => event.process = whole(json)?,
                "tid" => event.thread = whole(json)?,
                "args" if json.peek()? == Kind::Object => event.read_arguments(json, strings)?,
                _ => json.skip()?,
            }
        }
        Ok(event)
    }

    fn read_arguments(&mut self, json: &mut Reader, strings: &mut Strings) -> Result<()> {
        json.begin_object()?;
        while let Some(key) = json.key()? {
            match key.as_str() {
                "data" if json.peek()? == Kind::Object => self.read_data(json, strings)?,
                "name" => {
                    let text = json.text_if_any()?;
                    self.text = text.map(|text| strings.intern(text)).transpose()?;
                }
                _ => json.skip()?,
            }
        }
        Ok(())
    }

    fn read_data(&mut self, json: &mut Reader, strings: &mut Strings) -> Result<()> {
        json.begin_object()?;
        while let Some(key) = json.key()? {
            match key.as_str() {
                "cpuProfile" if json.peek()? == Kind::Object => {
                    json.begin_object()?;
                    self.part.read_fields(json, strings)?;
                }
                // Events of other kinds have fields of the same names with other content.
                key @ ("timeDeltas" | "lines" | "columns") if json.peek()? == Kind::Array => {
                    self.part.field(key, json, strings)?;
                }
                key @ ("startTime" | "endTime") => self.part.field(key, json, strings)?,
                _ => json.skip()?,
            }
        }
        Ok(())
    }
}

fn own(text: Option<&str>) -> Result<String> {
    owned(text.unwrap_or_default(), WHAT)
}

fn whole(json: &mut Reader) -> Result<i64> {
    let number = json.number_if_any()?;
    Ok(number.and_then(|number| number.whole()).unwrap_or(0))
}
