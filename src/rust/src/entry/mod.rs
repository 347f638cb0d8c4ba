//! The entry points, which are the functions that R calls, by family: each reads its arguments, calls the core and
//! returns the result.
//!
//! All arguments are `&Robj` and all results `Robj`: extendr would convert other types, and raise its own errors if
//! that fails (`argument.rs` and `outcome.rs` explain why this must not happen). Entry points have ordinary comments,
//! because extendr creates help pages from doc comments.

pub mod analysis;
pub mod native;
pub mod processes;
pub mod reading_and_writing;
pub mod services;
pub mod tables;
