//! Names of variables and elements that differ in a key only, such as the entries of a cache: `$key1` and `$key20` are
//! both `$key*`. Keys are numbers, and longer hexadecimal numbers, such as hashes.

use crate::error::Result;
use crate::limits::memory::TryText;

/// More names than this that differ in a key only are shown as one.
pub const ALIKE: usize = 4;
/// The minimum number of hexadecimal digits of a key, such as the start of a hash. Shorter ones may be words.
const HASH: usize = 8;

/// Appends a step of a path in which keys are `*`. Its class, at the end, has none.
pub fn push_pattern(pattern: &mut String, step: &str) -> Result<()> {
    let end = match step.rfind(" <") {
        _ if !step.starts_with('$') => 0,
        class => class.unwrap_or(step.len()),
    };
    let (mut rest, class) = step.split_at(end);
    while !rest.is_empty() {
        let is_hexadecimal = |c: char| c.is_ascii_hexdigit() || c == '-';
        let end = |is_part: &dyn Fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (hash, digits) = (end(&is_hexadecimal), end(&|c| c.is_ascii_digit()));
        let has_digit = rest.as_bytes()[..hash].iter().any(u8::is_ascii_digit);
        let key = if hash >= HASH && has_digit {
            hash
        } else {
            digits
        };
        if key > 0 {
            pattern.try_push_str("*")?;
            rest = &rest[key..];
        } else {
            let next = rest.chars().next().map_or(0, char::len_utf8);
            pattern.try_push_str(&rest[..next])?;
            rest = &rest[next..];
        }
    }
    pattern.try_push_str(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_numbers_and_hashes() {
        for (step, expected) in [
            ("task callback 1", "task callback 1"),
            ("$x12", "$x*"),
            ("$x12 <R6> [shared]", "$x* <R6> [shared]"),
            ("$3f9a2b7c1d0e", "$*"),
            ("[[*]] <lm2>", "[[*]] <lm2>"),
            ("$session-6ba7b810-9dad-11d1", "$session*"),
            ("$deadbeef", "$deadbeef"),
            ("$cafe", "$cafe"),
            ("$naïve7é8", "$naïve*é*"),
        ] {
            let mut pattern = String::new();
            push_pattern(&mut pattern, step).unwrap();
            assert_eq!(pattern, expected);
        }
    }
}
