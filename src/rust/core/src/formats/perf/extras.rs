//! Lines of a sample that are not frames: branches, registers, instructions, and code.

use super::frame::{frame, is_blank};
use super::place::is_other_field;

/// Whether a line that starts with a tab or a blank is not a frame. `after_tabs` tells whether frames of the sample
/// start with a tab, as perf writes them: then other lines are frames no longer.
pub fn is_extra(line: &[u8], after_tabs: bool) -> bool {
    let text = line.trim_ascii_start();
    let end = text.iter().position(|&byte| is_blank(byte));
    let first = &text[..end.unwrap_or(text.len())];
    if text.starts_with(b"0x") || text.starts_with(b"=>") || is_other_field(first) {
        return true;
    }
    match line.strip_prefix(b"\t") {
        Some(text) => is_instruction(text),
        None => after_tabs && !is_source_line(line),
    }
}

/// Whether a line has the place of the frame before it: perf writes two blanks before it.
pub fn is_source_line(line: &[u8]) -> bool {
    line.starts_with(b"  ") && line.get(2).is_some_and(|byte| !is_blank(*byte))
}

/// Whether the text behind a tab belongs to the instructions between branches (`-F +brstackinsn`): an instruction after
/// its address and a tab, the function of the next ones, or the reason why they are missing.
fn is_instruction(text: &[u8]) -> bool {
    const DIGITS: usize = 16;
    const MISSING: [&[u8]; 4] = [
        b"block ",
        b"cannot resolve ",
        b"cannot fetch code for block ",
        b"brstack does not reach ",
    ];
    let is_address = text
        .get(..DIGITS)
        .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    let is_name = text.first().is_some_and(|byte| !is_blank(*byte)) && text.ends_with(b":");
    is_address && text.get(DIGITS) == Some(&b'\t')
        || is_name
        || MISSING.iter().any(|start| text.starts_with(start))
}

/// Whether a line is a line of code, which `-F +srccode` prints after its number.
pub fn is_code(line: &[u8]) -> bool {
    matches!(line, [b'|', b'0'..=b'9', ..])
}

/// Whether a line reports that perf could not decode a part of a trace of instructions.
pub fn is_trace_error(text: &[u8]) -> bool {
    const STARTS: [&[u8]; 2] = [
        b"instruction trace error type ",
        b"unknown error name trace error type ",
    ];
    STARTS.iter().any(|start| text.starts_with(start))
}

/// Removes the last line of a stack if it is the number of a part that is missing, which it returns.
pub fn remove_cookie(text: &mut Vec<u8>) -> Option<u64> {
    let lines = text.strip_suffix(b"\n")?;
    let start = memchr::memrchr(b'\n', lines).map_or(0, |at| at + 1);
    let last = frame(&lines[start..]);
    let is_cookie = last.symbol == Some(b"(cookie)") && last.module.is_none();
    let cookie = last.address.filter(|_| is_cookie)?;
    text.truncate(start);
    Some(cookie)
}
