//! Starts a thread, or returns an error.
//!
//! A new thread allocates its thread-local data when it first uses them, and glibc ends the process if there is no
//! memory for that. Therefore the memory is checked first. Starting the thread does not check it: the thread may reuse
//! the stack of a thread that has ended, so that starting succeeds without any free memory.

use super::memory;
use crate::error::{Error, Result};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// More memory than starting a thread takes in this process, without its stack.
const ROOM: usize = 1 << 16;

pub fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    memory::ensure(ROOM)?;
    let thread = Builder::new().spawn_scoped(scope, work);
    thread.map_err(|_| Error::Memory)
}
