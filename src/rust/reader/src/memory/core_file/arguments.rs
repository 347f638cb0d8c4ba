//! The command line of the process of a core file. The notes contain only its first 80 bytes, so it is read from where
//! the kernel puts it: at the start of the stack.
//!
//! From lower to higher addresses, there are the number of arguments, the addresses of the arguments, a zero, the
//! addresses of environment variables, a zero, the auxiliary vector, which is also in a note, random bytes, to which
//! the auxiliary vector points, and the texts of arguments and environment variables.

use super::CoreMemory;
use super::auxiliary::random_bytes;
use profile_core::error::Result;
use profile_core::limits::memory::filled;
use profile_runtime::memory::{self, Memory};

/// The size of what is between the vector and these bytes at most, and of the entries that are compared.
const GAP: u64 = 256;
const COMPARED: usize = 32;
/// More than there are arguments and environment variables.
const MOST: u64 = 1 << 16;
/// The maximum size of the command line. Linux permits more, but no user would read it.
const LONGEST: u64 = 1 << 20;

/// The program and its arguments, each followed by a zero; `None` if they cannot be found.
pub fn command_line(memory: &mut CoreMemory, auxiliary: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut memory = memory;
    let Some(range) = find(&mut memory, auxiliary) else {
        return Ok(None);
    };
    let mut line = filled(range.1 as usize, 0)?;
    Ok(memory.read(range.0, &mut line).then_some(line))
}

/// The address and the size of the texts of all arguments.
fn find(memory: &mut &mut CoreMemory, auxiliary: &[u8]) -> Option<(u64, u64)> {
    let random = random_bytes(auxiliary)?;
    let known = auxiliary.get(..COMPARED)?;
    let latest = (random & !7).checked_sub(auxiliary.len() as u64)?;
    let mut vector = None;
    for back in (0..GAP).step_by(8) {
        let address = latest.checked_sub(back)?;
        if memory::array::<COMPARED>(memory, address)? == *known {
            vector = Some(address);
            break;
        }
    }
    // The zero behind the environment variables.
    let mut address = vector?.checked_sub(8)?;
    if memory::word(memory, address)? != 0 {
        return None;
    }
    let mut environment = 0;
    for _ in 0..MOST {
        address = address.checked_sub(8)?;
        let word = memory::word(memory, address)?;
        if word == 0 {
            break;
        }
        environment = word;
    }
    let mut first = 0;
    for count in 0..MOST {
        address = address.checked_sub(8)?;
        let word = memory::word(memory, address)?;
        if word == count {
            break;
        }
        first = word;
    }
    let size = environment.checked_sub(first)?;
    (size > 0 && size <= LONGEST).then_some((first, size))
}
