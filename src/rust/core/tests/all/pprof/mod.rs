//! Reading and writing pprof files: real files, handmade messages, and damaged ones.
//!
//! The reference is Go's package `github.com/google/pprof/profile`; where the result differs from
//! that of Go, the test has a comment.

pub mod build;
mod damaged;
mod irregular;
mod real;
mod sources;
mod whole;
mod written;
