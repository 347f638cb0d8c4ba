//! Finds where this R keeps the position of its innermost function.

use crate::process::Process;
use crate::record::session::open_reader;
use crate::stack::innermost::{Known, Seen};
use profile_core::error::Result;
use profile_core::limits::memory::copied;
use std::process;

/// Byte code has called native code that calls this. It takes two calls, by different functions, which share `seen`.
pub fn own_positions(seen: &mut Seen) -> Result<Known> {
    let process = Process::find(i32::try_from(process::id()).unwrap_or(0))?;
    let mut reader = open_reader(&process, &process.mappings()?)?;
    let variables = reader.find_positions(seen)?;
    let r = reader.r();
    Ok(Known {
        marker: r.values.in_byte_code,
        srcrefs: copied(&r.srcrefs)?,
        variables,
        base: r.modules.last().copied().unwrap_or(0),
    })
}
