//! Finds the frame on the first line of a sample, among the other fields that perf can print there.
//!
//! `perf script` without a call graph prints the frame behind the event, and other fields before and after it:
//!
//! ```text
//! cycles:     7f2eb9548110 cache+0x0 (/usr/lib/ld.so)     55a0355b7153 inner+0x1a (/usr/bin/app) insn: 88 02
//! event       address of the data                         the frame                              its instruction
//! ```
//!
//! Addresses of data look like frames, so the last one that has the fields of a frame is the frame. Of a branch, `A => B`,
//! it is the code that the branch left, as in `perf report`.

use super::frame::{hexadecimal, is_blank, last_parenthesis};
use memchr::memmem;

/// perf prints addresses in this many columns, after a blank.
const COLUMNS: usize = 17;
/// Numbers that are not aligned like addresses and have fewer digits are not taken for addresses.
const DIGITS: usize = 6;
/// The closing parentheses at which a module is looked for, from the end of the text.
const CLOSING: usize = 8;
/// Fields after the frame start with these words.
const AFTER: [&[u8]; 4] = [b"ABI:", b"insn:", b"ilen:", b"IPC:"];

/// The text of the frame in `rest`, which is the end of a line.
pub fn place<'l>(line: &'l [u8], rest: &'l [u8]) -> Option<&'l [u8]> {
    let start = line.len() - rest.len();
    let arrow = memmem::find(rest, b" => ");
    let end = arrow.map_or(line.len(), |at| start + at);
    let line = &line[..end];
    let is_branch = arrow.is_some_and(|at| starts_with_address(&rest[at + 4..]));
    let mut best: Option<(Fields, &[u8])> = None;
    let mut addresses = Addresses {
        line,
        next: start,
        first: start,
        is_after_address: false,
        has_bars: false,
        is_branch,
    };
    let mut next = addresses.next();
    while let Some(found) = next {
        next = addresses.next();
        let until = next.as_ref().map_or(line.len(), |next| next.start);
        let Some((fields, text)) = fields(&line[found.start..until]) else {
            continue;
        };
        let is_frame = match fields {
            Fields::Module => true,
            Fields::Symbol => found.is_aligned,
            Fields::Address => is_branch,
        };
        if is_frame && best.is_none_or(|(most, _)| fields >= most) {
            best = Some((fields, text));
        }
    }
    best.map(|(_, text)| text)
}

/// What follows an address, from less to more certain that it is a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fields {
    Address,
    Symbol,
    Module,
}

struct Found {
    start: usize,
    is_aligned: bool,
}

/// Finds the words of a line that may be addresses.
struct Addresses<'l> {
    line: &'l [u8],
    next: usize,
    first: usize,
    is_after_address: bool,
    /// Whether the decoded source of data has occurred, as in `|OP LOAD|LVL L1 hit`.
    has_bars: bool,
    is_branch: bool,
}

impl Iterator for Addresses<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let before = self.line.get(..self.next)?.trim_ascii_end();
            let rest = &self.line[self.next..];
            let start = self.next + (rest.len() - rest.trim_ascii_start().len());
            let word = word(&self.line[start..]);
            if word.is_empty() {
                return None;
            }
            self.next = start + word.len();
            self.has_bars |= word.contains(&b'|');
            let is_number = hexadecimal(word).is_some();
            let is_after_address = std::mem::replace(&mut self.is_after_address, is_number);
            if !is_number {
                continue;
            }
            let blanks = start - before.len();
            let is_aligned = start > self.first && blanks + word.len() >= COLUMNS
                || start == self.first && self.blanks_before_first() + word.len() >= COLUMNS;
            let may_follow = is_after_address
                || self.has_bars
                || self.is_branch
                || before.ends_with(b")")
                || last_word(before).starts_with(b"/");
            let is_address = word.len() >= DIGITS && word.iter().any(u8::is_ascii_digit);
            if is_aligned || start == self.first || may_follow && (is_address || self.is_branch) {
                return Some(Found { start, is_aligned });
            }
        }
    }
}

impl Addresses<'_> {
    fn blanks_before_first(&self) -> usize {
        self.first - self.line[..self.first].trim_ascii_end().len()
    }
}

/// The text that starts with an address, up to the last field of its frame. `None` if it is another number.
fn fields(text: &[u8]) -> Option<(Fields, &[u8])> {
    let length = word(text).len();
    let after = text[length..].trim_ascii_start();
    let start = text.len() - after.len();
    if after.starts_with(b"|") {
        return None;
    }
    if after.is_empty() {
        return Some((Fields::Address, &text[..length]));
    }
    let of_symbol = end_of_symbol(after);
    let behind = of_symbol.map_or(after, |end| &after[end..]);
    if let Some(end) = end_of_module(behind) {
        return Some((Fields::Module, &text[..text.len() - behind.len() + end]));
    }
    if of_symbol.is_none() {
        if let Some(end) = rightmost_module(after) {
            return Some((Fields::Module, &text[..start + end]));
        }
    }
    let end = of_symbol.unwrap_or_else(|| end_before_other_fields(after));
    match end {
        0 => Some((Fields::Address, &text[..length])),
        _ => Some((Fields::Symbol, &text[..start + end])),
    }
}

/// Where a symbol ends that is unknown or has an offset.
fn end_of_symbol(text: &[u8]) -> Option<usize> {
    const UNKNOWN: &[u8] = b"[unknown]";
    if word(text) == UNKNOWN {
        return Some(UNKNOWN.len());
    }
    memmem::find_iter(text, b"+0x").find_map(|at| {
        let digits = word(&text[at + 3..]);
        hexadecimal(digits).map(|_| at + 3 + digits.len())
    })
}

/// Where a module ends with which a text starts, after blanks.
fn end_of_module(text: &[u8]) -> Option<usize> {
    let blanks = text.len() - text.trim_ascii_start().len();
    let inside = text[blanks..].strip_prefix(b"(")?;
    let mut depth = 1_usize;
    for (at, byte) in inside.iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            let end = blanks + at + 2;
            return (at > 0 && is_word_end(text, end)).then_some(end);
        }
    }
    None
}

/// Where the last module ends, if the symbol before it has no offset.
fn rightmost_module(text: &[u8]) -> Option<usize> {
    let closing = memchr::memrchr_iter(b')', text).map(|at| at + 1);
    closing.take(CLOSING).find(|&end| {
        is_word_end(text, end) && last_parenthesis(&text[..end]).is_some_and(|at| at + 2 < end)
    })
}

/// The length of a symbol before registers, instructions or branches.
fn end_before_other_fields(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = text[at..].trim_ascii_start();
        let start = text.len() - rest.len();
        let word = word(rest);
        if word.is_empty() || is_other_field(word) {
            return text[..start].trim_ascii_end().len();
        }
        at = start + word.len();
    }
}

/// Whether a word starts a field other than a frame: registers, an instruction, or a branch such as `0x7f0/0x7f8/P/-/-/0`.
pub fn is_other_field(word: &[u8]) -> bool {
    let is_flags = |at: usize| {
        word.get(at..at + 7).is_some_and(|flags| {
            matches!(
                flags,
                [
                    b'/',
                    b'M' | b'P' | b'N' | b'-',
                    b'/',
                    b'X' | b'-',
                    b'/',
                    b'A' | b'-',
                    b'/'
                ]
            )
        })
    };
    AFTER.iter().any(|start| word.starts_with(start))
        || memchr::memchr_iter(b'/', word).any(is_flags)
}

fn is_word_end(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|&byte| is_blank(byte))
}

fn starts_with_address(text: &[u8]) -> bool {
    hexadecimal(word(text.trim_ascii_start())).is_some()
}

fn word(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&byte| is_blank(byte));
    &text[..end.unwrap_or(text.len())]
}

fn last_word(text: &[u8]) -> &[u8] {
    let start = text.iter().rposition(|&byte| is_blank(byte));
    &text[start.map_or(0, |at| at + 1)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> String {
        let event = line.find(": ").map_or(0, |at| at + 1);
        let rest = line[event..].trim_start();
        let found = place(line.as_bytes(), rest.as_bytes());
        String::from_utf8(found.unwrap_or(b"-").to_vec()).unwrap()
    }

    #[test]
    fn the_frame_is_found_among_other_fields() {
        for (line, expected) in [
            ("c:  7f0 f+0x1 (/bin/a)", "7f0 f+0x1 (/bin/a)"),
            (
                "c:  7f0 f (int) (/a (deleted))",
                "7f0 f (int) (/a (deleted))",
            ),
            ("c:  7f0 (m)", "7f0 (m)"),
            // The address of data: with its symbol and module, without them, and without the spaces of perf.
            (
                "c:           a84278 [unknown] (/bin/a) ffffffff81775b9a elf_load+0x28a ([kernel.kallsyms])",
                "ffffffff81775b9a elf_load+0x28a ([kernel.kallsyms])",
            ),
            (
                "c:     7f2eb9548120     7f2eb9540000 main+0x4 (/bin/a)",
                "7f2eb9540000 main+0x4 (/bin/a)",
            ),
            (
                "c:     7f2eb9548120 401000 main (/bin/a)",
                "401000 main (/bin/a)",
            ),
            (
                "c:     7fca10648010 [unknown]     55a0355b7153 inner+0x1a",
                "55a0355b7153 inner+0x1a",
            ),
            // Sources of data, weights and control groups.
            (
                "c:     88000182 |OP LOAD|LVL L1 miss|SNP N/A|TLB Walker hit|LCK No|BLK  N/A ffffa7c22b4b2a00 [unknown] ([k])",
                "ffffa7c22b4b2a00 [unknown] ([k])",
            ),
            (
                "c:     7ffdf1391b0c      10268100142 |OP LOAD|LVL L1 hit|LCK No|BLK    N/A    5   7    0   7fad7c47425d f (/lib/a)",
                "7fad7c47425d f (/lib/a)",
            ),
            (
                "c:     7ffdf1391b0c f+0x1 (/lib/b)               47    7fad7c47425d f+0x2 (/lib/a)",
                "7fad7c47425d f+0x2 (/lib/a)",
            ),
            ("c:  /idle.slice/a.service 401000 f (/a)", "401000 f (/a)"),
            // Fields after the frame.
            (
                "c:      55a0355b7153 inner+0x1a (/t) ABI:2    AX:0x1    IP:0x55a0355b7153                0 4K",
                "55a0355b7153 inner+0x1a (/t)",
            ),
            (
                "c:      55a0355b7153 inner+0x1a (/t)               0",
                "55a0355b7153 inner+0x1a (/t)",
            ),
            (
                "c:      55a0355b7153 inner+0x1a (/t) ilen: 2 insn: 88 02",
                "55a0355b7153 inner+0x1a (/t)",
            ),
            (
                "c:      55a0355b7153 inner (/t) insn: 88 02",
                "55a0355b7153 inner (/t)",
            ),
            (
                "c:      55a0355b7153 inner insn: 88 02",
                "55a0355b7153 inner",
            ),
            (
                "c:      55a0355b7153 inner+0x1a  0x7f0/0x7f8/P/-/-/0 ",
                "55a0355b7153 inner+0x1a",
            ),
            (
                "c:      55a0355b7153 inner  f(int)+0x0/g+0x1/P/-/-/0//- ",
                "55a0355b7153 inner",
            ),
            (
                "c:      55a0355b7153 inner (/t)  0x7f0(/t)/0x7f8(/t)/P/-/-/0 ",
                "55a0355b7153 inner (/t)",
            ),
            (
                "c:            401000 [unknown] (/t)           addb %al, (%rax)",
                "401000 [unknown] (/t)",
            ),
            // Branches, with and without fields.
            (
                "c:   call       7f2f93 f+0x143 (/a) =>     7f3aa0 brk+0x0 (/a)",
                "7f2f93 f+0x143 (/a)",
            ),
            ("c:   tr end  syscall   24 => 0", "24"),
            ("c:   jmp  400008 => 600000", "400008"),
            (
                "c:   tr strt               0 [unknown] ([unknown]) =>     7f2e85 f+0x35 (/a)",
                "0 [unknown] ([unknown])",
            ),
            (
                "c:   call      strcmp                   ffffad807888 check_match+0x70 (/lib/ld.so)",
                "ffffad807888 check_match+0x70 (/lib/ld.so)",
            ),
            // Fields of trace points, and numbers.
            ("c: prev_comm=a prev_pid=1 ==> next_comm=b", "-"),
            ("c: 8,0 R 1048576 () 2345671 + 8 [dd]", "-"),
            ("c: NR 0 (3, 7ffc, 40)", "-"),
            ("c:               47", "-"),
            ("c: ", "-"),
            ("c: 7f0 f", "-"),
        ] {
            assert_eq!(found(line), expected, "{line}");
        }
    }
}
