//! What a file says about the profile as a whole: its sample types, and the one
//! source that it is.

use super::outline::Outline;
use crate::error::{Error, Place};
use crate::input::Origin;
use crate::memory::TryGrow;
use crate::model::{
    Period, Profile, SampleType, Source, Strings, UNKNOWN, ValueType, Values, inexact,
    recorded_time,
};
use crate::problems::{ProblemKind, Problems};
use crate::protobuf::wire::Result;

/// More sample types than any profiler has; each is a number in every sample.
const MOST_TYPES: usize = 1000;
/// The longest name of a sample type, in bytes.
const LONGEST_NAME: usize = 1 << 12;

/// The sample types, and their columns of values, still empty. A type has a name
/// of its own even where the file has two of one name, or one without.
pub fn types(
    outline: &mut Outline,
    input: &str,
    profile: &mut Profile,
    problems: &mut Problems,
) -> Result<Vec<SampleType>> {
    let unsupported =
        |message: String| Err(Error::Unsupported(format!("{input}: {message}")).into());
    if outline.types.len() > MOST_TYPES {
        return unsupported(format!("more than {MOST_TYPES} sample types."));
    }
    let mut types: Vec<SampleType> = Vec::new();
    for named in &outline.types {
        let recorded = outline.texts.string(named.type_, problems)?;
        let unit = outline.texts.string(named.unit, problems)?;
        if recorded.len().max(unit.len()) > LONGEST_NAME {
            return unsupported(format!(
                "the name of a sample type has more than {LONGEST_NAME} bytes."
            ));
        }
        let name = if recorded.is_empty() {
            UNKNOWN.to_owned()
        } else {
            recorded.clone()
        };
        let name = own_name(name, &unit, &types);
        types.try_push(
            SampleType {
                type_: ValueType { name, unit },
                recorded,
            },
            "sample types",
        )?;
    }
    for type_ in &types {
        let values = Values {
            type_: type_.type_.clone(),
            column: Vec::new(),
            exact: Vec::new(),
        };
        profile.values.try_push(values, "sample types")?;
    }
    Ok(types)
}

/// `name`, or where that is taken `name/unit`, or `name/unit/2`, and so on; the
/// number is that of types before, so that none has to be looked for.
fn own_name(name: String, unit: &str, types: &[SampleType]) -> String {
    let taken = |name: &str| types.iter().any(|t| t.type_.name == name);
    if !taken(&name) {
        return name;
    }
    let with_unit = format!("{name}/{unit}");
    let numbered = (types.len().max(2)..).map(|n| format!("{with_unit}/{n}"));
    let mut names = std::iter::once(with_unit.clone()).chain(numbered);
    names.find(|name| !taken(name)).unwrap_or(name)
}

/// The file as a source.
pub fn source(
    outline: &mut Outline,
    origin: Origin,
    types: Vec<SampleType>,
    strings: &mut Strings,
    problems: &mut Problems,
) -> Result<Source> {
    let time = (outline.time != 0).then(|| recorded_time(outline.time));
    let mut source = Source {
        kind: "pprof".to_owned(),
        uri: origin.uri,
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
            note_nearly(value, outline.period_at, problems);
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
        source.comments.try_push(text, "comments")?;
    }
    Ok(source)
}

/// Notes a number that R holds nearly only.
pub fn note_nearly(value: i64, at: usize, problems: &mut Problems) {
    let place = Place::Byte(at as u64);
    problems.note(
        ProblemKind::ImpreciseValue,
        place,
        value.to_string().as_bytes(),
    );
}
