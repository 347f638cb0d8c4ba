//! Positions in byte code, for code without source references: R's records of calls contain where each function was
//! called, and two variables of R where the innermost function is.
//!
//! For code with source references, R's profiler writes the line, so its position is not recorded.

use crate::PositionVariables;
use profile_core::error::Result;
use profile_core::joint::positions::{CodeId, Position};
use profile_runtime::byte_code::Code;
use profile_runtime::contexts::{Layout, Record, Site};
use profile_runtime::memory::{self, Memory};
use profile_runtime::objects::CELL;

/// Where the innermost function is. `memory` reads R's stacks.
pub fn innermost(variables: &PositionVariables, memory: &mut impl Memory) -> Option<Position> {
    if variables.srcrefs == [0; 2] || variables.code == 0 || variables.pc == 0 {
        return None;
    }
    for &srcref in variables.srcrefs.iter().filter(|address| **address != 0) {
        if memory::word(&mut Checked, srcref)? != variables.marker {
            return None;
        }
    }
    let code = memory::word(&mut Checked, variables.code)?;
    let variable = memory::word(&mut Checked, variables.pc)?;
    position(memory, &mut Checked, Site::Absolute { code, variable })
}

/// Where the function of a record was called. `memory` reads R's stacks.
pub fn of_record(
    variables: &PositionVariables,
    memory: &mut impl Memory,
    address: u64,
    layout: Layout,
) -> Option<Position> {
    let record = Record::read(memory, address)?;
    position(memory, &mut Direct, record.site(layout, variables.marker))
}

/// The position of a site. `objects` reads R's objects.
fn position(stacks: &mut impl Memory, objects: &mut impl Memory, site: Site) -> Option<Position> {
    let address = match site {
        Site::Srcref(_) => return None,
        Site::Relative { code, .. } | Site::Absolute { code, .. } => code,
    };
    let object = |address| -> Result<Option<[u8; CELL]>> { Ok(memory::array(objects, address)) };
    let code = Code::read(address, object).ok()??;
    let words = match site {
        Site::Relative { words, .. } => words,
        // The variable is on the stack.
        Site::Absolute { variable, .. } => code.position(memory::word(stacks, variable)?)?,
        Site::Srcref(_) => return None,
    };
    Position::new(CodeId::new(address, code.number()), words)
}

/// R's objects, to which its records or other objects refer. Only R's thread may use it.
pub struct Direct;

impl Memory for Direct {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        if address == 0 {
            return false;
        }
        // SAFETY: the address of an object to which a record of a call refers, or a part of such an object. R's garbage
        // collector keeps these objects, and R's own handler reads them at the same time.
        unsafe {
            std::ptr::copy_nonoverlapping(address as *const u8, into.as_mut_ptr(), into.len());
        }
        true
    }
}

/// Memory of this process at addresses that may be invalid: variables that were found by their values.
struct Checked;

impl Memory for Checked {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let local = libc::iovec {
            iov_base: into.as_mut_ptr().cast(),
            iov_len: into.len(),
        };
        let remote = libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: into.len(),
        };
        // SAFETY: the kernel writes to `into` only, and no more than it has room for.
        let count = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        usize::try_from(count) == Ok(into.len())
    }
}
