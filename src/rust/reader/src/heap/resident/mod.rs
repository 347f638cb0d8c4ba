//! Where the memory of a process is that is in RAM: of R's heap, of libraries, of `malloc()`, of stacks.
//!
//! - [`regions`]: the text of `/proc/PID/smaps`, the parts of the address space and how much of each is resident;
//! - [`pages`]: which pages are resident, of parts that are not resident as a whole;
//! - [`split`]: the resident bytes of R's heap, and rows for all others. Together they are the sum of `smaps`;
//! - [`rows`]: what these rows are; [`rest`]: rows and figures for a snapshot;
//! - [`system`]: where all of this comes from; [`malloc`]: what the C library says about this process.

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub mod malloc;
pub mod pages;
pub mod regions;
pub mod rest;
pub mod rows;
pub mod split;
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub mod system;

#[cfg(test)]
mod tests;

use pages::Pages;
use regions::Region;
use std::ops::Range;

/// What is known of the memory of a process at a moment before its heap is read.
#[derive(Debug)]
pub enum Resident {
    Unknown,
    /// Its size. The system does not say more.
    Size(u64),
    Divided(Divided),
}

#[derive(Debug, Default)]
pub struct Divided {
    /// In the order of their addresses.
    pub regions: Vec<Region>,
    pub pages: Pages,
    pub malloc: Malloc,
    pub pools: Vec<Pool>,
}

/// What is known of the allocator that R uses.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum Malloc {
    /// Of another process, nothing.
    #[default]
    Unknown,
    /// It is not glibc's, or glibc says nothing. A name for messages.
    Other(String),
    Glibc(Glibc),
}

/// The name of glibc's allocator.
pub const GLIBC: &str = "glibc";

/// The figures of glibc's `mallinfo2()`, without chunks that are mappings of their own.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Glibc {
    /// `uordblks` and `fordblks`.
    pub used: u64,
    pub free: u64,
    /// The memory that it has beside the one named `[heap]`: its arenas, in the order of their addresses.
    pub arenas: Vec<Range<u64>>,
}

/// The memory that a package has allocated with an allocator of its own, by its own figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    pub package: String,
    /// The allocator; [`Pool::SYSTEM`] is the one that R uses.
    pub allocator: String,
    pub bytes: u64,
}

impl Pool {
    /// The name of the allocator that R uses.
    pub const SYSTEM: &'static str = "system";
}
