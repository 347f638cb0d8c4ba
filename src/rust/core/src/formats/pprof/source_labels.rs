//! Converts a source to labels of its samples, and back.
//!
//! A pprof file contains the information about its source once for all samples, and most of it is lost
//! when files are merged (`pprof -proto a b`). Labels are kept with their samples. Go removes
//! labels with empty texts, so values that would be empty are written as a word.

use crate::analysis::source_facts::{options_of_text, options_text};
use crate::error::{Error, Result};
use crate::limits::memory::{TryGrow, ensure, written};
use crate::message;
use crate::model::{
    Period, Profile, RprofOptions, Source, SourceId, SourceKind, ValueType, inexact, nanoseconds,
    recorded_time, whole,
};
use std::borrow::Cow;

/// The keys, in the order in which [`Facts`] has their values.
pub const KEYS: [&str; 9] = [
    "source_id",
    "source_type",
    "source_uri",
    "source_timestamp",
    "source_period",
    "source_period_type",
    "source_duration",
    "source_default_type",
    "source_options",
];
const NANOSECONDS: &str = "nanoseconds";

/// The value of a label that describes a source.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact<'a> {
    Text(Cow<'a, str>),
    /// A number and its unit.
    Number(i64, &'a str),
}

/// The values of the labels of one sample, in the order of [`KEYS`].
pub type Facts<'a> = [Option<Fact<'a>>; KEYS.len()];

/// The values of the labels for a source.
pub fn facts(id: SourceId, source: &Source) -> Result<Facts<'_>> {
    let text = |text| Fact::Text(Cow::Borrowed(text));
    let time = |seconds| match source.time.or_else(|| nanoseconds(seconds)) {
        Some(time) => Ok(Fact::Number(time, NANOSECONDS)),
        None => Err(Error::Lossy(message!(
            "Source {} has the time stamp {seconds}; pprof holds times up to the year 2262.",
            id.0 + 1
        ))),
    };
    let period = source.period.as_ref();
    let type_ = period.and_then(|period| period.type_.as_ref());
    let unit = type_.map_or("", |type_| &type_.unit);
    // Numbers in labels are whole numbers; others are written as text.
    let period = match period.map(|period| (period.exact.or(whole(period.value)), period.value)) {
        Some((Some(value), _)) => Some(Fact::Number(value, unit)),
        Some((None, value)) => {
            let words = written(format_args!("{value} {unit}"))?;
            Some(Fact::Text(words.into()))
        }
        None => None,
    };
    Ok([
        Some(Fact::Number(i64::from(id.0) + 1, "")),
        Some(text(source.kind.as_str())),
        source.uri.as_deref().map(text),
        source.timestamp.map(time).transpose()?,
        period,
        type_.map(|type_| text(&type_.name)),
        source.duration.map(|time| Fact::Number(time, NANOSECONDS)),
        source.default_type.as_deref().map(text),
        source
            .options
            .map(|options| Fact::Text(options_text(options).into())),
    ])
}

/// The source that the values describe, and its number; `None` if a required label is missing, or a
/// value is not one that [`facts()`] returns.
pub fn source(facts: &Facts) -> Result<Option<(i64, Source)>> {
    let length = |fact: &Fact| match fact {
        Fact::Text(text) => text.len(),
        Fact::Number(_, unit) => unit.len(),
    };
    ensure(facts.iter().flatten().map(length).sum())?;
    Ok(source_of(facts))
}

#[expect(clippy::disallowed_methods, reason = "memory was ensured")]
fn source_of(facts: &Facts) -> Option<(i64, Source)> {
    let [
        id,
        kind,
        uri,
        time,
        period,
        period_type,
        duration,
        default_type,
        options,
    ] = facts;
    let id = match id {
        Some(Fact::Number(id, "")) if (1..=i64::from(i32::MAX)).contains(id) => *id,
        _ => return None,
    };
    let period_type = optional(period_type, text)?;
    let period = match optional(period, period_value)? {
        Some((period, "")) if period_type.is_none() => Some(period),
        Some((period, unit)) => Some(Period {
            type_: Some(ValueType {
                name: period_type.unwrap_or_default(),
                unit: unit.to_owned(),
            }),
            ..period
        }),
        None if period_type.is_some() => return None,
        None => None,
    };
    let time = optional(time, time_value)?.map(recorded_time);
    let source = Source {
        kind: SourceKind::from_owned(optional(kind, text)?.filter(|kind| !kind.is_empty())?),
        uri: optional(uri, text)?,
        timestamp: time.map(|(timestamp, _)| timestamp),
        time: time.and_then(|(_, time)| time),
        period,
        duration: optional(duration, time_value)?,
        default_type: optional(default_type, text)?,
        options: optional(options, options_value)?,
        ..Source::default()
    };
    Some((id, source))
}

/// The number of sources without samples, which cannot be stored as labels.
pub fn without_samples(profile: &Profile) -> Result<usize> {
    let mut seen = Vec::new();
    seen.try_fill(profile.sources.len(), false)?;
    for source in profile.samples.source.iter() {
        seen[source.row()] = true;
    }
    Ok(seen.iter().filter(|seen| !**seen).count())
}

/// The value of an optional label; `None` if it is invalid.
fn optional<'a, T>(
    fact: &'a Option<Fact<'a>>,
    value: impl Fn(&'a Fact<'a>) -> Option<T>,
) -> Option<Option<T>> {
    match fact {
        Some(fact) => value(fact).map(Some),
        None => Some(None),
    }
}

#[expect(clippy::disallowed_methods, reason = "memory was ensured")]
fn text(fact: &Fact) -> Option<String> {
    match fact {
        Fact::Text(text) => Some(text.clone().into_owned()),
        Fact::Number(..) => None,
    }
}

fn time_value(fact: &Fact) -> Option<i64> {
    match fact {
        Fact::Number(time, NANOSECONDS) => Some(*time),
        _ => None,
    }
}

/// The period, whose type is not set yet, and its unit.
fn period_value<'a>(fact: &'a Fact) -> Option<(Period, &'a str)> {
    let (value, exact, unit) = match fact {
        Fact::Number(value, unit) => (*value as f64, Some(*value), *unit),
        Fact::Text(text) => {
            let (value, unit) = text.split_once(' ')?;
            (value.parse().ok()?, None, unit)
        }
    };
    let period = Period {
        value,
        exact: exact.and_then(inexact),
        type_: None,
    };
    (!value.is_nan()).then_some((period, unit))
}

fn options_value(fact: &Fact) -> Option<RprofOptions> {
    match fact {
        Fact::Text(text) => options_of_text(text),
        Fact::Number(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(source: &Source) -> Option<(i64, Source)> {
        super::source(&facts(SourceId(4), source).unwrap()).unwrap()
    }

    #[test]
    fn a_source_comes_back() {
        let with_options = |options| Source {
            kind: SourceKind::RPROF,
            options,
            ..Source::default()
        };
        let with_period = |value, type_: &str, unit: &str| Source {
            period: Some(Period {
                value,
                exact: None,
                type_: Some(ValueType {
                    name: type_.to_owned(),
                    unit: unit.to_owned(),
                }),
            }),
            ..with_options(None)
        };
        let all = RprofOptions {
            memory: true,
            gc: true,
            line: true,
        };
        let sources = [
            with_options(None),
            with_options(Some(RprofOptions::default())),
            with_options(Some(RprofOptions { gc: false, ..all })),
            with_period(2e4, "cpu", "microseconds"),
            with_period(0.1 + 0.2, "cpu", "micro seconds"),
            with_period(-1e300, "", ""),
            Source {
                period: Some(Period {
                    value: i64::MAX as f64,
                    exact: Some(i64::MAX),
                    type_: None,
                }),
                timestamp: Some(1_732_169_999.123_456_7),
                time: Some(1_732_169_999_123_456_789),
                ..with_options(None)
            },
            Source {
                kind: SourceKind::named("a kind"),
                uri: Some(String::new()),
                timestamp: Some(1_732_169_999.123_456_7),
                duration: Some(i64::MIN),
                default_type: Some("cpu".to_owned()),
                options: Some(all),
                ..Source::default()
            },
        ];
        for source in sources {
            assert_eq!(again(&source), Some((5, source)));
        }
        // Without a kind it would be no valid source.
        assert_eq!(again(&Source::default()), None);
    }

    #[test]
    fn what_is_never_written_is_no_source() {
        let source = Source {
            kind: SourceKind::RPROF,
            ..Source::default()
        };
        let facts = facts(SourceId(0), &source).unwrap();
        let text = |text: &'static str| Some(Fact::Text(text.into()));
        let number = |number, unit| Some(Fact::Number(number, unit));
        for (row, fact) in [
            (0, None),
            (0, text("1")),
            (0, number(0, "")),
            (0, number(1, "bytes")),
            (0, number(1 << 31, "")),
            (1, None),
            (1, text("")),
            (1, number(1, "")),
            (2, number(1, "")),
            (3, number(1, "")),
            (3, text("now")),
            (4, text("20000")),
            (4, text("x us")),
            (4, text("NaN us")),
            (5, text("cpu")),
            (6, number(1, "seconds")),
            (7, number(1, "")),
            (8, text("")),
            (8, text("line gc")),
            (8, text("gc gc")),
            (8, text("none gc")),
        ] {
            let mut facts = facts.clone();
            facts[row] = fact;
            assert_eq!(super::source(&facts).unwrap(), None, "{facts:?}");
        }
    }
}
