//! Each vector that R allocates while a recording asks for it, by the stack at which it is allocated: new vectors, copies,
//! and those that are still in use at the end.
//!
//! R allocates each vector above 128 bytes by `malloc()`. This is a function of another library, so R's library calls it
//! through its table of addresses (the global offset table). While a recording runs, the entries of `malloc`, `free` and
//! `getrusage` (R's clock for garbage collections) contain the addresses of functions of this crate, which call the original
//! ones:
//!
//! ```text
//! R ──► Rf_allocVector3() ──► table ──► hook ──► malloc()
//!                                        ├──► kind: new, copy or conversion     (sites)
//!                                        └──► stack: known, or read at once     (identity, reader)
//!                                                └──► sums of the stack, objects in use     (sums)
//!                                                        └──► file of the recording         (counts)
//! ```
//!
//! # What the hook may do
//!
//! It runs in R's thread, between two instructions of R's allocator. It calls nothing of R, because R might jump: from an
//! overflow of its stacks it does not even return to its own functions. It may allocate memory, since the entries of this
//! library's own table are not changed. It reads R's records of calls and the objects that they refer to, which cannot
//! change meanwhile. Calls of other threads are passed on to the original functions.
//!
//! # Forks, and processes that are killed
//!
//! The sums are in a file that is mapped into memory, so they are there however a process ends. A fork inherits the table
//! with the hook: it counts into the same file if that is asked for, and otherwise calls the original functions only.
//!
//! # What is learnt at the start
//!
//! Nothing of libR's machine code is assumed. While the table is replaced, R allocates one vector and copies it, both with a
//! size that nothing else has: this shows from where R calls `malloc()`, and how far from there the return address of
//! its allocating function is. If it is not exactly one event each, nothing is recorded ([`begin`]). One garbage collection
//! shows by which calls R measures it, and a finalizer that it runs how R's records of finalizers are recognized: what
//! finalizers written in C allocate is no part of the code that the collection interrupted.
//!
//! # What is not seen
//!
//! Vectors of at most 128 bytes and cells of lists, which R puts into pages; and vectors with an allocator of their own.

#[cfg_attr(
    all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ),
    path = "linux/mod.rs"
)]
#[cfg_attr(
    not(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    path = "unsupported.rs"
)]
mod platform;

pub use platform::{
    Found, abandon, begin, hooks, is_on, look, mark, prepare, read, see_finalizer, stop,
    stop_adding,
};

use profile_core::model::titled::TITLED;

/// What a recording is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Smaller vectors are not recorded. In bytes, with the header.
    pub threshold: usize,
    /// The size of the vector that is allocated, and of the one that is copied, between [`prepare`] and [`begin`].
    pub probe: usize,
    /// Whether forks of the process count as well.
    pub forks: bool,
    /// The process that reads images of this one, in which the memory is higher than ever.
    pub reader: Option<i32>,
    /// The addresses of the functions of [`TITLED`], whose calls are distinguished by their titles; 0 for unknown ones.
    pub titled: [u64; TITLED.len()],
}

/// Whose vectors are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Those of the process that has recorded.
    Own,
    /// Those of its forks, and of their forks.
    Forks,
}
