//! Recognises and reads a file.
//!
//! Each profile of the file becomes a source with one sample type: `samples` in `count` for those without a unit,
//! `time` in its unit, or `memory` in bytes.

use super::events;
use super::layout::SCHEMA;
use super::recorded::Recorded;
use super::stacks::RawStacks;
use crate::error::Result;
use crate::formats::bytes::is_json;
use crate::formats::format::Opened;
use crate::formats::json_file::{self, Kind, Reader};
use crate::formats::problems::{ProblemKind, Problems};
use crate::json::{Number, keys};
use crate::limits::cancel::{ROWS, Stop};
use crate::limits::memory::{TryGrow, owned};
use crate::model::{LocationId, Profile, SampleType, Source, SourceId, StackId, ValueType, Values};
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
        json.begin_object()?;
        while let Some(key) = json.key()? {
            match key.as_str() {
                "name" => self.name = own_text(json)?,
                "unit" => self.unit = own_text(json)?,
                "sampleType" if json.peek()? == Kind::Array => {
                    self.sample_type = read_type(json)?;
                }
                "startValue" => self.start = json.number_if_any()?,
                "endValue" => self.end = json.number_if_any()?,
                "samples" => {
                    json.begin_array()?;
                    while json.element()? {
                        let stack = stacks.read(json)?;
                        self.add(stack, stacks.depth(stack), json)?;
                    }
                }
                "weights" => {
                    json.begin_array()?;
                    while json.element()? {
                        let weight = json.number()?;
                        self.weigh(weight, json)?;
                    }
                }
                "events" => open = Some(events::read(json, stacks, self)?),
                _ => json.skip()?,
            }
        }
        match open {
            Some(open) => open.close(self.end, json, stacks, self),
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

fn own_text(json: &mut Reader) -> Result<Option<String>> {
    let text = json.text_if_any()?;
    text.map(owned).transpose()
}

impl File {
    fn read(&mut self, json: &mut Reader) -> Result<()> {
        json.begin_object()?;
        while let Some(key) = json.key()? {
            match key.as_str() {
                "shared" => {
                    self.is_known = true;
                    json.begin_object()?;
                    while let Some(key) = json.key()? {
                        match key.as_str() {
                            "frames" => self.read_frames(json)?,
                            _ => json.skip()?,
                        }
                    }
                }
                "profiles" => {
                    self.is_known = true;
                    json.begin_array()?;
                    while json.element()? {
                        let recorded = Recorded::read(json, &mut self.stacks)?;
                        self.recorded.try_push(recorded)?;
                        json.take(size_of::<Recorded>() + size_of::<Source>())?;
                    }
                }
                "activeProfileIndex" => {
                    self.active = json.number_if_any()?.and_then(Number::index);
                }
                "name" => self.name = own_text(json)?,
                "exporter" => self.exporter = own_text(json)?,
                _ => json.skip()?,
            }
        }
        Ok(())
    }

    fn read_frames(&mut self, json: &mut Reader) -> Result<()> {
        json.begin_array()?;
        while json.element()? {
            let strings = &mut self.profile.strings;
            let [mut name, mut file] = [strings.intern("")?; 2];
            let (mut line, mut column) = (None, 0);
            json.begin_object()?;
            while let Some(key) = json.key()? {
                match key.as_str() {
                    "name" => name = strings.intern(json.text()?)?,
                    "file" => file = strings.intern(json.text_if_any()?.unwrap_or_default())?,
                    "line" => line = json.number_if_any()?.and_then(Number::whole),
                    "col" => column = json.number_if_any()?.and_then(Number::whole).unwrap_or(0),
                    _ => json.skip()?,
                }
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
        for (row, recorded) in self.recorded.iter().enumerate() {
            let mut comments = Vec::new();
            let about = about.iter().filter(|_| row == 0).copied();
            for text in [recorded.name.as_deref()]
                .into_iter()
                .chain(about)
                .flatten()
            {
                comments.try_push(profile.strings.intern(text)?)?;
            }
            let type_ = recorded.value_type()?;
            let is_active = self.active.is_some_and(|active| active as usize == row);
            let mut types = Vec::new();
            let recorded_name = owned(&type_.name)?;
            types.try_push(SampleType::new(recorded_name, owned(&type_.unit)?, &[])?)?;
            let source = profile.add_source(Source {
                kind: json.source_kind(),
                uri: uri.map(owned).transpose()?,
                duration: recorded.duration(),
                default_type: is_active.then(|| owned(&type_.name)).transpose()?,
                types,
                comments,
                ..Source::default()
            })?;
            add_samples(profile, source, type_, recorded, &stacks, json)?;
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

fn add_samples(
    profile: &mut Profile,
    source: SourceId,
    type_: ValueType,
    recorded: &Recorded,
    stacks: &[StackId],
    json: &Reader,
) -> Result<()> {
    let first = profile.samples.len();
    let known = profile.values.iter().position(|v| v.type_ == type_);
    let column = match known {
        Some(column) => column,
        None => {
            let values = Values::absent(&type_.name, &type_.unit, first)?;
            profile.values.try_push(values)?;
            profile.values.len() - 1
        }
    };
    let values = &mut profile.values[column];
    values.column.try_fill(first, f64::NAN)?;
    let samples = &mut profile.samples;
    for (row, (&stack, &weight)) in recorded.stacks.iter().zip(&recorded.weights).enumerate() {
        if row % ROWS == 0 {
            json.check()?;
        }
        samples.source.try_push(source)?;
        samples.stack.try_push(stacks[stack as usize])?;
        match weight {
            Number::Whole(number) => drop(values.push(number)?),
            Number::Real(number) => values.column.try_push(number)?,
        }
    }
    Ok(())
}
