//! The joint profiler, behind the signal handler: from a recording and R's own file
//! to one profile of R and native code.
//!
//! - [`recording`]: what the sampler hands over.

pub mod recording;

pub use recording::{Context, Frame, Module, Recording, Role, Tick};
