//! Linux on x86-64, with glibc.

/// The size of a `sigjmp_buf` in bytes.
pub const JUMP_BUFFER: u64 = 200;
/// Addresses of programs have this many bits.
pub const ADDRESS_BITS: u32 = 47;
