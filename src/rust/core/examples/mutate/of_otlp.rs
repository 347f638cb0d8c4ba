//! The inputs and checks of the fuzzer for OTLP messages.

use super::otlp::message::{Field, LAYOUTS, Layout, each_index, walk};
use super::otlp::{irregular::irregular, wire};
use super::{Random, origin, samples};
use profile_core::error::{Error, Result};
use profile_core::formats::otlp;
use profile_core::formats::problems::Problems;
use profile_core::formats::{self, Input, Writer as _};
use profile_core::model::Profile;
use serde_json::{Value, json};
use std::path::PathBuf;

pub fn read_otlp(bytes: &[u8]) -> Result<(Profile, Problems)> {
    formats::read(Input::Bytes(bytes), Some(&otlp::FORMAT), origin(), &|| {
        false
    })
}

/// An irregular message in one of its encodings, with some numbers changed.
pub fn irregular_message(random: &mut Random) -> Vec<u8> {
    let layout = LAYOUTS[random.below(LAYOUTS.len())];
    let mut data = irregular(random.next(), layout, random.below(2) == 0);
    let (mut seen, at) = (0, random.below(300));
    if layout == Layout::V11 {
        each_index(&mut data, "Data", "", &mut |_, _, index| {
            if seen % 300 == at {
                *index = json!([0, 1, 2, 3, -1, 1000][random.below(6)]);
            }
            seen += 1;
        });
        walk(&mut data, "Data", "", &mut |_, field, value| {
            seen += 1;
            if seen % 300 == at {
                change(field, value, random);
            }
        });
        if random.below(3) == 0 {
            return data.to_string().into_bytes();
        }
    }
    let forms = wire::Form::all(layout);
    let bytes = wire::encode_as(&data, forms[random.below(forms.len())]);
    match random.below(8) {
        0 => {
            let frame = [&(bytes.len() as u32).to_be_bytes(), &bytes[..]].concat();
            frame.repeat(1 + random.below(2))
        }
        _ => bytes,
    }
}

fn change(field: &Field, value: &mut Value, random: &mut Random) {
    let number = match random.below(6) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << 63,
        3 => 1 << 53 | 1,
        _ => random.next() >> random.below(64),
    };
    let value = match value {
        Value::Array(items) if items.is_empty() => return,
        Value::Array(items) => {
            let at = random.below(items.len());
            &mut items[at]
        }
        Value::Null if field.repeated => return,
        value => value,
    };
    let text = value.as_str().unwrap_or_default();
    *value = match field.kind {
        "int64" => json!((number as i64).to_string()),
        "uint32" => json!(number as u32),
        "uint64" | "fixed64" => json!(number.to_string()),
        "string" if !field.repeated => json!(format!("{text}\u{0}\u{7f}\u{e9}\u{2028}\"\\")),
        "bytes" => json!("AQID"),
        "id" => json!(format!("{text}{:02x}", number as u8)),
        _ => return,
    };
}

/// Checks round trips as bytes and JSON, with and without merged samples.
pub fn there_and_back_otlp(profile: &Profile) -> std::result::Result<(), String> {
    for aggregate in [false, true] {
        let Some((bytes, second)) = settled(profile, aggregate)? else {
            return Ok(());
        };
        for json in [false, true] {
            let Some((written, third)) = through_otlp(&second, aggregate, json)? else {
                return Err("what was OTLP cannot be written as such".to_owned());
            };
            if !json && written != bytes {
                return Err(format!(
                    "OTLP comes back as other bytes, merged: {aggregate}"
                ));
            }
            for again in [false, true] {
                let other = through_otlp(&third, aggregate, again)?.map(|(bytes, _)| bytes);
                let expected = if again == json { &written } else { &bytes };
                if (again == json || !again) && other.as_ref() != Some(expected) {
                    return Err(format!(
                        "OTLP is other in JSON: {json}, merged: {aggregate}"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Writes the profile as OTLP and reads it back. If the sources or their scopes have changed, since
/// OTLP cannot store all differences between them, this is repeated with the result. It is also
/// repeated if only some samples have times: these become separate profiles, whose samples are read
/// in another order, which determines the order of stacks in the dictionary.
fn settled(
    profile: &Profile,
    aggregate: bool,
) -> std::result::Result<Option<(Vec<u8>, Profile)>, String> {
    let Some((bytes, second)) = through_otlp(profile, aggregate, false)? else {
        return Ok(None);
    };
    let scopes = |p: &Profile| -> Vec<_> { p.sources.iter().map(|s| s.scope).collect() };
    let sorted = |profile| {
        let mut all = samples(profile, false);
        all.sort();
        all
    };
    if scopes(profile) != scopes(&second) {
        return through_otlp(&second, aggregate, false);
    }
    // Samples are then grouped by source, so their order may differ.
    if !aggregate && sorted(profile) != sorted(&second) {
        return Err("written as OTLP, it reads back as another profile".to_owned());
    }
    let times = profile.samples.times.len();
    if times > 0 && times < profile.samples.len() {
        return through_otlp(&second, aggregate, false);
    }
    Ok(Some((bytes, second)))
}

/// Writes the profile as OTLP and reads it back; `None` if OTLP cannot store it.
pub fn through_otlp(
    profile: &Profile,
    aggregate: bool,
    json: bool,
) -> std::result::Result<Option<(Vec<u8>, Profile)>, String> {
    let options = otlp::Writer {
        aggregate,
        json,
        ..Default::default()
    };
    let mut bytes = Vec::new();
    match options.write(profile, &mut bytes, &|| false) {
        Ok(_) => {}
        Err(Error::Lossy(_)) => return Ok(None),
        Err(e) => return Err(format!("it cannot be written as OTLP: {e}")),
    }
    let (second, _) = read_otlp(&bytes).map_err(|e| format!("our OTLP cannot be read: {e}"))?;
    Ok(Some((bytes, second)))
}

/// Converts files to OTLP, except those whose messages are too large to be read often.
pub fn as_otlp(files: &[PathBuf]) -> Vec<Vec<u8>> {
    let profiles = files.iter().filter_map(|path| {
        let read = formats::read(Input::File(path), None, origin(), &|| false);
        read.ok().map(|(profile, _)| profile)
    });
    let mut seeds = Vec::new();
    for profile in profiles {
        for (json, aggregate) in [(false, false), (false, true), (true, false)] {
            let through = through_otlp(&profile, aggregate, json).ok().flatten();
            seeds.extend(through.map(|(bytes, _)| bytes));
        }
    }
    seeds.retain(|bytes| bytes.len() <= 1 << 16);
    seeds
}
