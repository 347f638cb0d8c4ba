//! Core files of Linux on x86-64.

pub const NAME: &str = "x86-64";
/// The number of the machine in headers of ELF files (`EM_X86_64`).
pub const MACHINE: u16 = 62;
/// The size of `struct elf_prstatus`.
pub const THREAD_SIZE: usize = 336;
/// The offset of the number of the system call in it, among the registers (`orig_rax`).
pub const SYSTEM_CALL: Option<usize> = Some(112 + 15 * 8);
/// The offset of the stack pointer (`rsp`).
pub const STACK_POINTER: usize = 112 + 19 * 8;
/// The type of the note with the number of the system call, if it is not among the registers.
pub const SYSTEM_CALL_NOTE: Option<u32> = None;
