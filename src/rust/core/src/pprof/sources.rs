//! A source as labels of its samples.
//!
//! A pprof file says once, for all its samples, where they come from, and merging
//! files (`pprof -proto a b`) keeps little of that. Labels stay with their
//! samples. Go drops texts that are empty, so what has no words gets one.

use super::columns::whole;
use crate::error::{Error, Result};
use crate::memory::TryGrow;
use crate::model::{Period, Profile, RprofOptions, Source, SourceId};
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
const A_SECOND: i64 = 1_000_000_000;
const NO_OPTIONS: &str = "none";

/// What a label says of a source.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact<'a> {
    Text(Cow<'a, str>),
    /// A number and its unit.
    Number(i64, &'a str),
}

/// What the labels of one sample say, in the order of [`KEYS`].
pub type Facts<'a> = [Option<Fact<'a>>; KEYS.len()];

/// A source in words.
pub fn facts(id: SourceId, source: &Source) -> Result<Facts<'_>> {
    let text = |text| Fact::Text(Cow::Borrowed(text));
    let time = |seconds| match nanoseconds(seconds) {
        Some(time) => Ok(Fact::Number(time, NANOSECONDS)),
        None => Err(Error::Lossy(format!(
            "Source {} has the time stamp {seconds}; pprof holds times up to the year 2262.",
            id.0 + 1
        ))),
    };
    let period = source.period.as_ref();
    Ok([
        Some(Fact::Number(i64::from(id.0) + 1, "")),
        Some(text(&source.kind)),
        source.uri.as_deref().map(text),
        source.timestamp.map(time).transpose()?,
        // Labels hold whole numbers only; any other is as exact in words.
        period.map(|period| match whole(period.value) {
            Some(value) => Fact::Number(value, &period.unit),
            None => Fact::Text(format!("{} {}", period.value, period.unit).into()),
        }),
        period.map(|period| text(&period.type_)),
        source.duration.map(|time| Fact::Number(time, NANOSECONDS)),
        source.default_type.as_deref().map(text),
        source.options.map(|options| match words(options) {
            none if none.is_empty() => text(NO_OPTIONS),
            words => Fact::Text(words.into()),
        }),
    ])
}

/// The source of these facts and its number there; `None` where a label is
/// missing that must be there, or one says what [`facts()`] never does.
pub fn source(facts: &Facts) -> Option<(i64, Source)> {
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
        Some((value, unit)) => Some(Period {
            value,
            type_: period_type.unwrap_or_default(),
            unit: unit.to_owned(),
        }),
        None if period_type.is_some() => return None,
        None => None,
    };
    let source = Source {
        kind: optional(kind, text)?.filter(|kind| !kind.is_empty())?,
        uri: optional(uri, text)?,
        timestamp: optional(time, time_value)?.map(seconds),
        period,
        duration: optional(duration, time_value)?,
        default_type: optional(default_type, text)?,
        options: optional(options, options_value)?,
        ..Source::default()
    };
    Some((id, source))
}

/// Such as `memory gc line`.
pub fn words(options: RprofOptions) -> String {
    let RprofOptions { memory, gc, line } = options;
    let options = [(memory, "memory"), (gc, "gc"), (line, "line")];
    let words: Vec<_> = options.iter().filter(|o| o.0).map(|o| o.1).collect();
    words.join(" ")
}

/// How many sources no sample could carry along.
pub fn without_samples(profile: &Profile) -> Result<usize> {
    let mut seen = Vec::new();
    seen.try_fill(profile.sources.len(), false, "sources")?;
    for source in &profile.samples.source {
        seen[source.row()] = true;
    }
    Ok(seen.iter().filter(|seen| !**seen).count())
}

/// What a label may but need not say; `None` where it says something else.
fn optional<'a, T>(
    fact: &'a Option<Fact<'a>>,
    value: impl Fn(&'a Fact<'a>) -> Option<T>,
) -> Option<Option<T>> {
    match fact {
        Some(fact) => value(fact).map(Some),
        None => Some(None),
    }
}

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

fn period_value<'a>(fact: &'a Fact) -> Option<(f64, &'a str)> {
    match fact {
        Fact::Number(value, unit) => {
            let number = *value as f64;
            (whole(number) == Some(*value)).then_some((number, unit))
        }
        Fact::Text(text) => {
            let (value, unit) = text.split_once(' ')?;
            let value: f64 = value.parse().ok()?;
            (!value.is_nan()).then_some((value, unit))
        }
    }
}

fn options_value(fact: &Fact) -> Option<RprofOptions> {
    let Fact::Text(text) = fact else { return None };
    if text == NO_OPTIONS {
        return Some(RprofOptions::default());
    }
    let has = |option| text.split(' ').any(|word| word == option);
    let options = RprofOptions {
        memory: has("memory"),
        gc: has("gc"),
        line: has("line"),
    };
    (!text.is_empty() && words(options) == *text).then_some(options)
}

/// Seconds in nanoseconds. Their product as it stands would be off by hundreds.
fn nanoseconds(seconds: f64) -> Option<i64> {
    let full = seconds.floor();
    let rest = ((seconds - full) * A_SECOND as f64).round();
    whole(full)?
        .checked_mul(A_SECOND)?
        .checked_add(whole(rest)?)
}

fn seconds(nanoseconds: i64) -> f64 {
    let full = nanoseconds.div_euclid(A_SECOND);
    let rest = nanoseconds.rem_euclid(A_SECOND);
    full as f64 + rest as f64 / A_SECOND as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(source: &Source) -> Option<(i64, Source)> {
        super::source(&facts(SourceId(4), source).unwrap())
    }

    #[test]
    fn a_source_comes_back() {
        let with_options = |options| Source {
            kind: "rprof".to_owned(),
            options,
            ..Source::default()
        };
        let with_period = |value, type_: &str, unit: &str| Source {
            period: Some(Period {
                value,
                type_: type_.to_owned(),
                unit: unit.to_owned(),
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
                kind: "a kind".to_owned(),
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
    fn times_are_exact() {
        for time in [0.0, 0.25, -1.5, 1_732_170_000.0, 1_732_169_999.999_999_8] {
            assert_eq!(nanoseconds(time).map(seconds), Some(time));
        }
        assert_eq!(nanoseconds(1_732_170_000.0), Some(1_732_170_000 * A_SECOND));
        for time in [1e10, -1e10, 1e300, f64::INFINITY, f64::NAN] {
            assert_eq!(nanoseconds(time), None);
        }
    }

    #[test]
    fn what_is_never_written_is_no_source() {
        let source = Source {
            kind: "rprof".to_owned(),
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
            (4, number((1 << 53) + 1, "")),
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
            assert_eq!(super::source(&facts), None, "{facts:?}");
        }
    }
}
