//! Describes each recorded process as a source of the profile: what was measured, and which process it was.

use crate::recorded::settings::Clock;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned, written};
use profile_core::message;
use profile_core::model::known_types::{CPU, WALL};
use profile_core::model::{
    Attribute, AttributeValue, PROCESS_ID, Period, Profile, SampleType, Source, SourceKind,
    ValueKind, ValueType, Values,
};
use std::time::{SystemTime, UNIX_EPOCH};

/// The kind of such sources.
pub const KIND: SourceKind = SourceKind::PROCESS;

/// The sample types. There is no count of samples, because other tools would multiply it by the interval, although
/// the time between two samples varies, above all on a busy machine.
pub const TYPES: [(&str, &str); 2] = [CPU.key(), WALL.key()];

/// Adds the columns of values to a new profile.
pub fn declare_types(profile: &mut Profile) -> Result<()> {
    for (name, unit) in TYPES {
        let column = Values::absent(name, unit, 0)?;
        profile.values.try_push(column)?;
    }
    Ok(())
}

/// A source with what is known about every process, including one that records itself in another way. `interval` is
/// in nanoseconds. The attribute keys are those of OpenTelemetry's semantic conventions for processes.
pub fn own_source(
    pid: i32,
    clock: Clock,
    interval: f64,
    types: &[(&str, &str)],
    profile: &mut Profile,
) -> Result<Source> {
    let value = ValueType {
        name: owned(clock.name())?,
        unit: owned("nanoseconds")?,
    };
    let mut source = bare_source(pid, profile)?;
    source.default_type = Some(owned(clock.name())?);
    source.period = Some(Period {
        value: interval,
        exact: None,
        type_: Some(value),
    });
    for &(name, unit) in types {
        let type_ = SampleType::new(owned(name)?, owned(unit)?, &source.types)?;
        source.types.try_push(type_)?;
    }
    Ok(source)
}

/// A source for a process, with its id.
pub fn bare_source(pid: i32, profile: &mut Profile) -> Result<Source> {
    let mut source = Source {
        kind: KIND,
        uri: Some(written(format_args!("pid:{pid}"))?),
        timestamp: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .ok()
            .map(|since| since.as_secs_f64()),
        ..Source::default()
    };
    let pid = attribute(PROCESS_ID, ValueKind::Int, &message!("{pid}"), profile)?;
    source.attributes.try_push(pid)?;
    Ok(source)
}

/// Adds numbers to the attributes of a source.
pub fn add_numbers(
    source: &mut Source,
    numbers: &[(&str, u64)],
    profile: &mut Profile,
) -> Result<()> {
    for &(key, value) in numbers {
        let attribute = attribute(key, ValueKind::Int, &message!("{value}"), profile)?;
        source.attributes.try_push(attribute)?;
    }
    Ok(())
}

/// Adds numbers to the attributes of all sources of a profile.
pub fn add_numbers_to_all(profile: &mut Profile, numbers: &[(&str, u64)]) -> Result<()> {
    let mut sources = std::mem::take(&mut profile.sources);
    for source in &mut sources {
        add_numbers(source, numbers, profile)?;
    }
    profile.sources = sources;
    Ok(())
}

pub fn attribute(
    key: &str,
    kind: ValueKind,
    text: &str,
    profile: &mut Profile,
) -> Result<Attribute> {
    Ok(Attribute {
        key: profile.strings.intern(key)?,
        value: AttributeValue {
            kind,
            text: profile.strings.intern(text)?,
        },
        unit: None,
    })
}

/// Formats a time, in seconds since 1970, as in ISO 8601.
pub fn utc(seconds: f64) -> String {
    let seconds = seconds as i64;
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days are counted from 0000-03-01, so that a leap day is the last day of its year. 400 years have 146,097 days.
    let day = day + 719_468;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // From March on, the lengths of months repeat in the pattern 31, 30, 31, 30, 31 days.
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (year, month + 3),
        _ => (year + 1, month - 9),
    };
    message!(
        "{:04}-{month:02}-{day_of_month:02}T{:02}:{:02}:{:02}Z",
        era * 400 + year,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates_and_times() {
        // The expected values are those of `date -u -d @SECONDS`.
        for (seconds, text) in [
            (0.0, "1970-01-01T00:00:00Z"),
            (951_782_399.0, "2000-02-28T23:59:59Z"),
            (951_782_400.0, "2000-02-29T00:00:00Z"),
            (1_709_164_800.5, "2024-02-29T00:00:00Z"),
            (1_735_689_599.0, "2024-12-31T23:59:59Z"),
            (4_102_444_800.0, "2100-01-01T00:00:00Z"),
            (4_107_542_400.0, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }
}
