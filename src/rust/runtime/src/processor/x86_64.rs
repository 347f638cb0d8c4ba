//! Linux on x86-64, with glibc.

/// The size of a `sigjmp_buf` in bytes.
pub const JUMP_BUFFER: u64 = 200;
/// The offset in it of the address at which `sigsetjmp()` returns, which the C library encodes.
pub const JUMP_TARGET: u64 = 56;
/// Addresses of programs have this many bits.
pub const ADDRESS_BITS: u32 = 47;
