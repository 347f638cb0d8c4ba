//! What other tools get to see of a profile, in whichever of their formats.
//!
//! R's profiler records counts, levels of memory, microseconds. Other tools expect
//! values that can be summed and times in nanoseconds: [`columns`] says which values
//! they get, [`runs`] what they are told about a recorded run, [`inlined`] which
//! rows of the model are one location of theirs.

mod columns;
mod inlined;
mod runs;

pub use columns::{Column, columns, is_rprof};
pub use inlined::{Cutter, RunIds};
pub use runs::{
    Untold, default_type, durations, options_of_text, options_text, period, provenance, time,
};
