//! The forwarder's part of the locks: whether it continues to send the chunks in a folder.

use crate::lock::{Lock, Role};
use crate::names::has_chunks;
use profile_core::error::Result;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The lock of this process, if this is the forwarder of a folder.
static FORWARDER: Mutex<Option<Lock>> = Mutex::new(None);

/// Whether the forwarder of a folder continues: "send"; "wait", if there is no agent; or "end", if there is another
/// forwarder or the folder was replaced. If `is_last`, the folder is removed when it is empty and there is no agent, and
/// the lock is released in any case.
pub fn serve(folder: &Path, is_last: bool) -> Result<&'static str> {
    let mut slot = FORWARDER.lock().unwrap_or_else(PoisonError::into_inner);
    if slot.as_ref().is_none_or(|lock| lock.folder() != folder) {
        // Closed first, see above.
        *slot = None;
        *slot = Some(Lock::open(folder)?);
    }
    let Some(lock) = &*slot else {
        return Ok("end");
    };
    if !lock.take(Role::Forwarder)? || !lock.is_current() {
        *slot = None;
        return Ok("end");
    }
    let has_agent = lock.is_taken(Role::Agents)?;
    if is_last {
        let removed = lock.remove(has_chunks);
        *slot = None;
        return removed.map(|_| "end");
    }
    Ok(if has_agent { "send" } else { "wait" })
}

#[cfg(all(
    test,
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod tests;
