//! The grammar of one line: functions that parse bytes independently of the rest of the file.
//!
//! The functions for headers and `#File` lines are in [`crate::rprof_header`], since tables contain such lines too.

use crate::formats::r_names;
pub use crate::rprof_header::{Header, file_line, header, is_cut_header};
use crate::rprof_header::{file_number, number};

/// The four numbers before a sample, and the offset at which the sample starts.
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

/// A line reference at the start of `text`, and its length in bytes.
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

/// The offset of the closing quote of the name that starts at `from`, if it has one. Under line
/// profiling a line reference may follow it.
#[inline]
pub fn name_end(text: &[u8], from: usize, line_profiling: bool) -> Option<usize> {
    r_names::name_end(text, from, |rest| {
        line_profiling && line_reference(rest).is_some()
    })
}

/// Whether `text` starts with a complete item, as every sample does.
pub fn starts_with_item(text: &[u8], line_profiling: bool) -> bool {
    let mut at = 0;
    if line_profiling {
        while let Some((_, length)) = line_reference(&text[at..]) {
            at += length;
        }
    }
    text.get(at) == Some(&b'"') && name_end(text, at + 1, line_profiling).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // Ordinary code: l[["a b"]]() is the item "l[["a b"]]".
        let text = br#""l[["a b"]]" "g" "#;
        assert_eq!(name_end(text, 1, false), Some(11));
        // A line reference ends a name only under line profiling.
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
