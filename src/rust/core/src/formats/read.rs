//! Reads a profile in a given format, or in the format that is detected from its content.
//!
//! Compression with gzip is also detected from the content, not from the name of a file.

use super::format::{Convert, Format, Input, Look, Opened};
use super::problems::Problems;
use super::{FORMATS, collapsed, named, rprof, signatures};
use crate::analysis::recorded::separate_rows;
use crate::error::{Error, Foreign, Position, Result};
use crate::formats::bytes::without_damage;
use crate::io::gzip::Content;
use crate::io::input::{InputFile, Origin, Source};
use crate::limits::cancel::Stop;
use crate::message;
use crate::model::Profile;

/// The number of bytes from which the format is detected.
const START: u64 = 1 << 16;
/// The number of bytes for content whose first line is longer.
const LONGEST_LINE: u64 = 64 << 20;

/// Reads a profile. Without a `format`, it is detected.
pub fn read(
    input: Input,
    format: Option<&'static Format>,
    origin: Origin,
    stop: Stop,
) -> Result<(Profile, Problems)> {
    open(input, origin, |mut content, origin| {
        let look = look_of(&mut content, &origin)?;
        let wanted = format.unwrap_or(&ANY);
        let is_other = match look {
            Look::Kind(_) => true,
            Look::Format(found) => format.is_some_and(|it| it != found) && !found.is_guessed,
            Look::Syntax(_) | Look::Unknown => false,
        };
        if is_other {
            return Err(look.error(&origin.name, wanted, ""));
        }
        let read_as = |format: &'static Format| {
            let opened = Opened {
                content,
                origin,
                format,
                look,
            };
            let input = message!("{}", opened.origin.name);
            if let Some((other, convert)) = format.read_as {
                return read_converted(opened, other, convert, stop);
            }
            let Some(read) = format.read else {
                return Err(Error::Unsupported(message!(
                    "{input}: {} can only be written.",
                    format.title
                )));
            };
            let (mut profile, problems) = read(opened, stop)?;
            separate_rows(&mut profile)?;
            check_values(&profile, input)?;
            Ok((profile, problems))
        };
        // Files of `Rprof()` may start with the rest of a sample, by which they are not recognised, so their reader is
        // tried. For other content its error describes irregularities, such as blank lines.
        match format.or(look.format()) {
            Some(format) => read_as(format),
            None => read_as(&rprof::FORMAT).map_err(|error| match error {
                Error::Foreign(foreign) => Error::Foreign(Foreign {
                    wanted: ANY.title,
                    found: if foreign.found == rprof::OTHERWISE {
                        message!("its content is of no known format")
                    } else {
                        foreign.found
                    },
                    ..foreign
                }),
                other => other,
            }),
        }
    })
}

/// Reads content after it was converted to a file of another format.
fn read_converted(
    opened: Opened,
    other: &str,
    convert: Convert,
    stop: Stop,
) -> Result<(Profile, Problems)> {
    let origin = opened.origin.clone();
    let bytes = convert(opened, stop)?;
    let Some(format) = named(other) else {
        return Err(Error::Unsupported(message!(
            "There is no format `{other}`."
        )));
    };
    let damaged = |e| Error::damaged(&origin.name, Position::Byte(0), &e);
    let opened = Opened {
        content: Content::new(Source::Bytes(&bytes)).map_err(damaged)?,
        origin,
        format,
        look: Look::Format(format),
    };
    match format.read {
        Some(read) => read(opened, stop),
        None => Err(Error::Unsupported(message!(
            "{} can only be written.",
            format.title
        ))),
    }
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

/// The expected kind of file if no format is given.
const ANY: Format = Format {
    title: "a profile in a supported format",
    ..Format::NONE
};

/// Detects the format of the content; `None` if it is not supported.
pub fn format_of(input: Input, origin: Origin) -> Result<Option<&'static Format>> {
    open(input, origin, |mut content, origin| {
        Ok(look_of(&mut content, &origin)?.format())
    })
}

/// The kind of file that starts with these bytes. Signatures are checked first, since the criteria for formats without
/// a signature are less specific.
pub fn look(start: &[u8]) -> Look {
    if let Some(kind) = signatures::find(start) {
        return Look::Kind(kind);
    }
    let start = without_damage(start);
    let mut formats = FORMATS.iter().copied();
    if let Some(format) = formats.find(|format| (format.recognises)(start)) {
        return Look::Format(format);
    }
    match signatures::find_syntax(start) {
        Some(kind) => Look::Syntax(kind),
        None => Look::Unknown,
    }
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

fn look_of(content: &mut Content, origin: &Origin) -> Result<Look> {
    // An error after some bytes is ignored here; reading the file reports it.
    let damaged = |e| Error::damaged(&origin.name, Position::Byte(0), &e);
    let start = content.peek(START).map_err(damaged)?;
    let is_full = start.len() as u64 == START;
    let is_long = is_full && collapsed::is_part_of_line(start);
    match look(start) {
        // Only the end of a line shows that it is a stack, which may have thousands of frames.
        // The scripts of a page come before its data.
        Look::Kind(kind) if is_full && kind.name == signatures::HTML => {
            Ok(look(content.peek(LONGEST_LINE).map_err(damaged)?))
        }
        Look::Unknown if is_long => Ok(look(content.peek(LONGEST_LINE).map_err(damaged)?)),
        look => Ok(look),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{cpuprofile, firefox, otlp, perf, pprof, rprofmem, speedscope};

    #[test]
    fn a_format_that_is_only_written_is_an_error() {
        let callgrind = Some(&crate::formats::callgrind::FORMAT);
        let error = read(
            Input::Bytes(b"hello\n"),
            callgrind,
            Origin::default(),
            &|| false,
        );
        assert!(
            matches!(error, Err(Error::Unsupported(text)) if text.ends_with("can only be written."))
        );
    }

    #[test]
    fn formats_are_distinguished() {
        #[rustfmt::skip]
        let tables: Vec<(&[u8], Option<&Format>)> = vec![
            (b"sample.interval=20000\n", Some(&rprof::FORMAT)),
            (b"\"f\" \"g\" \n", Some(&rprof::FORMAT)),
            (b"sample.interval=20000\n\"\x01\" \n", Some(&rprof::FORMAT)),
            (b"\n\r\n:1:2:3:4:\"f\" 1#2 \n", Some(&rprof::FORMAT)),
            (b"#File 1: a.R\n\"f\" \n", Some(&rprof::FORMAT)),
            (b"\"a\",\"b\"\n1,2\n", None),
            (b"hello\n", None),
            (b"", None),
            (b"\xef\xbb\xbf {\n \"resourceProfiles\": []}", Some(&otlp::FORMAT)),
            (b"{\"dictionary\": \"\x7f\"}", Some(&otlp::FORMAT)),
            (b"{\"a\": 1}", None),
            // A sample type; a resource; a string table; only a dictionary.
            (b"\x0a\x04\x08\x01\x10\x02", Some(&pprof::FORMAT)),
            (b"\x0a\x04\x12\x02\x12\x00", Some(&otlp::FORMAT)),
            (b"\x0a\x00\x32\x00", Some(&pprof::FORMAT)),
            (b"\x12\x02\x2a\x00", Some(&otlp::FORMAT)),
            (b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}", Some(&speedscope::FORMAT)),
            // A function whose name is a field of another format.
            (b"{\"shared\":{\"frames\":[{\"name\":\"dictionary\"}]}}", Some(&speedscope::FORMAT)),
            (b"{\"profiles\":[{\"type\":\"evented\",\"unit\":\"none\"", Some(&speedscope::FORMAT)),
            (b"{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\"}}", Some(&cpuprofile::FORMAT)),
            (b"{\"head\":{\"functionName\":\"(root)\"", Some(&cpuprofile::FORMAT)),
            (b"{\"metadata\":{},\"traceEvents\":[", Some(&cpuprofile::FORMAT)),
            (b"[{\"args\":{\"shared\":{}},\"ph\":\"P\"}", Some(&cpuprofile::FORMAT)),
            (b"{\"meta\":{\"interval\":1,\"preprocessedProfileVersion\":66}}", Some(&firefox::FORMAT)),
            (b"{\"shared\":{\"stackTable\":{\"frame\":[]}}}", Some(&firefox::FORMAT)),
            // The files that Firefox itself records cannot be read.
            (b"{\"threads\":[{\"frameTable\":{\"schema\":{}}}]}", None),
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
            (b"<module> (a.py:3);f 5\n", Some(&collapsed::FORMAT)),
            (b"<html>;f 5\n", Some(&collapsed::FORMAT)),
            (b"a;\tb 5\n", Some(&collapsed::FORMAT)),
            (b"a;b\t5\n", Some(&collapsed::FORMAT)),
            (b"\"f\" g;[h] 5\n", Some(&collapsed::FORMAT)),
            (b"192 :f;g 5\n", Some(&collapsed::FORMAT)),
            (b"sample.interval=;g\x01 5\n", Some(&collapsed::FORMAT)),
            (b"{main};f 5\n", Some(&collapsed::FORMAT)),
            (b"#f;g 5\n", Some(&collapsed::FORMAT)),
            (b"// 5\n# x: 3\n\na;b 5\n", Some(&collapsed::FORMAT)),
            (b"\xef\xbb\xbfa;b 5\n", Some(&collapsed::FORMAT)),
            (b"hello\na;b 5\n", Some(&collapsed::FORMAT)),
            (b"a;b 5\nhello\na;c 5\nworld\n", Some(&collapsed::FORMAT)),
            (b"f 5\n<module> (a.py:3) 2\nvoid g<int>(int, x) 7\n", Some(&collapsed::FORMAT)),
            (b"f 5\nf 5\n", None),
            (b"f 5\nhello\n", None),
            (b"key: 5\nother: 6\n", None),
            (b"On line 5\n", None),
            // Lines of tables, sentences and code may also end in numbers.
            (b"1 2\n3 4\n", None),
            (b"a;b 5\nhello\nworld\n", None),
            (b"# a;b 5\n", None),
            (b"for (i=0;i<5;i++) 1\n}\n", None),
            (b"See a;b 5\nand more\n\nof this text.\n", None),
            (b"name;count\nf;1\ng;2\n", None),
            (b"Line 5\nis more; see page 12\n", None),
            (b"x = 1; y = 2\n", None),
            (b"x <- 1; y <- c(1,\n2)\nprint(x)\n", None),
            (b"#define A 1\n#define B 2\nint x;\n", None),
            (b"R 12 3.4: 250000 cpu-clock: \n\t 7f0 f (m)\n\n", Some(&perf::FORMAT)),
            (b"# ========\n# captured on : x\n", Some(&perf::FORMAT)),
            (b"a b 1/2 [003] 3.4: sched:x: a=1\na 1 3.4: c: \n", Some(&perf::FORMAT)),
            (b"# a comment\n\nR 12 3.4: 5 c: \n", Some(&perf::FORMAT)),
            (b"R\t12 [001] 3.4:\t\t5 c:\n 10a4\tf (m)\n", Some(&perf::FORMAT)),
            (b"R 12 c: \n\t    f (/bin/a)\n", Some(&perf::FORMAT)),
            (b"     12 c: \n\t            dd777 f\n", Some(&perf::FORMAT)),
            (b"  3.4: c: \n\tf\n", Some(&perf::FORMAT)),
            (b"R 12 3.4:  7f0 f (/bin/a)\n", Some(&perf::FORMAT)),
            (b"c: \n\t            dd777 f (/bin/a)\n", Some(&perf::FORMAT)),
            (b"Warning: a 1\nx\nR 12 3.4: 5 c: \n\t    7f0 f (/bin/a)\n", Some(&perf::FORMAT)),
            // Collapsed stacks with names like lines of perf.
            (b"R 1 2.0: 3 c: x;f 1\nR 1 2.0: 3 c: x;g 2\n", Some(&collapsed::FORMAT)),
            (b"R 1/1 2.0: 3 c: 7f0 f (/a);f 1\n\t   7f0 f (/a) 2\n", Some(&collapsed::FORMAT)),
            (b"R 1 2.0: 3 c: x;f 1.5\n\t   7f0 f (/a);g 1e3\n", Some(&collapsed::FORMAT)),
            (b"a;b 1 2.0: 3 c: 7f0 f (/a)\n", Some(&perf::FORMAT)),
            (b"a;b 1 2.0: 3 c: \n\t     7f0 f (/a)\n", Some(&perf::FORMAT)),
            (b"error 12 in line: x\n", None),
            (b"Chapter 1 Words:\n\tadd (more)\n", None),
            (b"all:\n\tcc main.c\n", None),
            (b"# a comment\n", None),
        ];
        for (bytes, format) in tables {
            assert_eq!(look(bytes).format(), format, "{bytes:?}");
            let all = FORMATS
                .iter()
                .filter(|format| (format.recognises)(without_damage(bytes)));
            assert!(all.count() <= 1, "{bytes:?}");
        }
    }

    #[test]
    fn other_formats_are_named() {
        let says = |bytes: &[u8], word: &str, looks_like: Option<&str>| {
            let error = look(bytes).error("`x`", &rprof::FORMAT, "it is neither");
            let Error::Foreign(foreign) = &error else {
                unreachable!()
            };
            assert!(foreign.found.contains(word), "{error}");
            assert_eq!(foreign.looks_like, looks_like, "{error}");
        };
        says(b"160048 :\"rnorm\" \"f\" \n", "Rprofmem", Some("rprofmem"));
        says(b"new page:\"f\" \n", "Rprofmem", Some("rprofmem"));
        let pprof = b"\x0a\x04\x08\x01\x10\x02\x12\x05\x0a\x01\x01\x12\x00";
        says(pprof, "a pprof profile", Some("pprof"));
        says(
            b"{\"dictionary\": 1}",
            "an OpenTelemetry profile",
            Some("otlp"),
        );
        says(b"{\"a\": 1}", "JSON", Some("json"));
        says(b"[{\"a\": 1}]", "JSON", Some("json"));
        says(b"BZh91AY\x01", "bzip2", Some("bzip2"));
        says(b"hello world\n", "neither", None);
    }

    #[test]
    fn only_whole_lines_are_stacks() {
        let read = |text: &[u8]| {
            let mut content = Content::new(Source::Bytes(text)).unwrap();
            look_of(&mut content, &Origin::default()).unwrap().format()
        };
        let deep = b"f;".repeat(START as usize);
        assert_eq!(
            read(&[&deep[..], b"g 1\n"].concat()),
            Some(&collapsed::FORMAT)
        );
        assert_eq!(read(&[&deep[..], b"g"].concat()), None);
        // The last line of the start may be truncated anywhere.
        let many = b"main;f 12\n".repeat(START as usize);
        for cut in 0..10 {
            assert_eq!(read(&many[cut..]), Some(&collapsed::FORMAT));
        }
        assert_eq!(read(&[0; 20_000]), None);
        let hole = [&[0; 20_000][..], b"\"f\" \"g\" \n"].concat();
        assert_eq!(read(&hole), Some(&rprof::FORMAT));
    }
}
