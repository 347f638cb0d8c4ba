//! The parts of lines: frames, counts and comments.

use memchr::memrchr2;

/// The suffixes of names that have a meaning, and the types of frames that they stand for. `0` and `1` are the levels
/// of Java's compilers, as async-profiler writes them: the interpreter, and C1.
pub const FRAME_TYPES: [(&str, &str); 5] = [
    ("_[k]", "kernel"),
    ("_[j]", "jit"),
    ("_[w]", "waker"),
    ("_[0]", "interpreted"),
    ("_[1]", "c1"),
];
pub const INLINED: &str = "_[i]";

/// Whether a line that starts with this text is a comment, even if it ends in a count. Names of functions, such as
/// private methods in JavaScript, may also start with `#` or `//`, but a blank does not follow.
pub fn starts_like_comment(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"#").or(text.strip_prefix(b"//"));
    rest.is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

/// Whether a line is a comment: it starts like one, or with the same characters and has no count.
pub fn is_comment(line: &[u8]) -> bool {
    let is_marked = line.starts_with(b"#") || line.starts_with(b"//");
    is_marked && (starts_like_comment(line) || split(line).is_none())
}

/// A count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Count {
    Whole(i64),
    Decimal(f64),
}

/// A line as the text before the last blank, and the count after it. FlameGraph accepts a tab instead of the blank.
pub fn split(line: &[u8]) -> Option<(&[u8], Count)> {
    let at = memrchr2(b' ', b'\t', line)?;
    let number = &line[at + 1..];
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    let is_number = digits.first()?.is_ascii_digit()
        && digits
            .iter()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    let number = std::str::from_utf8(number).ok().filter(|_| is_number)?;
    let count = match number.parse() {
        Ok(whole) => Count::Whole(whole),
        Err(_) => Count::Decimal(number.parse().ok().filter(|n: &f64| n.is_finite())?),
    };
    Some((&line[..at], count))
}
