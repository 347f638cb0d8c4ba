//! Starts a thread, or returns an error. The caller then does the work itself: threads only save time, and some systems
//! have none (webR) or limit their number (containers).
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
    #[cfg(test)]
    if tests::are_refused() {
        return Err(Error::Memory);
    }
    memory::ensure(ROOM)?;
    let thread = Builder::new().spawn_scoped(scope, work);
    thread.map_err(|_| Error::Memory)
}

#[cfg(test)]
pub mod tests {
    use std::cell::Cell;

    thread_local! {
        static ARE_REFUSED: Cell<bool> = const { Cell::new(false) };
    }

    pub fn are_refused() -> bool {
        ARE_REFUSED.get()
    }

    /// Returns the result of the work, from which no thread can be started.
    pub fn without_threads<T>(work: impl FnOnce() -> T) -> T {
        ARE_REFUSED.set(true);
        let result = work();
        ARE_REFUSED.set(false);
        result
    }
}
