//! Core files of Linux on aarch64.

pub const NAME: &str = "aarch64";
/// The number of the machine in headers of ELF files (`EM_AARCH64`).
pub const MACHINE: u16 = 183;
/// The size of `struct elf_prstatus`.
pub const THREAD_SIZE: usize = 392;
/// The offset of the stack pointer (`sp`), which follows 31 other registers.
pub const STACK_POINTER: usize = 112 + 31 * 8;
/// The number of the system call has a note of its own (`NT_ARM_SYSTEM_CALL`), since registers do not show whether there
/// is one.
pub const SYSTEM_CALL: Option<usize> = None;
pub const SYSTEM_CALL_NOTE: Option<u32> = Some(0x404);
