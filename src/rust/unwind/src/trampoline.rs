//! The code to which the handler of a signal returns.

/// Describes this code, if it has no usable unwind tables.
#[derive(Debug, Clone, Copy)]
pub struct Trampoline {
    /// Its first eight bytes.
    pub code: u64,
    /// The offset, from the stack pointer, of the registers of the interrupted code, in the order of
    /// [`crate::Registers`].
    pub registers: u64,
}
