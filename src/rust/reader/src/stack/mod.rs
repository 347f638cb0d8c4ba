//! R's stack at one moment: functions, files and lines.
//!
//! ```text
//! Memory ──► Snapshot ──► Calls ──► Names, Places ──► Stack
//! ```
//!
//! - [`reader`]: reads a stack, in one [`attempt`] or several; [`frames`]: the result;
//!   [`missing`]: what could not be read;
//! - [`snapshot`]: what one stack needs, of one [`moment`]; [`spans`]: the active span;
//! - [`calls`]: R's calls; [`trunk`]: those that the last stack had, too;
//! - [`names`], [`places`]: the functions, files and lines of calls;
//! - [`positions`]: the source reference of a position in byte code; [`builtin`]: the builtin that is called there;
//! - [`innermost`]: the position of the innermost function in its byte code.

pub mod attempt;
pub mod builtin;
pub mod calls;
pub mod frames;
pub mod innermost;
pub mod missing;
pub mod moment;
pub mod names;
pub mod places;
pub mod positions;
pub mod reader;
pub mod snapshot;
pub mod spans;
pub mod trunk;
