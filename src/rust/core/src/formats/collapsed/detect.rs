//! Recognises collapsed stacks. The format has no signature, so the share of lines that look like stacks decides.

use super::grammar::{is_comment, split};
use crate::formats::bytes::{is_json, text_lines};
use crate::limits::memory::TryAdd;
use foldhash::fast::RandomState;
use memchr::{memchr, memmem, memrchr};
use std::collections::HashSet;

/// Whether the content looks like collapsed stacks: at least half of the lines are stacks, and one of them has
/// several frames. Comments and blank lines do not count.
///
/// In sentences and most code, a blank follows a semicolon, so a text after a semicolon and a blank does not count as a
/// frame. Other code has semicolons inside parentheses. If all stacks of several frames look like that, more than half
/// of the lines must be stacks.
///
/// Stacks of one frame look like rows of a table. A file of such stacks is recognised if all lines are stacks with
/// different names of functions.
pub fn recognises(start: &[u8]) -> bool {
    // The last line may be truncated, unless it is the only one.
    let end = memrchr(b'\n', start).unwrap_or(start.len());
    let (mut stacks, mut others) = (0, 0);
    let (mut has_frames, mut has_code) = (false, false);
    let mut names = HashSet::with_hasher(RandomState::default());
    let mut are_names = true;
    for line in text_lines(&start[..end]).filter(|line| !is_comment(line)) {
        let Some((text, _)) = split(line).filter(|_| !line.contains(&0)) else {
            others += 1;
            continue;
        };
        stacks += 1;
        if memchr(b';', text).is_none() {
            are_names = are_names && is_name(text) && names.try_add(text).is_ok();
        } else if memmem::find(text, b"; ").is_none() {
            let is_code = text.split(|&byte| byte == b';').any(is_open);
            has_frames |= !is_code;
            has_code |= is_code;
        }
    }
    let is_majority = has_frames && stacks >= others || has_code && stacks > others;
    let is_flat = are_names && others == 0 && stacks > 0 && names.len() == stacks;
    (is_majority || is_flat) && !is_json(start)
}

/// Whether a text may be the name of a function: it is not a number, has no blanks apart from types, and does not end
/// like a key.
fn is_name(text: &[u8]) -> bool {
    let is_word = !text.contains(&b' ') || text.contains(&b'(');
    is_word
        && text.first().is_some_and(|byte| !byte.is_ascii_digit())
        && text
            .last()
            .is_some_and(|byte| !matches!(byte, b':' | b',' | b'='))
}

/// Whether a frame contains a parenthesis that is not closed in it. `(` alone is the name of an R function.
fn is_open(frame: &[u8]) -> bool {
    let count = |parenthesis| frame.iter().filter(|&&byte| byte == parenthesis).count();
    frame != b"(" && count(b'(') != count(b')')
}

/// Whether the content may be the start of a stack that is longer.
pub fn is_part_of_line(start: &[u8]) -> bool {
    memchr(b'\n', start).is_none() && memchr(b';', start).is_some() && memchr(0, start).is_none()
}
