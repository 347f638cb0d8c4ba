//! aarch64: the registers of a stopped thread, and its system calls.

use profile_unwind::Registers;
use profile_unwind::registers::REGISTERS;

/// x0 to x30, sp and pc, see [`Registers::new`].
pub fn registers(found: &libc::user_regs_struct) -> Registers {
    let mut values = [found.pc; REGISTERS];
    values[..31].copy_from_slice(&found.regs);
    values[31] = found.sp;
    Registers::new(values)
}

/// It has only the system calls that all processors have.
pub const SYSTEM_CALLS: &[(i64, &str)] = &[];
