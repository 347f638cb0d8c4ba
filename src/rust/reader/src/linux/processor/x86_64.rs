//! x86-64: the registers of a stopped thread, and the system calls that other processors lack.

use profile_unwind::Registers;

/// In the order of DWARF's numbers, see [`Registers::new`].
pub fn registers(found: &libc::user_regs_struct) -> Registers {
    Registers::new([
        found.rax, found.rdx, found.rcx, found.rbx, found.rsi, found.rdi, found.rbp, found.rsp,
        found.r8, found.r9, found.r10, found.r11, found.r12, found.r13, found.r14, found.r15,
        found.rip,
    ])
}

/// Old system calls, for which there are newer ones.
pub const SYSTEM_CALLS: &[(i64, &str)] = &[
    (libc::SYS_epoll_wait, "epoll_wait"),
    (libc::SYS_pause, "pause"),
    (libc::SYS_poll, "poll"),
    (libc::SYS_select, "select"),
];
