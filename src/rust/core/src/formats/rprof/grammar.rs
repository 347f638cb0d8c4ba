//! The grammar of one line: parsers without state.
//!
//! Each takes bytes and returns what they contain, independent of the rest of the file.

use memchr::memchr;
use std::fmt;

/// The first line of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    pub memory: bool,
    pub gc: bool,
    pub line: bool,
    /// Microseconds between two samples; `None` where the header is missing.
    pub interval: Option<u64>,
}

const MEMORY: &[u8] = b"memory profiling: ";
const GC: &[u8] = b"GC profiling: ";
const LINE: &[u8] = b"line profiling: ";
const INTERVAL: &[u8] = b"sample.interval=";

pub fn header(line: &[u8]) -> Option<Header> {
    let mut rest = line;
    let mut option = |text: &[u8]| match rest.strip_prefix(text) {
        Some(after) => {
            rest = after;
            true
        }
        None => false,
    };
    let memory = option(MEMORY);
    let gc = option(GC);
    let line = option(LINE);
    let (interval, end) = number(rest.strip_prefix(INTERVAL)?)?;
    (end == rest.len() - INTERVAL.len()).then_some(Header {
        memory,
        gc,
        line,
        interval: Some(interval),
    })
}

/// A word of the header.
fn ascii(word: &[u8]) -> &str {
    std::str::from_utf8(word).unwrap_or_default()
}

impl fmt::Display for Header {
    /// The line as R writes it; a missing interval is 0, which R never writes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (on, option) in [(self.memory, MEMORY), (self.gc, GC), (self.line, LINE)] {
            if on {
                f.write_str(ascii(option))?;
            }
        }
        let interval = self.interval.unwrap_or(0);
        write!(f, "{}{interval}", ascii(INTERVAL))
    }
}

/// A truncated header, as in a file of a killed process.
pub fn is_cut_header(line: &[u8]) -> bool {
    let options: [&[u8]; 3] = [MEMORY, GC, LINE];
    let mut rest = line;
    for option in options {
        if option.len() > rest.len() && option.starts_with(rest) {
            return true;
        }
        rest = rest.strip_prefix(option).unwrap_or(rest);
    }
    rest.len() <= INTERVAL.len() && INTERVAL.starts_with(rest)
}

/// `#File 3: /a/path`: the number and the path.
pub fn file_line(line: &[u8]) -> Option<(u32, &[u8])> {
    let rest = line.strip_prefix(b"#File ")?;
    let (value, end) = number(rest)?;
    let path = rest[end..].strip_prefix(b": ")?;
    Some((file_number(value)?, path))
}

/// R counts files in its integers.
fn file_number(value: u64) -> Option<u32> {
    i32::try_from(value).ok().map(i32::unsigned_abs)
}

/// The four numbers before a sample, and where the sample starts.
pub fn memory_prefix(line: &[u8]) -> Option<([u64; 4], usize)> {
    let mut numbers = [0; 4];
    let mut at = 0;
    for slot in &mut numbers {
        if line.get(at) != Some(&b':') {
            return None;
        }
        let (value, length) = number(&line[at + 1..])?;
        *slot = value;
        at += 1 + length;
    }
    (line.get(at) == Some(&b':')).then_some((numbers, at + 1))
}

/// Whether the four numbers before a sample are truncated.
pub fn is_cut_memory_prefix(line: &[u8]) -> bool {
    line.starts_with(b":")
        && line.iter().all(|b| b.is_ascii_digit() || *b == b':')
        && memory_prefix(line).is_none()
}

/// A reference to a line of a file, by the number of the file: `N#LINE `.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineReference {
    pub file: u32,
    pub line: i64,
}

/// A line reference at the start of `text`, and how many bytes it takes.
pub fn line_reference(text: &[u8]) -> Option<(LineReference, usize)> {
    if !text.first()?.is_ascii_digit() {
        return None;
    }
    let (file, mut at) = number(text)?;
    let file = file_number(file)?;
    if text.get(at) != Some(&b'#') {
        return None;
    }
    at += 1;
    let negative = text.get(at) == Some(&b'-');
    at += usize::from(negative);
    let (line, length) = number(&text[at..])?;
    at += length;
    if text.get(at) != Some(&b' ') {
        return None;
    }
    let line = i64::try_from(line).ok()?;
    let line = if negative { -line } else { line };
    Some((LineReference { file, line }, at + 1))
}

/// Where the name that starts at `from` ends (its closing quote), when it does.
///
/// The quote closes the name when a blank follows, and after that another
/// item, a line reference (under line profiling), or the end of the line.
pub fn name_end(text: &[u8], from: usize, line_profiling: bool) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr(b'"', &text[at..])?;
        if text.get(at + 1) == Some(&b' ') {
            match text.get(at + 2) {
                None | Some(b'"') => return Some(at),
                Some(_) if line_profiling && line_reference(&text[at + 2..]).is_some() => {
                    return Some(at);
                }
                Some(_) => {}
            }
        }
        at += 1;
    }
}

/// Whether `text` starts with a whole item, as every sample does.
pub fn starts_with_item(text: &[u8], line_profiling: bool) -> bool {
    let mut at = 0;
    if line_profiling {
        while let Some((_, length)) = line_reference(&text[at..]) {
            at += length;
        }
    }
    text.get(at) == Some(&b'"') && name_end(text, at + 1, line_profiling).is_some()
}

/// Decimal digits at the start of `text`: the value and how many there are.
fn number(text: &[u8]) -> Option<(u64, usize)> {
    let mut value: u64 = 0;
    let mut at = 0;
    while let Some(digit) = text.get(at).filter(|b| b.is_ascii_digit()) {
        value = value
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
        at += 1;
    }
    (at > 0).then_some((value, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_hold_every_option() {
        assert_eq!(
            header(b"memory profiling: GC profiling: line profiling: sample.interval=20000"),
            Some(Header {
                memory: true,
                gc: true,
                line: true,
                interval: Some(20000)
            })
        );
        assert_eq!(header(b"sample.interval=1").unwrap().interval, Some(1));
        for bad in [
            "sample.interval=",
            "sample.interval=1x",
            "interval=1",
            "GC profiling: memory profiling: sample.interval=1",
            "sample.interval=99999999999999999999999",
        ] {
            assert_eq!(header(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn cut_headers_are_known() {
        for cut in ["memory prof", "memory profiling: GC", "sample.inter", ""] {
            assert!(is_cut_header(cut.as_bytes()), "{cut}");
        }
        assert!(!is_cut_header(b"\"f\" "));
    }

    #[test]
    fn file_lines_keep_unusual_paths() {
        assert_eq!(file_line(b"#File 2: "), Some((2, &b""[..])));
        assert_eq!(
            file_line(b"#File 12: a dir #1/x: y.R"),
            Some((12, &b"a dir #1/x: y.R"[..]))
        );
        assert_eq!(file_line(b"#File : x"), None);
    }

    #[test]
    fn memory_prefixes_have_four_numbers() {
        assert_eq!(
            memory_prefix(b":1:22:333:4:\"f\" "),
            Some(([1, 22, 333, 4], 12))
        );
        assert_eq!(memory_prefix(b":1:2:3:\"f\" "), None);
    }

    #[test]
    fn names_end_where_something_follows() {
        // ordinary code: l[["a b"]]() is the item "l[["a b"]]"
        let text = br#""l[["a b"]]" "g" "#;
        assert_eq!(name_end(text, 1, false), Some(11));
        // a line reference ends a name under line profiling only
        let text = br#""f" 1#2 "g" "#;
        assert_eq!(name_end(text, 1, true), Some(2));
        assert_eq!(name_end(text, 1, false), Some(10));
        assert_eq!(name_end(b"\"open", 1, false), None);
    }

    #[test]
    fn line_numbers_may_be_negative() {
        assert_eq!(line_reference(b"1#-5 ").unwrap().0.line, -5);
        assert_eq!(line_reference(b"1#5"), None);
    }
}
