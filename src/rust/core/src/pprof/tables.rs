//! From the tables of a file to those of the model.

use super::columns::apart;
use super::ids::Ids;
use super::outline::Outline;
use super::proto::{function, line, location};
use super::texts::Index;
use super::wire::{Message, Result};
use crate::error::{Error, Place};
use crate::input::Origin;
use crate::memory::TryGrow;
use crate::model::{
    Function, FunctionId, Location, LocationId, Period, Profile, Source, ValueType, Values,
};
use crate::problems::{ProblemKind, Problems};

/// More sample types than any profiler has; each is a number in every sample.
const MOST_TYPES: usize = 1000;
/// The longest name of a sample type, in bytes.
const LONGEST_NAME: usize = 1 << 16;
/// Numbers up to here are whole in R.
const PRECISE: u64 = 1 << 53;

/// The columns of values, still empty.
pub fn types(
    outline: &mut Outline,
    input: &str,
    profile: &mut Profile,
    problems: &mut Problems,
) -> Result<()> {
    let unsupported =
        |message: String| Err(Error::Unsupported(format!("{input}: {message}")).into());
    if outline.types.len() > MOST_TYPES {
        return unsupported(format!("more than {MOST_TYPES} sample types."));
    }
    for named in &outline.types {
        let mut name = outline.texts.string(named.type_, problems)?;
        let unit = outline.texts.string(named.unit, problems)?;
        if name.len().max(unit.len()) > LONGEST_NAME {
            return unsupported(format!(
                "the name of a sample type has more than {LONGEST_NAME} bytes."
            ));
        }
        let taken = |name: &str| profile.values.iter().any(|v| v.type_.name == name);
        if taken(&name) {
            name = apart(&name, &unit);
            if taken(&name) || profile.values.iter().any(|v| same(&v.type_, &name, &unit)) {
                return unsupported(format!(
                    "two sample types would be called `{name}`, so they cannot be told apart."
                ));
            }
        }
        let values = Values {
            type_: ValueType { name, unit },
            column: Vec::new(),
        };
        profile.values.try_push(values, "sample types")?;
    }
    Ok(())
}

/// Whether a type is the one that would be called `name` if told apart.
fn same(type_: &ValueType, name: &str, unit: &str) -> bool {
    type_.unit == unit && apart(&type_.name, unit) == name
}

/// What is said about the profile as a whole.
pub fn source(outline: &mut Outline, origin: Origin, problems: &mut Problems) -> Result<Source> {
    let mut source = Source {
        kind: "pprof".to_owned(),
        uri: origin.uri,
        timestamp: match outline.time {
            0 => origin.timestamp,
            time => Some(time as f64 / 1e9),
        },
        duration: (outline.duration != 0).then_some(outline.duration),
        ..Source::default()
    };
    let texts = &mut outline.texts;
    if outline.period_type.is_some() || outline.period != 0 {
        let named = outline.period_type.unwrap_or_default();
        source.period = Some(Period {
            value: number(outline.period, outline.period_at, problems),
            type_: texts.string(named.type_, problems)?,
            unit: texts.string(named.unit, problems)?,
        });
    }
    let default = texts.string(outline.default_type, problems)?;
    source.default_type = (!default.is_empty()).then_some(default);
    // A comment that is said twice is said once, as when Go merges profiles.
    let mut seen = Vec::new();
    seen.try_fill(texts.len(), false, "comments")?;
    for &comment in &outline.comments {
        let row = usize::try_from(comment.index).unwrap_or(usize::MAX);
        if seen.get(row) == Some(&true) {
            continue;
        }
        source
            .comments
            .try_push(texts.string(comment, problems)?, "comments")?;
        seen[row] = true;
    }
    Ok(source)
}

/// A number as R holds it.
#[inline]
pub fn number(value: i64, at: usize, problems: &mut Problems) -> f64 {
    let number = value as f64;
    if value.unsigned_abs() > PRECISE && number as i128 != i128::from(value) {
        let place = Place::Byte(at as u64);
        problems.note(
            ProblemKind::ImpreciseValue,
            place,
            value.to_string().as_bytes(),
        );
    }
    number
}

pub struct Functions {
    ids: Ids,
    rows: Vec<FunctionId>,
}

pub fn functions(
    outline: &mut Outline,
    profile: &mut Profile,
    problems: &mut Problems,
) -> Result<Functions> {
    let mut functions = Functions {
        ids: Ids::new("function"),
        rows: Vec::new(),
    };
    let texts = &mut outline.texts;
    for &message in &outline.functions {
        let at = message.at();
        let mut message = message;
        let mut id = 0;
        let [mut name, mut system_name, mut filename] = [Index { index: 0, at }; 3];
        let mut start_line = 0;
        while let Some(found) = message.field()? {
            let at = found.at;
            match found.number {
                function::ID => id = found.uint()?,
                function::NAME => name = Index::of(&found)?,
                function::SYSTEM_NAME => system_name = Index::of(&found)?,
                function::FILENAME => filename = Index::of(&found)?,
                function::START_LINE => {
                    start_line = line_number(found.int()?, at, problems);
                }
                _ => {}
            }
        }
        functions.ids.add(id, at)?;
        let strings = &mut profile.strings;
        let mut text = |index| texts.id(index, strings, problems);
        let (mut name, mut system_name) = (text(name)?, text(system_name)?);
        let filename = text(filename)?;
        if strings.get(name).is_empty() {
            name = system_name;
        }
        if strings.get(name).is_empty() {
            name = strings.intern("<unknown>")?;
        }
        if strings.get(system_name).is_empty() {
            system_name = name;
        }
        let row = profile.functions.intern(Function {
            name,
            system_name,
            filename,
            start_line,
        })?;
        functions.rows.try_push(row, "functions")?;
    }
    Ok(functions)
}

/// The locations of a file, each as a run of the model's: one for each inlined
/// call, innermost first.
pub struct Locations {
    pub ids: Ids,
    /// Where the run of each location ends in `frames`.
    ends: Vec<usize>,
    frames: Vec<LocationId>,
}

impl Locations {
    #[inline]
    pub fn run(&self, row: usize) -> &[LocationId] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.frames[start..self.ends[row]]
    }
}

pub fn locations(
    outline: &Outline,
    functions: &Functions,
    profile: &mut Profile,
    problems: &mut Problems,
) -> Result<Locations> {
    let mut locations = Locations {
        ids: Ids::new("location"),
        ends: Vec::new(),
        frames: Vec::new(),
    };
    for &message in &outline.locations {
        let at = message.at();
        let mut message = message;
        let mut id = 0;
        let before = locations.frames.len();
        while let Some(found) = message.field()? {
            match found.number {
                location::ID => id = found.uint()?,
                location::LINE => {
                    let line = self::line(found.message()?, functions, problems)?;
                    let frame = profile.locations.intern(line)?;
                    locations.frames.try_push(frame, "locations")?;
                }
                _ => {}
            }
        }
        locations.ids.add(id, at)?;
        if locations.frames.len() == before {
            // An address without a symbol.
            let frame = profile.locations.intern(Location {
                function: None,
                line: None,
            })?;
            locations.frames.try_push(frame, "locations")?;
        }
        locations
            .ends
            .try_push(locations.frames.len(), "locations")?;
    }
    Ok(locations)
}

fn line(mut message: Message, functions: &Functions, problems: &mut Problems) -> Result<Location> {
    let mut function = None;
    let mut line = 0;
    while let Some(found) = message.field()? {
        match found.number {
            line::FUNCTION_ID => {
                function = match found.uint()? {
                    0 => None,
                    id => Some(functions.rows[functions.ids.find(id, found.at)?]),
                };
            }
            line::LINE => line = line_number(found.int()?, found.at, problems),
            _ => {}
        }
    }
    Ok(Location {
        function,
        line: Some(line),
    })
}

fn line_number(line: i64, at: usize, problems: &mut Problems) -> i32 {
    match i32::try_from(line) {
        Ok(line) if line >= 0 => line,
        _ => {
            let place = Place::Byte(at as u64);
            problems.note(
                ProblemKind::BadLineNumber,
                place,
                line.to_string().as_bytes(),
            );
            0
        }
    }
}
