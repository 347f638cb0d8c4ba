//! Reading and writing pprof files: real files, handmade messages, and damaged ones.
//!
//! The reference is Go's package `github.com/google/pprof/profile`; where our result differs from
//! Go's, the test has a comment.

pub mod build;
mod damaged;
mod irregular;
mod real;
mod sources;
mod spans;
mod whole;
mod written;
