//! The joint profiler after the run: combines a recording of the sampler and R's own
//! file to one profile of R and native code.
//!
//! - [`recording`]: the data that the sampler records;
//! - `align`: which tick belongs to which sample of R's;
//! - `interleave`: R's calls and native frames of a sample, in one order;
//! - [`symbols`]: from addresses to functions, files and lines; `native`: their rows in
//!   the profile;
//! - [`merge()`]: does all of this, sample by sample.

mod align;
mod interleave;
mod merge;
mod native;
pub mod recording;
pub mod symbols;

pub use merge::{check_target, merge};
pub use recording::{Context, Evaluator, Frame, Module, Recording, Role, Tick};
pub use symbols::{Symbol, Symbolizer};
