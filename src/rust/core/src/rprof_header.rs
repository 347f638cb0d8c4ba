//! The lines of an Rprof file that describe a run: its header and its `#File` lines.
//!
//! They occur in two places. Rprof files are read and written in `formats/rprof`, whose `mod.rs`
//! describes the whole grammar. Tables of version "1.0" keep the same lines as text, in the hidden
//! component `.rprof`, which `analysis/convert` parses and creates.

use crate::error::Result;
use crate::model::{Period, RprofOptions, Source, SourceKind};
use std::fmt;

/// The first line of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    pub memory: bool,
    pub gc: bool,
    pub line: bool,
    /// Microseconds between two samples; `None` if the header is missing.
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

/// A word of the header as text.
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

impl Header {
    /// The header of a source as `Rprof()` wrote it. `None` if it is not an Rprof source, or if its
    /// interval is unknown.
    pub fn from_source(source: &Source) -> Option<Header> {
        let RprofOptions { memory, gc, line } = source.options?;
        Some(Header {
            memory,
            gc,
            line,
            interval: Some(interval(source)?.round() as u64),
        })
    }

    /// The run that the header describes.
    pub fn source(&self) -> Result<Source> {
        Ok(Source {
            kind: SourceKind::RPROF,
            period: self.interval.map(Period::from_rprof).transpose()?,
            options: Some(RprofOptions {
                memory: self.memory,
                gc: self.gc,
                line: self.line,
            }),
            ..Source::default()
        })
    }
}

/// Microseconds between two samples.
pub fn interval(source: &Source) -> Option<f64> {
    Some(source.period.as_ref()?.nanoseconds()? / 1e3)
}

/// Whether a line is a truncated header, as in a file of a killed process.
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

/// Parses a line such as `#File 3: /a/path`: the number and the path.
pub fn file_line(line: &[u8]) -> Option<(u32, &[u8])> {
    let rest = line.strip_prefix(b"#File ")?;
    let (value, end) = number(rest)?;
    let path = rest[end..].strip_prefix(b": ")?;
    Some((file_number(value)?, path))
}

/// The number of a file. It must fit in an R integer, since R counts files in integers.
pub fn file_number(value: u64) -> Option<u32> {
    i32::try_from(value).ok().map(i32::unsigned_abs)
}

/// Decimal digits at the start of `text`: the value and how many there are.
pub fn number(text: &[u8]) -> Option<(u64, usize)> {
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
    fn a_run_has_the_header_it_was_made_of() {
        for line in [
            "sample.interval=1",
            "GC profiling: line profiling: sample.interval=20000",
            "memory profiling: sample.interval=500",
        ] {
            let source = header(line.as_bytes()).unwrap().source().unwrap();
            assert_eq!(Header::from_source(&source).unwrap().to_string(), line);
        }
        let unknown = Header::default().source().unwrap();
        assert_eq!(unknown.options, Some(RprofOptions::default()));
        assert_eq!(Header::from_source(&unknown), None);
        assert_eq!(Header::from_source(&Source::default()), None);
    }
}
