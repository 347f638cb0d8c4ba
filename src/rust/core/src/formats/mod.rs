//! The formats that are read and written, a folder for each, and what they share.
//!
//! - [`rprof`], [`pprof`], [`otlp`]: a format each, with its reader and its writer;
//! - [`detect`]: which of them some bytes look like; [`read`]: reads whichever it is;
//! - [`problems`]: what a reader found to be irregular, and how it read it.
//!
//! A format knows the model and never another format.

pub mod detect;
pub mod otlp;
pub mod pprof;
pub mod problems;
pub mod read;
pub mod rprof;
