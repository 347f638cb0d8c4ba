//! Reads and writes collapsed stacks, the text format of FlameGraph's scripts, which many profilers
//! write (<https://github.com/brendangregg/FlameGraph>).
//!
//! ```text
//! file  := line+
//! line  := frame {";" frame} " " [BEFORE " "] COUNT      outermost first
//! frame := name ["_[k]" | "_[i]" | "_[j]" | "_[w]"]      kernel, inlined, JIT, waker
//! ```
//!
//! There is no escape: names contain neither `;` nor line feeds. They may contain blanks, and the
//! count is what follows the last one. `difffolded.pl` writes two counts in all lines, those before and
//! after a change.

mod read;
mod write;

pub use read::FORMAT;
pub use write::Writer;

/// The suffixes of names that have a meaning, and the types of frames that they stand for.
const FRAME_TYPES: [(&str, &str); 3] = [("_[k]", "kernel"), ("_[j]", "jit"), ("_[w]", "waker")];
const INLINED: &str = "_[i]";

#[cfg(test)]
mod tests;
