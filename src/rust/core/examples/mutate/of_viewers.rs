//! The checks of the fuzzer for the formats of viewers: a profile that was read can be written, and reading it back
//! returns the same profile.

use super::{origin, read_rprof, seed_of};
use profile_core::error::{Error, Result};
use profile_core::formats::{self, Format, Input, Writer, cpuprofile, firefox, speedscope};
use profile_core::model::Profile;
use serde_json::{Number, Value};
use std::path::PathBuf;

fn writers() -> [(&'static Format, Box<dyn Writer>); 4] {
    let speedscope = |aggregate| Box::new(speedscope::Writer { aggregate });
    [
        (&speedscope::FORMAT, speedscope(Some(false))),
        (&speedscope::FORMAT, speedscope(Some(true))),
        (&cpuprofile::FORMAT, Box::new(cpuprofile::Writer)),
        (&firefox::FORMAT, Box::new(firefox::Writer::default())),
    ]
}

fn read(bytes: &[u8], format: &'static Format) -> Result<Profile> {
    let read = formats::read(Input::Bytes(bytes), Some(format), origin(), &|| false);
    read.map(|(profile, _)| profile)
}

/// `None` if the format cannot store it, or if its values are so large that their sum is infinite.
fn written(profile: &Profile, writer: &dyn Writer) -> std::result::Result<Option<Vec<u8>>, String> {
    let mut bytes = Vec::new();
    match writer.write(profile, &mut bytes, &|| false) {
        Ok(_) => Ok(Some(bytes)),
        Err(Error::Lossy(_) | Error::Unsupported(_)) => Ok(None),
        Err(e) => Err(format!("it cannot be written for a viewer: {e}")),
    }
}

fn is_too_large(profile: &Profile, writer: &dyn Writer) -> bool {
    let result = writer.write(profile, &mut Vec::new(), &|| false);
    matches!(result, Err(Error::Unsupported(_)))
}

/// Reads the content in each of these formats.
pub fn examine(bytes: &[u8]) -> std::result::Result<(), String> {
    for format in [&speedscope::FORMAT, &cpuprofile::FORMAT, &firefox::FORMAT] {
        if let Ok(profile) = read(bytes, format) {
            there_and_back(&profile)?;
        }
    }
    Ok(())
}

/// Writes a profile in each format and reads it back. The second time nothing changes.
pub fn there_and_back(profile: &Profile) -> std::result::Result<(), String> {
    for (format, writer) in writers() {
        let name = format.name;
        let Some(first) = written(profile, &*writer)? else {
            continue;
        };
        let again = |bytes: &[u8]| {
            let profile = read(bytes, format);
            profile.map_err(|e| format!("our {name} cannot be read: {e}"))
        };
        let one = again(&first)?;
        let Some(second) = written(&one, &*writer)? else {
            // A file has an interval, with which the sum of counts may be infinite as time.
            if is_too_large(&one, &*writer) {
                continue;
            }
            return Err(format!("our {name} cannot be written again"));
        };
        let two = again(&second)?;
        let third = written(&two, &*writer)?.unwrap_or_default();
        if third != second && !is_same(&third, &second) {
            return Err(format!("our {name} comes back as another file"));
        }
    }
    Ok(())
}

/// Whether two files differ only by rounding: times are sums of differences, so that a large one rounds all others.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let value = |bytes| serde_json::from_slice::<Value>(bytes).ok();
    let (Some(one), Some(other)) = (value(one), value(other)) else {
        return false;
    };
    let most = largest(&one).max(largest(&other));
    is_near(&one, &other, 1e-12 * most)
}

fn largest(value: &Value) -> f64 {
    match value {
        Value::Number(number) => number.as_f64().unwrap_or(0.0).abs(),
        Value::Array(values) => values.iter().map(largest).fold(0.0, f64::max),
        Value::Object(fields) => fields.values().map(largest).fold(0.0, f64::max),
        _ => 0.0,
    }
}

fn is_near(one: &Value, other: &Value, distance: f64) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let number = |n: &Number| n.as_f64().unwrap_or(f64::NAN);
            (number(one) - number(other)).abs() <= distance
        }
        (Value::Array(one), Value::Array(other)) => {
            let near = |(one, other)| is_near(one, other, distance);
            one.len() == other.len() && one.iter().zip(other).all(near)
        }
        (Value::Object(one), Value::Object(other)) => {
            let near = |(key, one)| {
                let other = other.get(key);
                other.is_some_and(|other| is_near(one, other, distance))
            };
            one.len() == other.len() && one.iter().all(near)
        }
        _ => one == other,
    }
}

/// Files of `Rprof()` in these formats.
pub fn as_json(files: &[PathBuf]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for path in files {
        let Some((profile, _)) = seed_of(path).and_then(|bytes| read_rprof(&bytes).ok()) else {
            continue;
        };
        for (_, writer) in writers() {
            if let Ok(Some(bytes)) = written(&profile, &*writer) {
                all.extend((bytes.len() < 1 << 16).then_some(bytes));
            }
        }
    }
    all
}
