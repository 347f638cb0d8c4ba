//! Reads the registers of aarch64.

use profile_unwind::Registers;
use profile_unwind::registers::REGISTERS;

/// The registers of the code that a signal interrupted.
pub fn registers_of(context: &libc::ucontext_t) -> Registers {
    let saved = &context.uc_mcontext;
    // In the order of DWARF's numbers: x0 to x30, sp, and pc.
    let mut values = [saved.pc; REGISTERS];
    values[..31].copy_from_slice(&saved.regs);
    values[31] = saved.sp;
    Registers::new(values)
}

/// The registers of the calling function, into which this one is inlined.
#[inline(always)]
pub fn registers_here() -> Registers {
    let mut values = [0; REGISTERS];
    // SAFETY: only reads registers.
    unsafe {
        std::arch::asm!(
            "stp x19, x20, [{values}, #8 * 19]",
            "stp x21, x22, [{values}, #8 * 21]",
            "stp x23, x24, [{values}, #8 * 23]",
            "stp x25, x26, [{values}, #8 * 25]",
            "stp x27, x28, [{values}, #8 * 27]",
            "stp x29, x30, [{values}, #8 * 29]",
            "mov {other}, sp",
            "str {other}, [{values}, #8 * 31]",
            "adr {other}, .",
            "str {other}, [{values}, #8 * 32]",
            values = in(reg) values.as_mut_ptr(),
            other = out(reg) _,
            options(nostack, preserves_flags),
        );
    }
    Registers::new(values)
}
