//! The part of the joint profiler that runs after recording: combines the recording of the sampler
//! and the file of `Rprof()` into one profile of R and native code.
//!
//! - [`recording`]: the data that the sampler records;
//! - [`positions`]: positions in byte code, which have lines although the code has no source references; `distinct`: those of a
//!   recording;
//! - `align`: finds the tick of each sample of R's file;
//! - `interleave`: determines the order of R's calls and the native frames of a sample;
//! - [`symbols`]: finds the functions, files and lines of addresses; `native`: adds them to the
//!   profile;
//! - [`merge()`]: does all of this, sample by sample;
//! - [`insert_native`]: the same for running processes, whose samples already have R's stacks.

mod align;
mod distinct;
mod interleave;
mod merge;
mod native;
pub mod positions;
mod processes;
mod r_tables;
pub mod recording;
pub mod symbols;

pub use distinct::{Distinct, Line};
pub use merge::{Wanted, check_target, merge, read_file};
pub use positions::Position;
pub use processes::{NativeStack, insert_native};
pub use recording::{Context, Evaluator, Frame, Module, Recording, Role, Tick};
pub use symbols::{Files, Symbol, Symbolizer};
