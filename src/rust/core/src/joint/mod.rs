//! The joint profiler, behind the signal handler: from a recording and R's own file
//! to one profile of R and native code.
//!
//! - [`recording`]: what the sampler hands over;
//! - `align`: which of it belongs to which sample of R's;
//! - `weave`: R's calls and native frames of a sample, in one order;
//! - [`symbols`]: from addresses to functions, files and lines; `native`: their rows;
//! - [`merge()`]: all of that, sample by sample.

mod align;
mod merge;
mod native;
pub mod recording;
pub mod symbols;
mod weave;

pub use merge::{check_target, merge};
pub use recording::{Context, Evaluator, Frame, Module, Recording, Role, Tick};
pub use symbols::{Symbol, Symbols};
