//! All objects of R in the memory of a process, and what holds them.
//!
//! ```text
//! View ──► Objects ──► Roots ──► Graph ──► Dominators ──► Naming ──► the model of the core
//! ```
//!
//! - [`copying`]: copies the heap of another process, [`copied`]: the copy;
//! - [`lists`]: where the heap is; [`objects`]: its objects, each with a number; [`node`]: one object; `cycle`: endless
//!   lists of them;
//! - [`damage`]: what of it cannot be read; [`counts`]: R's own counts of its objects;
//! - [`known`]: the addresses of R's objects with special roles;
//! - [`roots`]: what R itself holds, in phases: among others the calls that are [`running`], [`callbacks`],
//!   [`connections`], and [`variables`] of C code;
//! - [`walk`]: from the roots through all references, which become a [`graph`]; [`dominators`]: which object retains
//!   which;
//! - [`steps`]: what a reference means; [`texts`]: the names of steps; [`paths`]: sequences of steps; [`ways`]: to objects
//!   with several holders; [`naming`]: the path of each object; [`sums`] of them;
//! - [`resident`]: the memory that is not R's heap, and which part of R's heap is in RAM;
//! - [`snapshot`]: all of this as a profile, with the references that are [`wrong`]; [`snapshots`]: of a process, in several
//!   [`attempts`] if it changes; [`maxima`]: when to take them, to see the highest memory, and [`peak`]: takes them of
//!   another process; [`gauge`] and [`size`]: only how much memory it takes.
//!
//! No function of R is called, and nothing in the memory is trusted: only addresses that [`objects`] knows are followed.

pub mod attempts;
pub mod copied;
pub mod copying;
pub mod counts;
pub mod damage;
pub mod dominators;
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub mod gauge;
pub mod graph;
pub mod known;
pub mod lists;
pub mod maxima;
pub mod naming;
pub mod objects;
pub mod paths;
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub mod peak;
pub mod resident;
pub mod roots;
pub mod running;
pub mod size;
pub mod snapshot;
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub mod snapshots;
pub mod steps;
pub mod sums;
pub mod texts;
pub mod variables;
pub mod walk;
pub mod ways;
pub mod wrong;

#[cfg(test)]
mod tests;
