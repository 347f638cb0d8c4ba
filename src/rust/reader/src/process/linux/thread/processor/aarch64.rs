//! aarch64: the registers of a thread that is stopped or interrupted, and its system calls.

use super::interrupted::{Interrupted, code_at};
use super::register_set::register_set;
use profile_unwind::Registers;
use profile_unwind::registers::REGISTERS;

/// The set of registers that consists of the number of the system call (`NT_ARM_SYSTEM_CALL` of Linux).
const SYSTEM_CALL: libc::c_int = 0x404;
/// The instruction `svc #0`.
const SVC: [u8; 4] = 0xd400_0001_u32.to_le_bytes();

/// The registers of a stopped thread: x0 to x30, sp and pc, see [`Registers::new`].
pub fn registers(pid: libc::pid_t) -> Option<Registers> {
    // SAFETY: this struct consists of integers.
    let found: libc::user_regs_struct = unsafe { register_set(pid, libc::NT_PRSTATUS)? };
    let mut values = [found.pc; REGISTERS];
    values[..31].copy_from_slice(&found.regs);
    values[31] = found.sp;
    Some(Registers::new(values))
}

/// The number of the system call that a stopped thread is in, if it is in one. Otherwise the kernel's number is negative.
pub fn system_call(pid: libc::pid_t) -> Option<Option<i64>> {
    // SAFETY: it is an integer.
    let number: i32 = unsafe { register_set(pid, SYSTEM_CALL)? };
    Some((number >= 0).then_some(number.into()))
}

/// Where a signal has interrupted a thread. The number of a system call remains in its register.
pub fn interrupted(context: &libc::ucontext_t) -> Interrupted {
    let instruction = context.uc_mcontext.pc;
    // The call is to be repeated, or has returned.
    let is_call =
        code_at(instruction) == Some(SVC) || code_at(instruction.wrapping_sub(4)) == Some(SVC);
    if is_call {
        Interrupted::InCall(context.uc_mcontext.regs[8] as i64)
    } else {
        Interrupted::Elsewhere
    }
}

/// It has only the system calls that all processors have.
pub const WAITING: &[(i64, &str)] = &[];
