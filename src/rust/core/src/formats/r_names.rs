//! Names of functions as R's profilers write them: in quotes, but not escaped.

use memchr::memchr;

/// The offset of the closing quote of the name that starts at `from`, if it has one.
///
/// Names may contain quotes and blanks, so what follows decides: a quote closes the name if a blank
/// follows, and after that another name, the end of the line, or what `may_follow` accepts.
#[inline]
pub fn name_end(text: &[u8], from: usize, may_follow: impl Fn(&[u8]) -> bool) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr(b'"', text.get(at..)?)?;
        if text.get(at + 1) == Some(&b' ') {
            match text.get(at + 2..) {
                None | Some([] | [b'"', ..]) => return Some(at),
                Some(rest) if may_follow(rest) => return Some(at),
                Some(_) => {}
            }
        }
        at += 1;
    }
}
