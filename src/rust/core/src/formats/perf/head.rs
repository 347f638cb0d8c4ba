//! Parses the first line of a sample.

use crate::formats::bytes::digits;

/// The fields of the first line; texts are parts of it.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Head<'l> {
    pub comm: &'l [u8],
    pub pid: Option<u64>,
    pub tid: u64,
    pub cpu: Option<u64>,
    /// Nanoseconds since a time that is not recorded, most often when the computer started.
    pub time: Option<u64>,
    pub period: Option<u64>,
    pub event: Option<&'l [u8]>,
    /// What follows: a frame, the branches that were taken, or the fields of a trace point.
    pub rest: &'l [u8],
}

/// Parses a line; `None` if it is no head.
///
/// The name of a command may contain blanks and numbers. The first number that fits what follows is
/// that of the thread: first with a time, since nearly all files have it. Without a call graph, perf
/// aligns names to the right; only with a time is such a line distinct from a frame.
pub fn head(line: &[u8]) -> Option<Head<'_>> {
    match line.first()? {
        b'\t' => None,
        b' ' => parse(line.trim_ascii_start(), true),
        _ => parse(line, true).or_else(|| parse(line, false)),
    }
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

/// The fields behind the name of the command.
fn after_comm<'l>(comm: &'l [u8], text: &'l [u8], timed: bool) -> Option<Head<'l>> {
    let (ids, mut rest) = word(text);
    let (first, length) = digits(ids)?;
    let (pid, tid) = match ids.get(length) {
        None => (None, first),
        Some(b'/') => {
            let (second, end) = digits(&ids[length + 1..])?;
            if length + 1 + end != ids.len() {
                return None;
            }
            (Some(first), second)
        }
        Some(_) => return None,
    };
    let mut cpu = None;
    let (next, after) = word(rest);
    if let Some(number) = next.strip_prefix(b"[").and_then(|n| n.strip_suffix(b"]")) {
        let (value, length) = digits(number)?;
        cpu = (length == number.len()).then_some(value);
        rest = after;
    }
    let mut time = None;
    let (next, after) = word(rest);
    if let Some(found) = next.strip_suffix(b":").and_then(nanoseconds) {
        time = Some(found);
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

/// The first word, and the text from the next one on.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| *byte == b' ' || *byte == b'\t');
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    (word, rest.trim_ascii_start())
}

/// The name of an event, without the colon behind it, and what follows.
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
                let ids = (h.pid.unwrap_or(0), h.tid, h.cpu.unwrap_or(999));
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
        for (line, expected) in [
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
            ("a 1 cycles: ", r#"("a", (0, 1, 999), 0, 0, "cycles", "")"#),
            (
                "a 1 2.0:  7f0 f (m)",
                r#"("a", (0, 1, 999), 2000000000, 0, "", "7f0 f (m)")"#,
            ),
        ] {
            assert_eq!(short(line).as_deref(), Some(expected), "{line}");
        }
        for line in [
            "",
            "\ta 1 1.0: x: ",
            " a 1 x: ",
            "hello",
            "hello 1",
            "main;f 12",
            "a 1/x 1.0: b:",
            "a 99999999999999999999 1.0: b:",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
