//! The memory of a stack, which users of this crate provide.

pub trait Stack: Copy {
    /// The word at an address; `None` if it is outside of the stack.
    fn read(self, address: u64) -> Option<u64>;
}
