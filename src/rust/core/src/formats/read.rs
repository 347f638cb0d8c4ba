//! Reads a profile in a given format, or in the format that is detected from its content.
//!
//! Compression with gzip is also detected from the content, not from the name of a file.

use super::format::{Format, Input, Opened};
use super::problems::Problems;
use super::{collapsed, cpuprofile, firefox, otlp, perf, pprof, rprof, rprofmem, speedscope};
use crate::error::{Error, Foreign, Position, Result};
use crate::io::gzip::Content;
use crate::io::input::{InputFile, Origin, Source};
use crate::limits::cancel::Stop;
use crate::message;
use crate::model::Profile;

/// The number of bytes from which the format is detected.
const START: u64 = 1 << 16;

/// All formats that can be read. The first that recognises a file reads it.
pub const FORMATS: &[&Format] = &[
    &rprof::FORMAT,
    &pprof::FORMAT,
    &otlp::FORMAT,
    &speedscope::FORMAT,
    &cpuprofile::FORMAT,
    &firefox::FORMAT,
    &rprofmem::FORMAT,
    &perf::FORMAT,
    &collapsed::FORMAT,
];

/// The format with this name, if it is supported.
pub fn named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.name == name)
}

/// Reads a profile. Without a `format`, it is detected.
pub fn read(
    input: Input,
    format: Option<&'static Format>,
    origin: Origin,
    stop: Stop,
) -> Result<(Profile, Problems)> {
    open(input, origin, |mut content, origin| {
        let format = match format {
            Some(format) => Some(format),
            None => detect(&mut content, &origin)?,
        };
        let read_as = |format: &'static Format| {
            let opened = Opened {
                content,
                origin,
                format,
                recognise,
            };
            let input = message!("{}", opened.origin.name);
            let (profile, problems) = (format.read)(opened, stop)?;
            check_values(&profile, input)?;
            Ok((profile, problems))
        };
        // The reader of Rprof files describes what files in other formats look like.
        let Some(format) = format else {
            return read_as(&rprof::FORMAT).map_err(|error| match error {
                Error::Foreign(foreign) => Error::Foreign(Foreign {
                    wanted: "a profile in a supported format",
                    found: match foreign.found == rprof::OTHERWISE {
                        true => message!("its content is of no known format"),
                        false => foreign.found,
                    },
                    ..foreign
                }),
                other => other,
            });
        };
        read_as(format)
    })
}

/// Checks that values which a reader computed, such as differences of times, are not infinite.
fn check_values(profile: &Profile, input: String) -> Result<()> {
    for values in &profile.values {
        if let Some(row) = values.infinite() {
            return Err(Error::Parse {
                input,
                position: Position::Sample(row as u64 + 1),
                message: message!(
                    "The value of type `{}` is beyond the range of a double.",
                    values.type_.name
                ),
            });
        }
    }
    Ok(())
}

/// Detects the format of the content; `None` if it is not supported.
pub fn format_of(input: Input, origin: Origin) -> Result<Option<&'static Format>> {
    open(input, origin, |mut content, origin| {
        detect(&mut content, &origin)
    })
}

/// Detects the format of content that starts with these bytes.
pub fn recognise(start: &[u8]) -> Option<&'static Format> {
    let mut formats = FORMATS.iter().copied();
    formats.find(|format| (format.recognises)(start))
}

fn open<T>(
    input: Input,
    origin: Origin,
    read: impl FnOnce(Content, Origin) -> Result<T>,
) -> Result<T> {
    let source = match input {
        Input::File(path) => {
            let (mut file, origin) = InputFile::open(path, origin)?;
            let content = Content::new(file.source()).map_err(|e| Error::open(path, e))?;
            return read(content, origin);
        }
        Input::Bytes(bytes) => Source::Bytes(bytes),
        Input::Stream(stream) => Source::Stream(stream),
    };
    let content =
        Content::new(source).map_err(|e| Error::damaged(&origin.name, Position::Byte(0), &e))?;
    read(content, origin)
}

fn detect(content: &mut Content, origin: &Origin) -> Result<Option<&'static Format>> {
    // An error after some bytes is ignored here; reading the file reports it.
    let start = content
        .peek(START)
        .map_err(|e| Error::damaged(&origin.name, Position::Byte(0), &e))?;
    Ok(recognise(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_distinguished() {
        let tables: [(&[u8], Option<&Format>); 40] = [
            (b"sample.interval=20000\n", Some(&rprof::FORMAT)),
            (b"\"f\" \"g\" \n", Some(&rprof::FORMAT)),
            (b"sample.interval=20000\n\"\x01\" \n", Some(&rprof::FORMAT)),
            (b"hello\n", None),
            (b"", None),
            (
                b"\xef\xbb\xbf {\n \"resourceProfiles\": []}",
                Some(&otlp::FORMAT),
            ),
            (b"{\"dictionary\": \"\x7f\"}", Some(&otlp::FORMAT)),
            (b"{\"a\": 1}", None),
            // A sample type; a resource; a string table; only a dictionary.
            (b"\x0a\x04\x08\x01\x10\x02", Some(&pprof::FORMAT)),
            (b"\x0a\x04\x12\x02\x12\x00", Some(&otlp::FORMAT)),
            (b"\x0a\x00\x32\x00", Some(&pprof::FORMAT)),
            (b"\x12\x02\x2a\x00", Some(&otlp::FORMAT)),
            (
                b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}",
                Some(&speedscope::FORMAT),
            ),
            // A function whose name is a field of another format.
            (
                b"{\"shared\":{\"frames\":[{\"name\":\"dictionary\"}]}}",
                Some(&speedscope::FORMAT),
            ),
            (
                b"{\"profiles\":[{\"type\":\"evented\",\"unit\":\"none\"",
                Some(&speedscope::FORMAT),
            ),
            (
                b"{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\"}}",
                Some(&cpuprofile::FORMAT),
            ),
            (
                b"{\"head\":{\"functionName\":\"(root)\"",
                Some(&cpuprofile::FORMAT),
            ),
            (
                b"{\"metadata\":{},\"traceEvents\":[",
                Some(&cpuprofile::FORMAT),
            ),
            (
                b"[{\"args\":{\"shared\":{}},\"ph\":\"P\"}",
                Some(&cpuprofile::FORMAT),
            ),
            (
                b"{\"meta\":{\"interval\":1,\"preprocessedProfileVersion\":66}}",
                Some(&firefox::FORMAT),
            ),
            (
                b"{\"shared\":{\"stackTable\":{\"frame\":[]}}}",
                Some(&firefox::FORMAT),
            ),
            (
                b"{\"threads\":[{\"frameTable\":{\"schema\":{}}}]}",
                Some(&firefox::FORMAT),
            ),
            (b"{\"a\":{\"resourceProfiles\":[]}}", None),
            // A truncated resource.
            (b"\x0a\xff\x7f\x12\x02", Some(&otlp::FORMAT)),
            (b"192 :\"f\" \"g\" \n", Some(&rprofmem::FORMAT)),
            (b"192 :360 :new page:\"f\" \n", Some(&rprofmem::FORMAT)),
            (b"new page:", Some(&rprofmem::FORMAT)),
            (b"192: 5\n", None),
            (b"f;g 5\n", Some(&collapsed::FORMAT)),
            (b"f;g 5\r\n\nf 1.5\nf;h", Some(&collapsed::FORMAT)),
            (b"f;g(int, long) 5", Some(&collapsed::FORMAT)),
            (b"f;g 5 6\n", Some(&collapsed::FORMAT)),
            // Tables, sentences and code end in numbers too.
            (b"1 2\n3 4\n", None),
            (b"a;b 5\nhello\n", None),
            (b"a;\tb 5\n", None),
            (b"for (i=0;i<5;i++) 1\n}\n", None),
            (
                b"R 12 3.4: 250000 cpu-clock: \n\t 7f0 f (m)\n\n",
                Some(&perf::FORMAT),
            ),
            (b"# ========\n# captured on : x\n", Some(&perf::FORMAT)),
            (
                b"a b 1/2 [003] 3.4: sched:x: a=1\na 1 3.4: c: \n",
                Some(&perf::FORMAT),
            ),
            (b"error 12 in line: x\n", None),
        ];
        for (bytes, format) in tables {
            assert_eq!(recognise(bytes), format, "{bytes:?}");
            let all = FORMATS.iter().filter(|format| (format.recognises)(bytes));
            assert!(all.count() <= 1, "{bytes:?}");
        }
    }
}
