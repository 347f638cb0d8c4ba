//! Parses the first line of a sample.

use super::place::place;
use crate::formats::bytes::digits;

/// The fields of the first line; texts are parts of it.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Head<'l> {
    /// Empty if the file has no commands.
    pub comm: &'l [u8],
    pub pid: Option<u64>,
    pub tid: Option<u64>,
    pub cpu: Option<u64>,
    /// Nanoseconds since an unrecorded time, most often the start of the computer.
    pub time: Option<u64>,
    pub period: Option<u64>,
    pub event: Option<&'l [u8]>,
    /// The text after the event: a frame, the branches that were taken, or the fields of a trace point.
    pub rest: &'l [u8],
}

impl Head<'_> {
    /// The text from the event on.
    pub fn record<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        let event = self.event.map_or(0, |event| event.len() + 2);
        let start = line.len().saturating_sub(self.rest.len() + event);
        line.get(start..).unwrap_or_default().trim_ascii()
    }
}

/// Parses a line; `None` if it is not a head.
///
/// The name of a command may contain blanks and numbers. The first number that the rest of the line can follow is the
/// id of the thread. Heads with a time are tried first, since nearly all files have times. Without a call graph, perf
/// aligns names to the right, and without names it aligns the number of the process. Such a line can be distinguished
/// from a frame only if it has a time, or nothing after the event.
pub fn head(line: &[u8]) -> Option<Head<'_>> {
    let text = line.trim_ascii_start();
    let is_aligned = match line.first()? {
        b'\t' => return None,
        first => *first == b' ',
    };
    parse(text, true)
        .or_else(|| after_comm(b"", text, true))
        .or_else(|| after_comm(b"", text, false).filter(|head| ends_like_head(head, line)))
        .or_else(|| parse(text, false).filter(|_| !is_aligned))
}

/// Whether nothing follows the event, or a frame with all its fields.
fn ends_like_head(head: &Head, line: &[u8]) -> bool {
    head.rest.is_empty() || place(line, head.rest).is_some_and(|frame| frame.ends_with(b")"))
}

fn parse(line: &[u8], timed: bool) -> Option<Head<'_>> {
    let mut rest = line;
    loop {
        let length = rest
            .iter()
            .position(|byte| *byte == b' ' || *byte == b'\t')?;
        rest = rest[length..].trim_ascii_start();
        let comm = line[..line.len() - rest.len()].trim_ascii_end();
        if let Some(head) = after_comm(comm, rest, timed) {
            return Some(head);
        }
    }
}

/// The fields after the name of the command. If the name is empty, the ids may be missing as well.
fn after_comm<'l>(comm: &'l [u8], text: &'l [u8], timed: bool) -> Option<Head<'l>> {
    let (first_word, after) = word(text);
    let (pid, tid, mut rest) = match ids(first_word) {
        Some((pid, tid)) => (pid, tid, after),
        None if comm.is_empty() => (None, None, text),
        None => return None,
    };
    let mut cpu = None;
    let (next, after) = word(rest);
    if let Some(number) = next.strip_prefix(b"[").and_then(|n| n.strip_suffix(b"]")) {
        let (value, length) = digits(number)?;
        cpu = (length == number.len()).then_some(value);
        rest = after;
    }
    let time_of = |word: &[u8]| word.strip_suffix(b":").and_then(nanoseconds);
    let (next, after) = word(rest);
    // The field `misc` precedes the time.
    if is_misc(next) && time_of(word(after).0).is_some() {
        rest = after;
    }
    let (next, after) = word(rest);
    let time = time_of(next);
    if time.is_some() {
        rest = after;
    }
    if time.is_none() && timed {
        return None;
    }
    let mut period = None;
    let (next, after) = word(rest);
    if let Some((value, length)) = digits(next) {
        // An address of only digits is followed by a symbol, a period by an event.
        if length == next.len() && event(after).is_some() {
            period = Some(value);
            rest = after;
        }
    }
    let (event, rest) = match event(rest) {
        Some((event, rest)) => (Some(event), rest),
        None if time.is_some() => (None, rest),
        None => return None,
    };
    Some(Head {
        comm,
        pid,
        tid,
        cpu,
        time,
        period,
        event,
        rest,
    })
}

/// `PID/TID` or `TID`; -1 is a process or a thread that perf does not know.
fn ids(word: &[u8]) -> Option<(Option<u64>, Option<u64>)> {
    let whole = |text: &[u8]| {
        if text == b"-1" {
            return Some(None);
        }
        let (value, length) = digits(text)?;
        (length == text.len()).then_some(Some(value))
    };
    match word.iter().position(|byte| *byte == b'/') {
        Some(at) => Some((whole(&word[..at])?, whole(&word[at + 1..])?)),
        None => Some((None, whole(word)?)),
    }
}

/// Letters for the mode of the processor and other flags.
fn is_misc(word: &[u8]) -> bool {
    (1..=5).contains(&word.len()) && word.iter().all(|byte| b"KUHGgMESD".contains(byte))
}

/// The first word, and the text from the next one on.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| *byte == b' ' || *byte == b'\t');
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    (word, rest.trim_ascii_start())
}

/// The name of an event, without the colon after it, and the rest of the line.
fn event(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = word(text);
    let event = first.strip_suffix(b":").filter(|event| !event.is_empty())?;
    Some((event, rest))
}

/// `12.345678` seconds, with up to nine decimals.
fn nanoseconds(text: &[u8]) -> Option<u64> {
    let (seconds, length) = digits(text)?;
    let decimals = text[length..].strip_prefix(b".")?;
    let (_, count) = digits(decimals)?;
    if count != decimals.len() || count > 9 {
        return None;
    }
    let mut fraction = digits(decimals)?.0;
    for _ in count..9 {
        fraction *= 10;
    }
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_have_different_fields() {
        let of = |text: &'static str| head(text.as_bytes());
        let short = |text| {
            let found = of(text).map(|h| {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let event = h.event.map(text).unwrap_or_default();
                let ids = (h.pid.unwrap_or(0), h.tid.unwrap_or(0), h.cpu.unwrap_or(999));
                (
                    text(h.comm),
                    ids,
                    h.time.unwrap_or(0),
                    h.period.unwrap_or(0),
                    event,
                    text(h.rest),
                )
            });
            found.map(|found| format!("{found:?}"))
        };
        #[rustfmt::skip]
        let cases = [
            (
                "sh  8842 47847.016404:   10101010 cpu-clock: ",
                r#"("sh", (0, 8842, 999), 47847016404000, 10101010, "cpu-clock", "")"#,
            ),
            (
                "Web Content 12/345 [002] 1.000000001: cycles:u:  7f0 main+0x1 (/bin/a b)",
                r#"("Web Content", (12, 345, 2), 1000000001, 0, "cycles:u", "7f0 main+0x1 (/bin/a b)")"#,
            ),
            (
                "java 3 4 5/6 1.5:        1 sched:sched_switch: prev_comm=a next=b",
                r#"("java 3 4", (5, 6, 999), 1500000000, 1, "sched:sched_switch", "prev_comm=a next=b")"#,
            ),
            (
                "               t 29051 49460.5:     cycles: ",
                r#"("t", (0, 29051, 999), 49460500000000, 0, "cycles", "")"#,
            ),
            (":95    -1/95 [010] 1.5:  7 cycles: ", r#"(":95", (0, 95, 10), 1500000000, 7, "cycles", "")"#),
            ("a 1 cycles: ", r#"("a", (0, 1, 999), 0, 0, "cycles", "")"#),
            // Without a command, an id, or a time.
            ("   12/34    [002] 1.5:     7 cycles:u: ", r#"("", (12, 34, 2), 1500000000, 7, "cycles:u", "")"#),
            ("  34 cycles: ", r#"("", (0, 34, 999), 0, 0, "cycles", "")"#),
            ("  34      250 cycles:   7f0 f (/bin/a)", r#"("", (0, 34, 999), 0, 250, "cycles", "7f0 f (/bin/a)")"#),
            ("   1.5:   7 cycles: ", r#"("", (0, 0, 999), 1500000000, 7, "cycles", "")"#),
            ("cycles:u: ", r#"("", (0, 0, 999), 0, 0, "cycles:u", "")"#),
            (
                "app\t25 [007] 1.5:\t\t1000 task-clock:u:",
                r#"("app", (0, 25, 7), 1500000000, 1000, "task-clock:u", "")"#,
            ),
            ("R 12 [001] U     1.5:  7 cycles: ", r#"("R", (0, 12, 1), 1500000000, 7, "cycles", "")"#),
            ("a 1 2.0:  7f0 f (m)", r#"("a", (0, 1, 999), 2000000000, 0, "", "7f0 f (m)")"#),
        ];
        for (line, expected) in cases {
            assert_eq!(short(line).as_deref(), Some(expected), "{line}");
        }
        for line in [
            "",
            "\ta 1 1.0: x: ",
            " a 1 x: ",
            "hello",
            "hello 1",
            "main;f 12",
            "            10a4 f (m)",
            "  a.c:12",
            "a 1/x 1.0: b:",
            "a 99999999999999999999 1.0: b:",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
