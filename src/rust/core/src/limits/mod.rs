//! Limits: memory allocation and threads that can fail, a memory budget that depends on the size of a
//! file, and cancellation by the user.

pub(crate) mod budget;
pub mod cancel;
pub mod memory;
pub mod thread;
