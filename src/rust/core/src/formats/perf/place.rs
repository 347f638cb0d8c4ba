//! Finds the frame on the first line of a sample, among the other fields that perf can print there.
//!
//! `perf script` without a call graph prints the frame behind the event, and other fields before and after it:
//!
//! ```text
//! cycles:     7f2eb9548110 cache+0x0 (/usr/lib/ld.so)     55a0355b7153 inner+0x1a (/usr/bin/app) insn: 88 02
//! event       address of the data                         the frame                              its instruction
//! ```
//!
//! Addresses of data look like frames, so the last one is the frame. Of a branch, `A => B`, it is the code that the branch
//! left, as in `perf report`.

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

/// The text of the frame in `rest`, which is the end of a line: from the last address before the module on. Without a
/// module only a branch may have an address alone.
pub fn place<'l>(line: &'l [u8], rest: &'l [u8]) -> Option<&'l [u8]> {
    let first = line.len() - rest.len();
    let arrow = memmem::find(rest, b" => ");
    let line = &line[..arrow.map_or(line.len(), |at| first + at)];
    let line = &line[..first + before_other_fields(&line[first..])];
    let is_branch =
        arrow.is_some_and(|at| hexadecimal(word(rest[at + 4..].trim_ascii_start())).is_some());
    match module(&line[first..]) {
        Some((start, end)) => {
            let before = &line[..first + start];
            let accepts = |is_aligned, is_plausible| is_aligned || is_plausible;
            let address = address(before, first, is_branch, accepts)?;
            Some(&line[address..first + end])
        }
        None => {
            // A number at the end is another field.
            let until = if is_branch {
                line.len()
            } else {
                line.len() - last_word(line.trim_ascii_end()).len()
            };
            let address = address(&line[..until], first, is_branch, |is_aligned, _| {
                is_aligned || is_branch
            })?;
            let text = line[address..].trim_ascii_end();
            let text = &text[..end_of_symbol(text).unwrap_or(text.len())];
            (is_branch || text.len() > word(text).len()).then_some(text)
        }
    }
}

/// Where the last word starts that is an address, by whether it is aligned like addresses, and whether it is one by what
/// it and the words before it look like.
fn address(
    line: &[u8],
    first: usize,
    is_branch: bool,
    accepts: impl Fn(bool, bool) -> bool,
) -> Option<usize> {
    let (mut found, mut next) = (None, first);
    let (mut is_after_number, mut has_bars) = (false, false);
    loop {
        let before = line.get(..next)?.trim_ascii_end();
        let start = line.len() - line[next..].trim_ascii_start().len();
        let word = word(&line[start..]);
        if word.is_empty() {
            return found;
        }
        next = start + word.len();
        // The decoded source of data, as in `|OP LOAD|LVL L1 hit`.
        has_bars |= word.contains(&b'|');
        let is_number = hexadecimal(word).is_some();
        let may_follow = std::mem::replace(&mut is_after_number, is_number)
            || is_branch
            || has_bars
            || before.ends_with(b")")
            || last_word(before).starts_with(b"/");
        let is_long = (is_branch || word.len() >= DIGITS) && word.iter().any(u8::is_ascii_digit);
        let is_aligned = next - before.len() >= COLUMNS;
        if is_number && accepts(is_aligned, start == first || may_follow && is_long) {
            found = Some(start);
        }
    }
}

/// Where a symbol ends that is unknown or has an offset.
fn end_of_symbol(text: &[u8]) -> Option<usize> {
    const UNKNOWN: &[u8] = b" [unknown]";
    let offset = memmem::find(text, b"+0x").map(|at| at + word(&text[at..]).len());
    offset.or_else(|| memmem::find(text, UNKNOWN).map(|at| at + UNKNOWN.len()))
}

/// The last module, from its opening parenthesis on. An operand of an instruction, such as `(%rax)`, is none.
fn module(text: &[u8]) -> Option<(usize, usize)> {
    let closing = memchr::memrchr_iter(b')', text).map(|at| at + 1);
    let closing = closing.filter(|&end| text.get(end).is_none_or(|&byte| is_blank(byte)));
    let mut modules = closing
        .take(CLOSING)
        .filter_map(|end| Some((last_parenthesis(&text[..end])?, end)));
    modules.find(|&(start, end)| {
        // Parameters, as in `f(int, (x) y)+0x0`, are none either.
        let is_of_symbol = memmem::find(&text[end..], b"+0x").is_some();
        start + 2 < end && text[start + 1] != b'%' && !is_of_symbol
    })
}

/// The length of a text before registers, instructions or branches.
fn before_other_fields(text: &[u8]) -> usize {
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
        let flags = word.get(at..at + 7);
        flags.is_some_and(|f| {
            matches!(
                f,
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
        #[rustfmt::skip]
        let cases = [
            ("c:  7f0 f+0x1 (/bin/a)", "7f0 f+0x1 (/bin/a)"),
            ("c:  7f0 f (int) (/a (deleted))", "7f0 f (int) (/a (deleted))"),
            ("c:  7f0 (m)", "7f0 (m)"),
            // The address of data: with its symbol and module, without them, and without the spaces of perf.
            (
                "c:           a84278 [unknown] (/bin/a) ffffffff81775b9a elf_load+0x28a ([kernel.kallsyms])",
                "ffffffff81775b9a elf_load+0x28a ([kernel.kallsyms])",
            ),
            ("c:     7f2eb9548120     7f2eb9540000 main+0x4 (/bin/a)", "7f2eb9540000 main+0x4 (/bin/a)"),
            ("c:     7f2eb9548120 401000 main (/bin/a)", "401000 main (/bin/a)"),
            ("c:     7fca10648010 [unknown]     55a0355b7153 inner+0x1a", "55a0355b7153 inner+0x1a"),
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
            ("c:      55a0355b7153 inner+0x1a (/t)               0", "55a0355b7153 inner+0x1a (/t)"),
            ("c:      55a0355b7153 inner+0x1a (/t) ilen: 2 insn: 88 02", "55a0355b7153 inner+0x1a (/t)"),
            ("c:      55a0355b7153 inner+0x1a (/t)\t IPC: 0.50 (1/2) ", "55a0355b7153 inner+0x1a (/t)"),
            ("c:      55a0355b7153 inner+0x1a\t IPC: 0.50 (1/2) ", "55a0355b7153 inner+0x1a"),
            ("c:      55a0355b7153 f(int, (x) y)+0x1a", "55a0355b7153 f(int, (x) y)+0x1a"),
            ("c:      55a0355b7153 [unknown]               0", "55a0355b7153 [unknown]"),
            ("c:      55a0355b7153 inner+0x1a 4K 4K", "55a0355b7153 inner+0x1a"),
            ("c:      55a0355b7153 f (int) (/t) =>     7f85a9a0f010 g+0x0 (/t)", "55a0355b7153 f (int) (/t)"),
            ("c:      55a0355b7153 inner (/t) insn: 88 02", "55a0355b7153 inner (/t)"),
            ("c:      55a0355b7153 inner insn: 88 02", "55a0355b7153 inner"),
            ("c:      55a0355b7153 inner+0x1a  0x7f0/0x7f8/P/-/-/0 ", "55a0355b7153 inner+0x1a"),
            ("c:      55a0355b7153 inner  f(int)+0x0/g+0x1/P/-/-/0//- ", "55a0355b7153 inner"),
            ("c:      55a0355b7153 inner (/t)  0x7f0(/t)/0x7f8(/t)/P/-/-/0 ", "55a0355b7153 inner (/t)"),
            ("c:            401000 [unknown] (/t)           addb %al, (%rax)", "401000 [unknown] (/t)"),
            // Branches, with and without fields.
            ("c:   call       7f2f93 f+0x143 (/a) =>     7f3aa0 brk+0x0 (/a)", "7f2f93 f+0x143 (/a)"),
            ("c:   tr end  syscall   24 => 0", "24"),
            ("c:   jmp  400008 => 600000", "400008"),
            ("c:   tr strt               0 [unknown] ([unknown]) =>     7f2e85 f+0x35 (/a)", "0 [unknown] ([unknown])"),
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
        ];
        for (line, expected) in cases {
            assert_eq!(found(line), expected, "{line}");
        }
    }
}
