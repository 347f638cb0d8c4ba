//! Recognises and reads a file.
//!
//! Each thread with samples or allocations becomes a source. Markers, counters, categories and pages are skipped.

use super::meta::Meta;
use super::tables::{Mappings, TableSet};
use super::threads::Thread;
use super::values::Columns;
use crate::error::Result;
use crate::formats::bytes::is_json;
use crate::formats::format::Opened;
use crate::formats::json_file::{self, JsonKind, Reader};
use crate::formats::problems::Problems;
use crate::formats::signatures::GECKO;
use crate::json::keys;
use crate::limits::cancel::Stop;
use crate::limits::memory::TryGrow;
use crate::model::{Profile, Source};
use memchr::memmem;

pub fn recognises(start: &[u8]) -> bool {
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

pub fn read(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    let uri = opened.origin.own_uri()?;
    json_file::read(opened, stop, |json| {
        let mut file = File::default();
        file.meta.uri = uri;
        let result = file.read(json);
        json.accept_end(result)?;
        let is_gecko = |part: &TableSet| part.is_gecko;
        if is_gecko(&file.shared) || file.threads.iter().any(|thread| is_gecko(&thread.part)) {
            return Err(json.is_of_kind(&GECKO));
        }
        if !file.has_threads {
            return Err(json.foreign("it has no `threads`"));
        }
        file.into_profile(json)
    })
}

#[derive(Default)]
struct File {
    meta: Meta,
    shared: TableSet,
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
                        self.threads.try_push(Thread::default())?;
                        // The profiles of other processes, as text.
                        if json.peek()? == JsonKind::Text {
                            return Err(json.is_of_kind(&GECKO));
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
                kind: json.source_kind(),
                uri: self.meta.uri,
                ..Source::default()
            })?;
        }
        let rows = self.profile.samples.len();
        for mut values in columns.0 {
            values.column.try_fill(rows, f64::NAN)?;
            self.profile.values.try_push(values)?;
        }
        Ok(self.profile)
    }
}
