//! x86-64: the registers of a thread that is stopped or interrupted, and the system calls that other processors lack.

use super::interrupted::{Interrupted, code_at};
use super::register_set::register_set;
use profile_unwind::Registers;

/// The instruction `syscall`, and the one that loads a number into the register of system calls.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
const LOAD: u8 = 0xb8;

fn stopped(pid: libc::pid_t) -> Option<libc::user_regs_struct> {
    // SAFETY: this struct consists of integers.
    unsafe { register_set(pid, libc::NT_PRSTATUS) }
}

/// The registers of a stopped thread, in the order of DWARF's numbers, see [`Registers::new`].
pub fn registers(pid: libc::pid_t) -> Option<Registers> {
    let found = stopped(pid)?;
    Some(Registers::new([
        found.rax, found.rdx, found.rcx, found.rbx, found.rsi, found.rdi, found.rbp, found.rsp,
        found.r8, found.r9, found.r10, found.r11, found.r12, found.r13, found.r14, found.r15,
        found.rip,
    ]))
}

/// The number of the system call that a stopped thread is in, if it is in one. Otherwise the kernel's number is negative.
pub fn system_call(pid: libc::pid_t) -> Option<Option<i64>> {
    let number = stopped(pid)?.orig_rax as i64;
    Some((number >= 0).then_some(number))
}

/// Where a signal has interrupted a thread. The kernel lets the thread return from a system call for that, and may have
/// replaced the number of the call by its result. glibc loads the number just before the call, except that since version
/// 2.41 it has a common function for all calls that may wait.
pub fn interrupted(context: &libc::ucontext_t) -> Interrupted {
    let register = |number: libc::c_int| context.uc_mcontext.gregs[number as usize];
    let instruction = register(libc::REG_RIP) as u64;
    // The call is to be repeated.
    if code_at(instruction) == Some(SYSCALL) {
        return Interrupted::InCall(register(libc::REG_RAX));
    }
    if code_at(instruction.wrapping_sub(2)) != Some(SYSCALL) {
        return Interrupted::Elsewhere;
    }
    match code_at::<5>(instruction.wrapping_sub(7)) {
        Some([LOAD, number @ ..]) => Interrupted::InCall(i32::from_le_bytes(number).into()),
        _ => Interrupted::InSomeCall,
    }
}

/// Old system calls that wait, for which there are newer ones.
pub const WAITING: &[(i64, &str)] = &[
    (libc::SYS_epoll_wait, "epoll_wait"),
    (libc::SYS_pause, "pause"),
    (libc::SYS_poll, "poll"),
    (libc::SYS_select, "select"),
];
