//! Linux on aarch64, with glibc.

/// The size of a `sigjmp_buf` in bytes.
pub const JUMP_BUFFER: u64 = 312;
/// The offset in it of the address at which `sigsetjmp()` returns, which the C library encodes.
pub const JUMP_TARGET: u64 = 88;
/// Addresses of programs have this many bits. They have more only in programs that ask for it.
pub const ADDRESS_BITS: u32 = 48;
