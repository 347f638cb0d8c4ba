//! pprof: real files, messages made by hand, and damaged ones.
//!
//! What Go's reader says to each message stands in Go's own package
//! `github.com/google/pprof/profile`; what differs here is said at the test.

mod pprof {
    pub mod build;
    mod damaged;
    mod odd;
    mod real;
    mod sources;
    mod whole;
    mod written;
}
