//! The book of R's memory: how R stores its calls and objects, which is not part of R's API. Nothing outside of this crate
//! has an offset, a size, the number of a type, the name of a variable or a version of R. The sampler reads R's calls in a
//! signal handler, the reader reads them and all objects from another process, so everything that is read is checked.
//!
//! - [`memory`]: the trait by which all of it is read, from whatever memory;
//! - [`variables`]: where R's memory begins;
//! - [`contexts`]: R's records of calls, with a row for each layout; [`fit`]: the layout of a process;
//! - [`objects`]: the headers and fields of objects; [`node`]: the size of an object, and what it refers to; [`heap`]:
//!   where R keeps all of them, with a row for each layout, and [`slots`] of its pages; [`allocation`]: the memory of
//!   objects outside of pages;
//! - [`byte_code`]: positions in the code of functions; [`evaluator`]: the functions that run it;
//! - [`compiled`]: lines of code without source references, by a copy of it that has them; [`digest`]: the same code in other
//!   processes;
//! - [`environments`]: variables by their names, and namespaces; [`functions`]: all compiled functions in them;
//!   [`arguments`]: the titles of calls;
//! - [`callbacks`], [`connections`], [`devices`]: structures outside of R's heap that hold objects;
//! - [`profiler`]: R's own profiler; [`cycle`]: damaged lists.
//!
//! Everything here is for 64-bit systems; [`processor`] is the part that depends on the processor. The layouts are from
//! `Defn.h`, `Rinternals.h` and `memory.c` in R's source code, and were compared with R 4.2.2, 4.5.0 and 4.6.2 on
//! x86-64, and with R 4.5.0 on aarch64.

#![forbid(unsafe_code)]

/// Where native code and the memory of processes can be recorded, for messages and the documentation. The same
/// condition decides which code of the sampler, reader and agent is compiled.
pub const LIVE_PLATFORMS: &str = "Linux on x86-64 or aarch64 with glibc 2.28 or later";
/// Whether this is one of [`LIVE_PLATFORMS`].
pub const IS_LIVE: bool = cfg!(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
));

pub mod allocation;
pub mod arguments;
pub mod byte_code;
pub mod callbacks;
pub mod compiled;
pub mod connections;
pub mod contexts;
pub mod cycle;
pub mod devices;
pub mod digest;
pub mod environments;
pub mod evaluator;
#[cfg(test)]
mod fake;
pub mod fit;
pub mod functions;
pub mod heap;
pub mod memory;
pub mod node;
pub mod objects;
pub mod profiler;
pub mod slots;
pub mod variables;
// Systems other than Linux read core files of x86-64.
#[cfg_attr(
    all(target_os = "linux", target_arch = "aarch64"),
    path = "processor/aarch64.rs"
)]
#[cfg_attr(
    not(all(target_os = "linux", target_arch = "aarch64")),
    path = "processor/x86_64.rs"
)]
pub mod processor;
