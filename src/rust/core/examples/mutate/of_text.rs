//! The checks of the fuzzer for text formats, except Rprof.

use super::of_otlp::through_otlp;
use super::{origin, through_pprof};
use profile_core::error::{Error, Result};
use profile_core::formats::{self, Format, Input, Writer, callgrind, collapsed, perf, rprofmem};
use profile_core::model::Profile;

/// Reads the bytes in each of the formats, and checks the result.
pub fn examine_text(bytes: &[u8]) -> std::result::Result<(), String> {
    for format in [&collapsed::FORMAT, &rprofmem::FORMAT, &perf::FORMAT] {
        if let Ok(profile) = read(bytes, format) {
            written(&callgrind::Writer, &profile)?;
            through_collapsed(&profile)?;
            through_pprof(&profile, true)?;
            through_otlp(&profile, false, false)?;
        }
    }
    Ok(())
}

fn read(bytes: &[u8], format: &'static Format) -> Result<Profile> {
    formats::read(Input::Bytes(bytes), Some(format), origin(), &|| false)
        .map(|(profile, _)| profile)
}

fn written(writer: &dyn Writer, profile: &Profile) -> std::result::Result<Option<Vec<u8>>, String> {
    let mut out = Vec::new();
    match writer.write(profile, &mut out, &|| false) {
        Ok(_) => Ok(Some(out)),
        Err(Error::Lossy(_) | Error::Unsupported(_)) => Ok(None),
        Err(e) => Err(format!("it cannot be written: {e}")),
    }
}

/// Collapsed stacks that were read and written do not change when they are read and written again.
fn through_collapsed(profile: &Profile) -> std::result::Result<(), String> {
    let writer = collapsed::Writer {
        type_: None,
        frame_types: true,
    };
    let mut last = None;
    let mut profile = profile.clone();
    for round in 0..3 {
        let Some(out) = written(&writer, &profile)?.filter(|out| !out.is_empty()) else {
            return Ok(());
        };
        profile = match read(&out, &collapsed::FORMAT) {
            Ok(profile) => profile,
            // The first stack may be a line of another format, which is refused.
            Err(Error::Foreign(_)) => return Ok(()),
            Err(e) => return Err(format!("ours cannot be read: {e}")),
        };
        // Names that end in a number are taken for a second count if all lines have one.
        if profile.values.len() > 1 {
            return Ok(());
        }
        if round == 2 && last.as_ref() != Some(&out) {
            return Err("collapsed stacks come back as others".to_owned());
        }
        last = Some(out);
    }
    Ok(())
}
