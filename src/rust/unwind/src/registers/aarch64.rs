//! The registers of aarch64, by their numbers in DWARF, which has none for the address of the next instruction.

use crate::trampoline::Trampoline;
use gimli::Vendor;

/// x0 to x30, sp, and the address of the next instruction.
pub const REGISTERS: usize = 33;
pub const STACK_POINTER: usize = 31;
pub const FRAME_POINTER: u16 = 29;
pub const COUNTER: usize = 32;
/// x19 to x28, the frame pointer, and the return address.
pub const SAVED: [u16; 12] = [19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30];
pub const RETURN: u16 = 30;
/// A call puts the return address into x30. Functions that call others save it.
pub const LINK: Option<u16> = Some(RETURN);
/// The upper bits of an address may be a signature of a return address, or a tag.
pub const ADDRESS: u64 = (1 << 48) - 1;
/// Tables contain an operation of this processor, for signed return addresses.
pub const VENDOR: Vendor = Vendor::AArch64;
/// `mov x8, #139`, which is the number of `rt_sigreturn()`, and `svc #0`. The kernel provides this code. Its tables leave
/// out the interrupted function, and since Linux 5.8 it has none. On the stack are a `siginfo` of 128 bytes and a `ucontext`, which has 176 bytes before its `sigcontext`, in which the
/// registers follow after 8 bytes: x0 to x30, sp and pc.
pub const TRAMPOLINE: Option<Trampoline> = Some(Trampoline {
    code: 0xd400_0001_d280_1168,
    registers: 128 + 176 + 8,
});
