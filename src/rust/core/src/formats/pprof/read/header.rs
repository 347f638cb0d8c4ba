//! The fields that describe the profile as a whole: its sample types, and the source, since a
//! file is one source.

use super::outline::Outline;
use crate::error::Error;
use crate::formats::format::Format;
use crate::formats::problems::Problems;
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::{
    Period, Profile, SampleColumn, SampleType, Source, SourceKind, Strings, ValueType, Values,
    inexact, recorded_time,
};
use crate::protobuf::decode::Result;

/// More sample types than any profiler has. Each adds a value to every sample.
pub const MOST_TYPES: usize = 1000;
/// The longest name of a sample type, in bytes.
const LONGEST_NAME: usize = 1 << 12;

/// Adds the sample types with empty columns of values. Each gets a unique name, also if names in
/// the file are equal or missing.
pub fn types(
    outline: &mut Outline,
    input: &str,
    profile: &mut Profile,
    problems: &mut Problems,
) -> Result<Vec<SampleType>> {
    let unsupported =
        |message: String| Err(Error::Unsupported(message!("{input}: {message}")).into());
    if outline.types.len() > MOST_TYPES {
        return unsupported(message!("more than {MOST_TYPES} sample types."));
    }
    let mut types: Vec<SampleType> = Vec::new();
    for named in &outline.types {
        let recorded = outline.texts.string(named.type_, problems)?;
        let unit = outline.texts.string(named.unit, problems)?;
        if recorded.len().max(unit.len()) > LONGEST_NAME {
            return unsupported(message!(
                "the name of a sample type has more than {LONGEST_NAME} bytes."
            ));
        }
        let type_ = SampleType::new(recorded, unit, &types)?;
        types.try_push(type_)?;
    }
    for type_ in &types {
        let values = Values {
            type_: type_.type_.clone(),
            column: SampleColumn::default(),
            exact: Vec::new(),
        };
        profile.values.try_push(values)?;
    }
    Ok(types)
}

/// The file as a source.
pub fn source(
    outline: &mut Outline,
    uri: Option<String>,
    format: &'static Format,
    types: Vec<SampleType>,
    strings: &mut Strings,
    problems: &mut Problems,
) -> Result<Source> {
    let time = (outline.time != 0).then(|| recorded_time(outline.time));
    let mut source = Source {
        kind: SourceKind::named(format.name),
        uri,
        timestamp: time.map(|(timestamp, _)| timestamp),
        time: time.and_then(|(_, time)| time),
        duration: (outline.duration != 0).then_some(outline.duration),
        types,
        ..Source::default()
    };
    let texts = &mut outline.texts;
    if outline.period_type.is_some() || outline.period != 0 {
        let value = outline.period;
        if let Some(value) = inexact(value) {
            problems.nearly(value, outline.period_at);
        }
        let type_ = match outline.period_type {
            Some(named) => Some(ValueType {
                name: texts.string(named.type_, problems)?,
                unit: texts.string(named.unit, problems)?,
            }),
            None => None,
        };
        source.period = Some(Period {
            value: value as f64,
            exact: inexact(value),
            type_,
        });
    }
    let mut optional = |index| -> Result<Option<String>> {
        let text = texts.string(index, problems)?;
        Ok((!text.is_empty()).then_some(text))
    };
    source.default_type = optional(outline.default_type)?;
    source.drop_frames = optional(outline.drop_frames)?;
    source.keep_frames = optional(outline.keep_frames)?;
    source.doc_url = optional(outline.doc_url)?;
    for &comment in &outline.comments {
        let text = texts.id(comment, strings, problems)?;
        source.comments.try_push(text)?;
    }
    Ok(source)
}
