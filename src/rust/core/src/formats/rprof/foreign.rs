//! Recognises Rprof files, and describes what other files look like.

use crate::error::Foreign;
use crate::formats::bytes::{first_line, is_json, is_text};
use crate::formats::format::{Format, Recognise};
use crate::message;
use memchr::memmem;

/// How many bytes are inspected.
pub const SNIFFED: usize = 4096;

/// A description of content in another format: as part of a sentence, and as one word.
pub struct Look {
    pub sentence: String,
    pub word: Option<&'static str>,
}

/// Whether the content looks like an Rprof file.
pub fn is_rprof(start: &[u8]) -> bool {
    // Names of R functions may contain any bytes.
    let start = &start[..start.len().min(SNIFFED)];
    let line = first_line(start);
    let header = memmem::find(line, b"sample.interval=").is_some();
    !is_json(start) && (header || line.starts_with(b"\"") && is_text(line))
}

/// The error for content in another format, which starts with these bytes.
pub fn error(input: &str, start: &[u8], wanted: &'static Format, recognise: Recognise) -> Foreign {
    let look = look(start, wanted, recognise).unwrap_or_else(|| Look {
        sentence: message!("its first line is neither an `Rprof()` header nor a sample"),
        word: None,
    });
    Foreign {
        input: message!("{input}"),
        wanted: wanted.title,
        found: look.sentence,
        looks_like: look.word,
    }
}

/// Describes the content; `None` if it is not recognised.
pub fn look(start: &[u8], wanted: &Format, recognise: Recognise) -> Option<Look> {
    const MAGIC: [(&[u8], &str, Option<&str>); 10] = [
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
    ];
    let start = &start[..start.len().min(SNIFFED)];
    let (sentence, word) = if let Some((_, sentence, word)) =
        MAGIC.iter().find(|(magic, ..)| start.starts_with(magic))
    {
        (message!("{sentence}"), *word)
    } else if is_rprofmem(start) {
        let what = "it looks like the output of `Rprofmem()`, which records allocations, not time";
        (message!("{what}"), None)
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

/// `192 :"f" "g" ` or `new page:"f" "g" `.
fn is_rprofmem(start: &[u8]) -> bool {
    let line = first_line(start);
    if line.starts_with(b"new page:") {
        return true;
    }
    let digits = line.iter().take_while(|b| b.is_ascii_digit()).count();
    digits > 0 && line[digits..].starts_with(b" :")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::read::recognise;
    use crate::formats::rprof;

    #[test]
    fn other_formats_are_named() {
        let says = |bytes: &[u8], word: &str, looks_like: Option<&str>| {
            let error = error("`x`", bytes, &rprof::FORMAT, recognise);
            assert!(error.found.contains(word), "{error}");
            assert_eq!(error.looks_like, looks_like, "{error}");
        };
        says(b"160048 :\"rnorm\" \"f\" \n", "Rprofmem", None);
        says(b"new page:\"f\" \n", "Rprofmem", None);
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
        says(b"hello world\n", "neither", None);
    }
}
