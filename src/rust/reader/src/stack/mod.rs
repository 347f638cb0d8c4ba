//! R's stack at one moment: functions, files and lines.
//!
//! ```text
//! Memory ──► Snapshot ──► Calls ──► Names, Places, Packages ──► Stack
//! ```
//!
//! - [`reader`]: reads a stack, in one [`attempt`] or several; what it has [`kept`] from the last one; [`frames`]: the
//!   result; [`missing`]: what could not be read;
//! - [`snapshot`]: what one stack needs, of one [`moment`]; [`spans`]: the active span;
//! - [`calls`]: R's calls; [`trunk`]: those that the last stack had, too;
//! - [`names`], [`places`], [`packages`]: the functions, files and lines of calls, and the packages of functions, each with a
//!   `cache`; [`identity`]: functions that are known by their `definition`, or by the variable that has them (`bindings`);
//!   `titles`: the arguments that some calls are named after;
//! - [`positions`]: the source reference of a position in byte code; [`builtin`]: the builtin that is called there;
//! - [`codes`]: names of byte code without source references, by its digest;
//! - [`innermost`]: the position of the innermost function in its byte code.

pub mod attempt;
mod bindings;
pub mod builtin;
mod cache;
pub mod calls;
pub mod codes;
mod definition;
pub mod frames;
pub mod identity;
pub mod innermost;
pub mod kept;
pub mod missing;
pub mod moment;
pub mod names;
pub mod packages;
pub mod places;
pub mod positions;
pub mod reader;
pub mod snapshot;
pub mod spans;
mod titles;
pub mod trunk;
