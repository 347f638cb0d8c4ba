//! Recognises and reads a file.
//!
//! Each profile of the file becomes a source with one sample type: `samples` in `count` for those without a unit,
//! `time` in its unit, or `memory` in bytes. In files of this package, the profiles of a run are one source.

use super::events;
use super::layout::SCHEMA;
use super::recorded::Recorded;
use super::runs::add_run;
use super::stacks::RawStacks;
use crate::error::Result;
use crate::formats::bytes::is_json;
use crate::formats::format::Opened;
use crate::formats::json_file::{self, JsonKind, Reader, fields};
use crate::formats::problems::{ProblemKind, Problems};
use crate::json::{Number, keys};
use crate::limits::cancel::Stop;
use crate::limits::memory::{TryGrow, owned};
use crate::model::{LocationId, Period, Profile, SampleType, Source, ValueType, inexact};
use memchr::memmem;

pub fn recognises(start: &[u8]) -> bool {
    let has = |text: &str| memmem::find(start, text.as_bytes()).is_some();
    is_json(start)
        && keys::has_any(start, &["$schema", "shared", "profiles"])
        && !keys::has_any(start, &["meta", "threads"])
        && (has(SCHEMA) || has("\"frames\"") || has("\"sampled\"") || has("\"evented\""))
}

pub fn read(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    let uri = opened.origin.own_uri()?;
    json_file::read(opened, stop, |json| {
        let mut file = File::default();
        let result = file.read(json);
        json.accept_end(result)?;
        if !file.is_known {
            return Err(json.foreign("it has neither `shared` nor `profiles`"));
        }
        file.into_profile(uri.as_deref(), json)
    })
}

/// The content of a file.
#[derive(Default)]
struct File {
    is_known: bool,
    profile: Profile,
    frames: Vec<LocationId>,
    stacks: RawStacks,
    recorded: Vec<Recorded>,
    /// The profile that a viewer shows first.
    active: Option<u32>,
    name: Option<String>,
    exporter: Option<String>,
}

impl Recorded {
    /// Reads a profile.
    fn read(json: &mut Reader, stacks: &mut RawStacks) -> Result<Recorded> {
        let mut recorded = Recorded::default();
        let result = recorded.read_fields(json, stacks);
        let complete = recorded.stacks.len().min(recorded.weights.len());
        if result.is_ok() && complete < recorded.stacks.len().max(recorded.weights.len()) {
            json.note(ProblemKind::UnequalLengths, b"");
        }
        recorded.stacks.truncate(complete);
        recorded.weights.truncate(complete);
        match result {
            Err(_) if json.is_truncated() => Ok(recorded),
            Err(error) => Err(error),
            Ok(()) => Ok(recorded),
        }
    }

    fn read_fields(&mut self, json: &mut Reader, stacks: &mut RawStacks) -> Result<()> {
        let mut open = None;
        fields! { json,
            "name" => self.name = own_text(json)?,
            "unit" => self.unit = own_text(json)?,
            "sampleType" if json.peek()? == JsonKind::Array => {
                self.sample_type = read_type(json)?;
            },
            "run" => self.run = json.number_if_any()?.and_then(Number::index),
            "period" if json.peek()? == JsonKind::Array => self.period = read_period(json)?,
            "startValue" => self.start = json.number_if_any()?,
            "endValue" => self.end = json.number_if_any()?,
            "samples" => {
                json.begin_array()?;
                while json.element()? {
                    let stack = stacks.read(json)?;
                    self.add(stack, stacks.depth(stack), json)?;
                }
            },
            "weights" => {
                json.begin_array()?;
                while json.element()? {
                    let weight = json.number()?;
                    self.weigh(weight, json)?;
                }
            },
            "events" => open = Some(events::read(json, stacks, self)?),
        }
        match open {
            Some(open) => {
                open.close(self.end, json, stacks, self)?;
                let is_known = !json.problems.has(ProblemKind::UnknownEnd);
                if is_known && open.has_events() && self.stacks.is_empty() {
                    json.note(ProblemKind::ZeroTime, b"");
                }
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// The name and the unit of a sample type, the array that is next.
fn read_type(json: &mut Reader) -> Result<Option<[String; 2]>> {
    let mut texts = Vec::new();
    json.begin_array()?;
    while json.element()? {
        texts.try_push(owned(json.text()?)?)?;
    }
    Ok(texts
        .try_into()
        .ok()
        .filter(|[name, _]: &[String; 2]| !name.is_empty()))
}

/// A number and, if it is known, the name and the unit of its type, the array that is next.
fn read_period(json: &mut Reader) -> Result<Option<Period>> {
    let mut value = None;
    let mut texts = Vec::new();
    json.begin_array()?;
    while json.element()? {
        match json.peek()? {
            JsonKind::Number => value = Some(json.number()?),
            JsonKind::Text => texts.try_push(owned(json.text()?)?)?,
            _ => json.skip()?,
        }
    }
    let type_ = <[String; 2]>::try_from(texts).ok();
    let value = value.filter(|value| value.real().is_finite());
    Ok(value.map(|value| Period {
        value: value.real(),
        exact: match value {
            Number::Whole(number) => inexact(number),
            Number::Real(_) => None,
        },
        type_: type_.map(|[name, unit]| ValueType { name, unit }),
    }))
}

fn own_text(json: &mut Reader) -> Result<Option<String>> {
    let text = json.text_if_any()?;
    text.map(owned).transpose()
}

impl File {
    fn read(&mut self, json: &mut Reader) -> Result<()> {
        fields! { json,
            "shared" => {
                self.is_known = true;
                fields! { json,
                    "frames" => self.read_frames(json)?,
                }
            },
            "profiles" => {
                self.is_known = true;
                json.begin_array()?;
                while json.element()? {
                    let recorded = Recorded::read(json, &mut self.stacks)?;
                    self.recorded.try_push(recorded)?;
                    json.take(size_of::<Recorded>() + size_of::<Source>())?;
                }
            },
            "activeProfileIndex" => {
                self.active = json.number_if_any()?.and_then(Number::index);
            },
            "name" => self.name = own_text(json)?,
            "exporter" => self.exporter = own_text(json)?,
        }
        Ok(())
    }

    fn read_frames(&mut self, json: &mut Reader) -> Result<()> {
        json.begin_array()?;
        while json.element()? {
            let strings = &mut self.profile.strings;
            let [mut name, mut file] = [strings.intern("")?; 2];
            let (mut line, mut column) = (None, 0);
            fields! { json,
                "name" => name = strings.intern(json.text()?)?,
                "file" => file = strings.intern(json.text_if_any()?.unwrap_or_default())?,
                "line" => line = json.number_if_any()?.and_then(Number::whole),
                "col" => column = json.number_if_any()?.and_then(Number::whole).unwrap_or(0),
            }
            json.take(size_of::<LocationId>() + 64)?;
            let at = json.position() as usize;
            let line = line.map_or(0, |line| json.problems.line_number(line, at));
            let column = json.problems.line_number(column, at);
            let location = self.profile.recorded_frame(name, file, line, column)?;
            self.frames.try_push(location)?;
        }
        Ok(())
    }

    fn into_profile(mut self, uri: Option<&str>, json: &mut Reader) -> Result<Profile> {
        let profile = &mut self.profile;
        let stacks = self.stacks.resolve(&self.frames, profile, json)?;
        let about = [self.name.as_deref(), self.exporter.as_deref()];
        let is_same = |a: &Recorded, b: &Recorded| a.run.is_some() && a.run == b.run;
        let mut first = 0;
        for run in self.recorded.chunk_by(is_same) {
            let mut comments = Vec::new();
            let about = about.iter().filter(|_| first == 0).copied();
            let names = run.iter().map(|recorded| recorded.name.as_deref());
            for text in names.chain(about).flatten() {
                comments.try_push(profile.strings.intern(text)?)?;
            }
            let active = self
                .active
                .and_then(|row| run.get((row as usize).checked_sub(first)?));
            let default = active.map(Recorded::value_type).transpose()?;
            let mut types = Vec::new();
            for recorded in run {
                let ValueType { name, unit } = recorded.value_type()?;
                let type_ = SampleType::new(name, unit, &types)?;
                types.try_push(type_)?;
            }
            let source = profile.add_source(Source {
                kind: json.source_kind(),
                uri: uri.map(owned).transpose()?,
                duration: run.iter().find_map(Recorded::duration),
                period: run.iter().find_map(|recorded| recorded.period.clone()),
                default_type: default.map(|type_| type_.name),
                types,
                comments,
                ..Source::default()
            })?;
            add_run(profile, source, run, &stacks, json)?;
            first += run.len();
        }
        let rows = profile.samples.len();
        for values in &mut profile.values {
            values.column.try_fill(rows, f64::NAN)?;
        }
        if profile.sources.is_empty() {
            profile.add_source(Source {
                kind: json.source_kind(),
                uri: uri.map(owned).transpose()?,
                ..Source::default()
            })?;
        }
        Ok(self.profile)
    }
}
