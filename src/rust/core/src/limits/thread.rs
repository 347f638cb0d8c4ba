//! Starts a thread, or returns an error. The caller then does the work itself: threads only save time, and some systems
//! have none (webR) or limit their number (containers).
//!
//! A new thread allocates its thread-local data when it first uses them, and glibc ends the process if there is no
//! memory for that. Therefore the memory is checked first. Starting the thread does not check it: the thread may reuse
//! the stack of a thread that has ended, so that starting succeeds without any free memory.

use super::memory;
use crate::error::{Error, Result};
use std::io::{self, ErrorKind};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// More memory than starting a thread takes in this process, without its stack.
const ROOM: usize = 1 << 16;
/// The size of a thread's stack.
const STACK: usize = 2 << 20;

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
    thread.map_err(refused)
}

/// The error for a thread that could not be started. The C library reports a lack of memory for its stack as if there
/// were too many threads (EAGAIN).
pub fn refused(source: io::Error) -> Error {
    if source.kind() == ErrorKind::OutOfMemory || memory::ensure(STACK).is_err() {
        return Error::Memory;
    }
    Error::Limit {
        what: "thread",
        source,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_limit_of_threads_is_not_a_lack_of_memory() {
        let message = |kind: ErrorKind| refused(kind.into()).to_string();
        assert_eq!(
            message(ErrorKind::WouldBlock),
            "The system does not permit another thread: the maximum number for this user (`ulimit -u`) or this \
             container (`pids.max`) is reached."
        );
        assert_eq!(
            message(ErrorKind::PermissionDenied),
            "The system does not permit another thread: permission is denied."
        );
        assert_eq!(message(ErrorKind::OutOfMemory), "Not enough memory.");
    }

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
