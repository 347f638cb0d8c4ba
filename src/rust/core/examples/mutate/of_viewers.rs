//! The formats of viewers: what was read can be written, and comes back.

use super::{origin, read_rprof, seed_of};
use profile_core::error::{Error, Result};
use profile_core::formats::{self, Format, Input, Writer, cpuprofile, firefox, speedscope};
use profile_core::model::Profile;
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

/// `None` if the format cannot store it.
fn written(profile: &Profile, writer: &dyn Writer) -> std::result::Result<Option<Vec<u8>>, String> {
    let mut bytes = Vec::new();
    match writer.write(profile, &mut bytes, &|| false) {
        Ok(_) => Ok(Some(bytes)),
        Err(Error::Lossy(_)) => Ok(None),
        Err(e) => Err(format!("it cannot be written for a viewer: {e}")),
    }
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
            return Err(format!("our {name} cannot be written again"));
        };
        let two = again(&second)?;
        if written(&two, &*writer)?.is_none_or(|third| third != second) {
            return Err(format!("our {name} comes back as other bytes"));
        }
    }
    Ok(())
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
