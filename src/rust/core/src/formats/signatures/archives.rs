//! Recognises archives, data of R, markup and programs, which need more than a constant start.

use crate::formats::bytes::is_text;

/// The size of a header in a tar archive, and the position of the checksum in it.
const HEADER: usize = 512;
const CHECKSUM: std::ops::Range<usize> = 148..156;

/// Whether the content starts with the header of a tar archive. The checksum, in octal digits, is the sum of the bytes
/// of the header, with blanks in place of the checksum. Old archives have no other mark.
pub fn is_tar(start: &[u8]) -> bool {
    let Some(header) = start.get(..HEADER) else {
        return false;
    };
    let digits = header[CHECKSUM].trim_ascii_start();
    let digits = digits.iter().take_while(|byte| matches!(byte, b'0'..=b'7'));
    let stated = digits.fold(0, |sum: u32, digit| sum * 8 + u32::from(digit - b'0'));
    let byte = |(at, &byte)| {
        if CHECKSUM.contains(&at) {
            u32::from(b' ')
        } else {
            u32::from(byte)
        }
    };
    let sum: u32 = header.iter().enumerate().map(byte).sum();
    header[0] != 0 && stated == sum
}

pub fn is_bzip2(start: &[u8]) -> bool {
    let level = start.strip_prefix(b"BZh").and_then(|rest| rest.first());
    level.is_some_and(|level| matches!(level, b'1'..=b'9'))
        && !is_text(&start[..start.len().min(HEADER)])
}

/// Files of `save()`: XDR, ASCII or binary.
pub fn is_r_data(start: &[u8]) -> bool {
    let [b'R', b'D', form, version, b'\n', ..] = start else {
        return false;
    };
    matches!(form, b'X' | b'A' | b'B') && matches!(version, b'1'..=b'9')
}

/// Files of `saveRDS()`, in the same forms: a letter, a line feed, and a version.
pub fn is_r_object(start: &[u8]) -> bool {
    matches!(
        start,
        [b'X', b'\n', 0, 0, 0, 2..=9, ..]
            | [b'B', b'\n', 2..=9, 0, 0, 0, ..]
            | [b'A', b'\n', b'2'..=b'9', b'\n', ..]
            | [b'A', b'\r', b'\n', b'2'..=b'9', b'\r', b'\n', ..]
    )
}

/// Whether the content starts like a document in HTML or XML. Names of functions may also start with `<`, so only
/// elements with which documents start are accepted.
pub fn is_markup(start: &[u8]) -> bool {
    const ELEMENTS: [&[u8]; 5] = [b"html", b"head", b"body", b"svg", b"rss"];
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let Some(inside) = start.trim_ascii_start().strip_prefix(b"<") else {
        return false;
    };
    let starts_with = |name: &[u8]| {
        let found = inside.get(..name.len());
        let after = inside.get(name.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(name))
            && after.is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'>')
    };
    let is_element = ELEMENTS.iter().any(|name| starts_with(name));
    // `<html>;f 1` is a stack.
    let is_stack = inside
        .iter()
        .position(|byte| *byte == b'>')
        .is_some_and(|end| inside.get(end + 1) == Some(&b';'));
    (is_element && !is_stack)
        || starts_with(b"!doctype")
        || inside.starts_with(b"?xml ")
        || inside.starts_with(b"!--")
}

/// Text with a byte order mark, or with a NUL beside each ASCII character.
pub fn is_utf16(start: &[u8]) -> bool {
    const MARKS: [&[u8]; 3] = [b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"];
    let is_pair = |pair: &[u8]| matches!(pair, [0, b'\t'..=b'~'] | [b'\t'..=b'~', 0]);
    let pairs = start.get(..16).unwrap_or_default().chunks_exact(2);
    MARKS.iter().any(|mark| start.starts_with(mark))
        || pairs.len() > 0 && pairs.clone().all(is_pair)
}

/// ELF, Mach-O, class files of Java, WebAssembly, and programs of Windows.
pub fn is_program(start: &[u8]) -> bool {
    const MAGIC: [&[u8]; 7] = [
        b"\x7fELF",
        b"\xfe\xed\xfa\xce",
        b"\xfe\xed\xfa\xcf",
        b"\xce\xfa\xed\xfe",
        b"\xcf\xfa\xed\xfe",
        b"\xca\xfe\xba\xbe",
        b"\0asm",
    ];
    MAGIC.iter().any(|magic| start.starts_with(magic))
        || start.starts_with(b"MZ") && !is_text(&start[..start.len().min(HEADER)])
}
