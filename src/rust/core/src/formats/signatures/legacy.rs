//! Recognises the formats that pprof had before protocol buffers, and other text formats of profilers.
//!
//! Source: `profile/legacy_profile.go` of <https://github.com/google/pprof>.

use crate::formats::bytes::{digits, text_lines};

/// CPU profiles of gperftools: the words 0, 3, 0 (1 for Java), period in microseconds and 0, each of 4 or 8
/// bytes, in either byte order.
pub fn is_gperftools(start: &[u8]) -> bool {
    let word = |size: usize, is_big: bool, at: usize| -> Option<u64> {
        let bytes = start.get(at * size..(at + 1) * size)?;
        let join = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Some(if is_big {
            bytes.iter().fold(0, join)
        } else {
            bytes.iter().rev().fold(0, join)
        })
    };
    [(4, false), (4, true), (8, false), (8, true)]
        .iter()
        .any(|&(size, is_big)| {
            let words = [0, 1, 2, 3, 4].map(|at| word(size, is_big, at));
            matches!(words, [Some(0), Some(3), Some(0 | 1), Some(1..), Some(0)])
        })
}

/// The first line that is neither empty nor a comment.
fn first_line(start: &[u8]) -> &[u8] {
    let mut lines = text_lines(start);
    let line = lines.find(|line| !line.trim_ascii_start().starts_with(b"#"));
    line.unwrap_or_default()
}

/// `heap profile: 1: 1024 [3: 4096] @ heapprofile`.
pub fn is_heap(start: &[u8]) -> bool {
    let line = first_line(start);
    let numbers = line
        .strip_prefix(b"heap profile:")
        .map(<[u8]>::trim_ascii_start);
    let is_number = |text| digits(text).is_some_and(|(_, length)| text.get(length) == Some(&b':'));
    numbers.is_some_and(is_number) || line.starts_with(b"--- heapz")
}

/// `goroutine profile: total 3`.
pub fn is_count(start: &[u8]) -> bool {
    let line = first_line(start);
    let end = line.iter().position(|byte| !byte.is_ascii_alphanumeric());
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    let total = rest.strip_prefix(b" profile: total ");
    let is_number = |text: &[u8]| digits(text).is_some_and(|(_, length)| length == text.len());
    !name.is_empty() && total.is_some_and(is_number)
}

/// The output of `pprof --raw` of gperftools.
pub fn is_symbolized(start: &[u8]) -> bool {
    matches!(
        first_line(start),
        b"--- symbol" | b"--- profile" | b"--- heap" | b"--- cpu"
    )
}

/// The column headers in the output of DTrace.
pub fn is_dtrace(start: &[u8]) -> bool {
    let words = first_line(start).split(|&byte| byte == b' ');
    let words = words.filter(|word| !word.is_empty());
    words.eq([b"CPU".as_slice(), b"ID", b"FUNCTION:NAME"])
}

pub fn is_ghc(start: &[u8]) -> bool {
    let title = b"Time and Allocation Profiling Report";
    memchr::memmem::find(first_line(start), title).is_some()
}

/// What R prints of a result of `summaryRprof()`, or its first part.
pub fn is_summary_of_rprof(start: &[u8]) -> bool {
    let mut lines = text_lines(start).take(2);
    let title = lines.next().unwrap_or_default();
    let columns = lines.next().unwrap_or_default().trim_ascii_start();
    title.starts_with(b"$by.")
        && (columns.starts_with(b"self.time") || columns.starts_with(b"total.time"))
}

/// Stacks of addresses or names, each in brackets: `@[`, after the line about attached probes.
pub fn is_bpftrace(start: &[u8]) -> bool {
    let mut lines = text_lines(start).skip_while(|line| line.starts_with(b"Attaching "));
    lines
        .next()
        .is_some_and(|line| line.starts_with(b"@") && line.ends_with(b"["))
}

/// Stacks of Austin's full mode, with time, state and memory: `P1;T1;f 105,0,1234`.
pub fn is_austin_full(start: &[u8]) -> bool {
    let line = first_line(start);
    let metrics = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    let is_number = |part: &[u8]| {
        let part = part.strip_prefix(b"-").unwrap_or(part);
        digits(part).is_some_and(|(_, length)| length == part.len())
    };
    let mut parts = metrics.split(|byte| *byte == b',');
    line.starts_with(b"P")
        && line.contains(&b';')
        && parts.clone().count() == 3
        && parts.all(is_number)
}

/// `goroutine 1 [running]:`, as Go prints it when it panics.
pub fn is_dump(start: &[u8]) -> bool {
    let line = first_line(start);
    let id = line.strip_prefix(b"goroutine ").and_then(digits);
    id.is_some_and(|(_, length)| line["goroutine ".len() + length..].starts_with(b" ["))
        && line.ends_with(b":")
}

/// Files of this package, of valgrind, and of tools such as Xdebug.
pub fn is_callgrind(start: &[u8]) -> bool {
    let mut lines = text_lines(start).take(3);
    let is_named = lines.any(|line| {
        let starts: [&[u8]; 3] = [b"# callgrind format", b"creator: callgrind", b"positions: "];
        starts.iter().any(|text| line.starts_with(text))
    });
    let starts_with = |text: &[u8]| {
        text_lines(start)
            .next()
            .is_some_and(|l| l.starts_with(text))
    };
    let has_events = || {
        text_lines(start)
            .take(20)
            .any(|line| line.starts_with(b"events: "))
    };
    is_named || starts_with(b"version: ") && has_events()
}

pub fn is_massif(start: &[u8]) -> bool {
    let mut lines = text_lines(start);
    let mut starts_with = |text: &[u8]| lines.next().is_some_and(|line| line.starts_with(text));
    starts_with(b"desc:") && starts_with(b"cmd:") && starts_with(b"time_unit:")
}
