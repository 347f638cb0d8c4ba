//! What a file that is no Rprof file looks like.

use crate::formats::detect::{self, Format};
use crate::message;

/// How many bytes are looked at.
pub const SNIFFED: usize = 4096;

/// Names the format that `start`, the first bytes of a file after
/// decompression, looks like, and what to do with it.
pub fn describe(start: &[u8]) -> String {
    known(start)
        .unwrap_or_else(|| message!("its first line is neither an `Rprof()` header nor a sample."))
}

/// The same, but `None` for what resembles nothing.
pub fn known(start: &[u8]) -> Option<String> {
    const MAGIC: [(&[u8], &str); 10] = [
        (
            b"BZh",
            "it is compressed with bzip2; read it through `bzfile()`.",
        ),
        (
            b"\xfd7zXZ\0",
            "it is compressed with xz; read it through `xzfile()`.",
        ),
        (
            b"\x28\xb5\x2f\xfd",
            "it is compressed with zstd; decompress it first.",
        ),
        (b"\xff\xfe", "it is UTF-16 text; save it as UTF-8."),
        (b"\xfe\xff", "it is UTF-16 text; save it as UTF-8."),
        (b"PK\x03\x04", "it looks like a zip archive."),
        (b"RDX", "it looks like an R data file; use `load()`."),
        (b"X\n\0\0\0", "it looks like an R object; use `readRDS()`."),
        (b"\x7fELF", "it looks like a program or library."),
        (b"<", "it looks like HTML or XML."),
    ];
    if let Some((_, what)) = MAGIC.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Some(message!("{what}"));
    }
    if is_rprofmem(start) {
        return Some(message!(
            "it looks like the output of `Rprofmem()`, which records allocations, not time."
        ));
    }
    if let Some(format) = detect::of(start).filter(|format| *format != Format::Rprof) {
        return Some(message!("{}", format.hint()));
    }
    let text = start.trim_ascii_start();
    if text.starts_with(b"{") || text.starts_with(b"[{") {
        return Some(message!("it looks like JSON."));
    }
    None
}

/// `192 :"f" "g" ` or `new page:"f" "g" `.
fn is_rprofmem(start: &[u8]) -> bool {
    let line = start.split(|&b| b == b'\n').next().unwrap_or(start);
    if line.starts_with(b"new page:") {
        return true;
    }
    let digits = line.iter().take_while(|b| b.is_ascii_digit()).count();
    digits > 0 && line[digits..].starts_with(b" :")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_formats_are_named() {
        let says = |bytes: &[u8], word: &str| {
            let text = describe(bytes);
            assert!(text.contains(word), "{text}");
        };
        says(b"160048 :\"rnorm\" \"f\" \n", "Rprofmem");
        says(b"new page:\"f\" \n", "Rprofmem");
        says(
            b"\x0a\x04\x08\x01\x10\x02\x12\x05\x0a\x01\x01\x12\x00",
            "read_pprof",
        );
        says(b"{\"dictionary\": 1}", "read_otlp");
        says(b"{\"a\": 1}", "JSON");
        says(b"[{\"a\": 1}]", "JSON");
        says(b"BZh91AY", "bzfile");
        says(b"hello world\n", "neither");
    }
}
