//! Reads and writes collapsed stacks, the text format of FlameGraph's scripts, which many profilers
//! write (<https://github.com/brendangregg/FlameGraph>).
//!
//! ```text
//! file    := (line | comment)+
//! line    := frame {";" frame} " " [BEFORE " "] COUNT      outermost first
//! comment := ("#" | "//") text
//! frame   := name ["_[k]" | "_[i]" | "_[j]" | "_[w]"]      kernel, inlined, JIT, waker
//! ```
//!
//! There is no escape: names contain neither `;` nor line feeds. They may contain blanks, and the
//! count is what follows the last one. `difffolded.pl` writes two counts in all lines, those before and
//! after a change. Austin writes comments.

mod detect;
mod read;
mod write;

pub use detect::is_part_of_line;
pub use read::FORMAT;
pub use write::Writer;

/// The suffixes of names that have a meaning, and the types of frames that they stand for.
const FRAME_TYPES: [(&str, &str); 3] = [("_[k]", "kernel"), ("_[j]", "jit"), ("_[w]", "waker")];
const INLINED: &str = "_[i]";

/// Whether a line that starts with this text is a comment, even if it ends in a count. Names of functions may start
/// with `#` or `//` too, such as those of private methods in JavaScript, but not with a blank behind it.
fn starts_like_comment(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"#").or(text.strip_prefix(b"//"));
    rest.is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

#[cfg(test)]
mod tests;
