//! Reads the registers of x86-64.

use profile_unwind::Registers;
use profile_unwind::registers::REGISTERS;

/// The registers of the code that a signal interrupted.
pub fn registers_of(context: &libc::ucontext_t) -> Registers {
    let saved = &context.uc_mcontext.gregs;
    // In the order of DWARF's numbers.
    let order = [
        libc::REG_RAX,
        libc::REG_RDX,
        libc::REG_RCX,
        libc::REG_RBX,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_RBP,
        libc::REG_RSP,
        libc::REG_R8,
        libc::REG_R9,
        libc::REG_R10,
        libc::REG_R11,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
        libc::REG_RIP,
    ];
    Registers::new(order.map(|register| saved[register as usize] as u64))
}

/// The registers of the calling function, into which this one is inlined.
#[inline(always)]
pub fn registers_here() -> Registers {
    let mut values = [0; REGISTERS];
    // SAFETY: only reads registers.
    unsafe {
        std::arch::asm!(
            "mov [{values} + 8 * 3], rbx",
            "mov [{values} + 8 * 6], rbp",
            "mov [{values} + 8 * 7], rsp",
            "mov [{values} + 8 * 12], r12",
            "mov [{values} + 8 * 13], r13",
            "mov [{values} + 8 * 14], r14",
            "mov [{values} + 8 * 15], r15",
            "lea {counter}, [rip]",
            "mov [{values} + 8 * 16], {counter}",
            values = in(reg) values.as_mut_ptr(),
            counter = out(reg) _,
            options(nostack, preserves_flags),
        );
    }
    Registers::new(values)
}
