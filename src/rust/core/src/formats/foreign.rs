//! Describes what a file looks like that is not of the expected format of text.

use super::lines::SNIFFED;
use crate::error::{Error, Foreign};
use crate::formats::format::{Format, Recognise};
use crate::message;

/// A description of content in another format: as part of a sentence, and as one word.
pub struct Look {
    pub sentence: String,
    pub word: Option<&'static str>,
}

/// The error for content in another format, which starts with these bytes.
/// `otherwise` describes content of no known format.
pub fn error(
    input: &str,
    start: &[u8],
    wanted: &'static Format,
    recognise: Recognise,
    otherwise: &str,
) -> Error {
    let look = look(start, wanted, recognise).unwrap_or_else(|| Look {
        sentence: message!("{otherwise}"),
        word: None,
    });
    Error::Foreign(Foreign {
        input: message!("{input}"),
        wanted: wanted.title,
        found: look.sentence,
        looks_like: look.word,
    })
}

/// Describes the content; `None` if it is not recognised.
pub fn look(start: &[u8], wanted: &Format, recognise: Recognise) -> Option<Look> {
    const MAGIC: [(&[u8], &str, Option<&str>); 12] = [
        (b"BZh", "it is compressed with bzip2", Some("bzip2")),
        (b"\xfd7zXZ\0", "it is compressed with xz", Some("xz")),
        (
            b"\x28\xb5\x2f\xfd",
            "it is compressed with zstd; decompress it first",
            None,
        ),
        (b"\xff\xfe", "it is UTF-16 text; save it as UTF-8", None),
        (b"\xfe\xff", "it is UTF-16 text; save it as UTF-8", None),
        (b"PK\x03\x04", "it looks like a zip archive", None),
        (b"RDX", "it looks like an R data file", Some("rda")),
        (b"X\n\0\0\0", "it looks like an R object", Some("rds")),
        (b"\x7fELF", "it looks like a program or library", None),
        (b"<", "it looks like HTML or XML", None),
        (
            b"PERFILE2",
            "it looks like a recording of perf; convert it with `perf script`",
            None,
        ),
        (
            b"# callgrind format",
            "it looks like a callgrind file, which can only be written",
            None,
        ),
    ];
    let start = &start[..start.len().min(SNIFFED)];
    let (sentence, word) = if let Some((_, sentence, word)) =
        MAGIC.iter().find(|(magic, ..)| start.starts_with(magic))
    {
        (message!("{sentence}"), *word)
    } else if let Some(format) = recognise(start).filter(|format| *format != wanted) {
        (
            message!("it looks like {}", format.title),
            Some(format.name),
        )
    } else {
        let text = start.trim_ascii_start();
        let json = text.starts_with(b"{") || text.starts_with(b"[{");
        json.then(|| (message!("it looks like JSON"), None))?
    };
    Some(Look { sentence, word })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::read::recognise;
    use crate::formats::rprof;

    #[test]
    fn other_formats_are_named() {
        let says = |bytes: &[u8], word: &str, looks_like: Option<&str>| {
            let error = error("`x`", bytes, &rprof::FORMAT, recognise, "it is neither");
            let Error::Foreign(foreign) = &error else {
                unreachable!()
            };
            assert!(foreign.found.contains(word), "{error}");
            assert_eq!(foreign.looks_like, looks_like, "{error}");
        };
        says(b"160048 :\"rnorm\" \"f\" \n", "Rprofmem", Some("rprofmem"));
        says(b"new page:\"f\" \n", "Rprofmem", Some("rprofmem"));
        says(
            b"\x0a\x04\x08\x01\x10\x02\x12\x05\x0a\x01\x01\x12\x00",
            "a pprof profile",
            Some("pprof"),
        );
        says(
            b"{\"dictionary\": 1}",
            "an OpenTelemetry profile",
            Some("otlp"),
        );
        says(b"{\"a\": 1}", "JSON", None);
        says(b"[{\"a\": 1}]", "JSON", None);
        says(b"BZh91AY", "bzip2", Some("bzip2"));
        says(b"PERFILE2\x68\0", "perf script", None);
        says(b"# callgrind format\nversion: 1\n", "callgrind", None);
        says(b"hello world\n", "neither", None);
    }
}
