//! The registers of x86-64, by their numbers in DWARF.

use crate::trampoline::Trampoline;
use gimli::Vendor;

/// rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, and the address of the next instruction.
pub const REGISTERS: usize = 17;
pub const STACK_POINTER: usize = 7;
pub const FRAME_POINTER: u16 = 6;
pub const COUNTER: usize = 16;
/// rbx, rbp, r12 to r15.
pub const SAVED: [u16; 6] = [3, 6, 12, 13, 14, 15];
/// In tables, the return address is the address of the next instruction of the caller.
pub const RETURN: u16 = 16;
/// A call pushes the return address on the stack.
pub const LINK: Option<u16> = None;
/// All addresses are plain.
pub const ADDRESS: u64 = u64::MAX;
pub const VENDOR: Vendor = Vendor::Default;
/// The C library has tables for its trampolines.
pub const TRAMPOLINE: Option<Trampoline> = None;
