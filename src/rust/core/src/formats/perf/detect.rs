//! Recognises the output of `perf script`.

use super::extras::is_code;
use super::frame::{frame, is_address_aligned};
use super::head::{Head, head};
use super::place::place;
use crate::formats::bytes::{is_text, text_lines};

/// The number of lines in which the first sample is searched for.
const FIRST_LINES: usize = 100;
/// Text is seldom indented by more characters, while most addresses are.
const FAR: usize = 8;

/// Whether the lines look like collapsed stacks, which may have any names: all end in a blank and a count, and one has
/// several frames. Samples of perf have lines that do not end like this, or no semicolons.
fn are_collapsed(start: &[u8]) -> bool {
    let end = memchr::memrchr(b'\n', start).unwrap_or(start.len());
    let (mut lines, mut has_several) = (0, false);
    for line in text_lines(&start[..end]).take(FIRST_LINES) {
        let count = line.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
        let is_count = count.first().is_some_and(u8::is_ascii_digit)
            && std::str::from_utf8(count).is_ok_and(|text| text.parse::<f64>().is_ok());
        if !is_count || count.len() == line.len() {
            return false;
        }
        lines += 1;
        has_several |= line.contains(&b';');
    }
    lines > 0 && has_several
}

/// Whether the first line is the head of a sample. Text may look like a head without a time, so a frame must follow
/// such a head. A head with a time and its frame may also follow other lines.
pub fn recognises(start: &[u8]) -> bool {
    if are_collapsed(start) {
        return false;
    }
    let mut lines = text_lines(start).skip_while(|line| line.starts_with(b"#") && !is_header(line));
    let first = lines.next().unwrap_or_default();
    let next = lines.next();
    if is_header(first) {
        return true;
    }
    let is_first = match head(first).filter(|_| is_text(first)) {
        Some(found) if is_timed(&found) => {
            let is_of_sample =
                |next: &[u8]| next[0].is_ascii_whitespace() || is_code(next) || is_timed_head(next);
            next.is_none_or(is_of_sample)
        }
        Some(found) => {
            let has_frame = |frame: &[u8]| frame.ends_with(b")");
            place(first, found.rest).is_some_and(has_frame)
                || has_place(found.rest)
                || next.is_some_and(has_place)
        }
        None => false,
    };
    // perf may print warnings, or events of other kinds, before the first sample.
    let pairs = text_lines(start)
        .zip(text_lines(start).skip(1))
        .take(FIRST_LINES);
    let is_sample = |(line, next): (&[u8], &[u8])| {
        next.starts_with(b"\t") && has_place(next) && is_timed_head(line)
    };
    is_first || pairs.into_iter().any(is_sample)
}

fn is_timed(head: &Head) -> bool {
    head.time.is_some() && head.event.is_some()
}

fn is_timed_head(line: &[u8]) -> bool {
    head(line).is_some_and(|head| is_timed(&head))
}

/// Whether a line is a frame with its address or its module.
pub fn has_place(line: &[u8]) -> bool {
    let frame = frame(line);
    let is_far = line.len() - line.trim_ascii_start().len() > FAR;
    match frame.module {
        Some(module) => frame.address.is_some() || matches!(module[..], [b'/' | b'[', ..]),
        None => frame.address.is_some() && (is_address_aligned(line) || is_far),
    }
}

/// Whether a line belongs to the header that `perf script --header` prints.
pub fn is_header(line: &[u8]) -> bool {
    const STARTS: [&[u8]; 3] = [b"# ========", b"# captured on", b"# cmdline :"];
    STARTS.iter().any(|start| line.starts_with(start))
}
