//! Recognises and reads a file.

use super::run::{Columns, Run};
use super::trace::Trace;
use crate::error::Result;
use crate::formats::bytes::{is_json, is_text};
use crate::formats::format::Opened;
use crate::formats::json_file::{self, JsonKind, Reader};
use crate::formats::problems::Problems;
use crate::formats::signatures::TRACE_EVENTS;
use crate::json::keys;
use crate::limits::cancel::Stop;
use crate::limits::memory::TryGrow;
use crate::model::Profile;
use memchr::memmem;

/// The number of bytes that must be text.
const SNIFFED: usize = 4096;

pub fn recognises(start: &[u8]) -> bool {
    let has = |text: &str| memmem::find(start, text.as_bytes()).is_some();
    if is_json(start) {
        let is_tree = keys::has_any(start, &["nodes", "head"])
            && (has("\"callFrame\"") || has("\"functionName\""));
        return is_tree || keys::has_any(start, &["traceEvents"]);
    }
    let is_array = start.trim_ascii_start().first() == Some(&b'[');
    is_array && is_text(&start[..start.len().min(SNIFFED)]) && keys::has_any(start, &["ph"])
}

pub fn read(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    let uri = opened.origin.own_uri()?;
    json_file::read(opened, stop, |json| {
        let mut profile = Profile::default();
        let (mut run, mut trace) = (Run::default(), None);
        let result = read_file(&mut run, &mut trace, &mut profile, json);
        json.accept_end(result)?;
        let has_other_samples = run.has_other_samples;
        let has_spans = trace.as_ref().is_some_and(|trace| trace.has_spans);
        let runs = match trace {
            Some(trace) => trace.into_runs()?,
            None if run.nodes.is_empty() => Vec::new(),
            None => [run].into_iter().try_fold(Vec::new(), |mut runs, run| {
                runs.try_push(run)?;
                Ok::<_, crate::Error>(runs)
            })?,
        };
        if runs.is_empty() && has_spans && !has_other_samples {
            return Err(json.is_of_kind(&TRACE_EVENTS));
        }
        if runs.is_empty() {
            let found = if has_other_samples {
                "it has no V8 profile, but samples in the form of Hermes (`stackFrames`); open it at \
                 speedscope.app and export it there"
            } else {
                "it has neither `nodes` nor `ProfileChunk` events"
            };
            return Err(json.foreign(found));
        }
        let mut columns = Columns::new()?;
        for run in runs {
            run.add_to(&mut profile, &mut columns, uri.as_deref(), json)?;
        }
        columns.add_to(&mut profile)?;
        Ok(profile)
    })
}

fn read_file(
    run: &mut Run,
    trace: &mut Option<Trace>,
    profile: &mut Profile,
    json: &mut Reader,
) -> Result<()> {
    let strings = &mut profile.strings;
    if json.peek()? == JsonKind::Array {
        return trace.insert(Trace::default()).read(true, json, strings);
    }
    json.begin_object()?;
    while let Some(key) = json.key()? {
        match key.as_str() {
            "traceEvents" => trace.insert(Trace::default()).read(false, json, strings)?,
            key => run.field(key, json, strings)?,
        }
    }
    Ok(())
}
