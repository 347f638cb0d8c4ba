//! Runs work that stops processes in a separate thread.
//!
//! The kernel resumes a process when the thread that stopped it ends, so no process remains stopped, whatever
//! happens. The calling thread, which is the only one that calls R, waits meanwhile.

use crate::process::prepare_thread;
use profile_core::error::Result;
use profile_core::limits::cancel::Stop;
use profile_core::limits::thread::refused;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The time between two checks whether to stop.
const STEP: Duration = Duration::from_millis(20);

/// Returns the result of the work, and whether it was asked to stop.
pub fn run<T: Send>(stop: Stop, work: impl FnOnce(Stop) -> Result<T> + Send) -> (Result<T>, bool) {
    let was_stopped = AtomicBool::new(false);
    let is_stopped = || was_stopped.load(Ordering::Relaxed);
    let result = thread::scope(|scope| {
        let (sender, ended) = channel::<()>();
        let worker = thread::Builder::new().spawn_scoped(scope, move || {
            // Dropped when the work ends, even by a panic.
            let _sender = sender;
            prepare_thread();
            work(&is_stopped)
        });
        let worker = worker.map_err(refused)?;
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(STEP) {
            if !is_stopped() && stop() {
                was_stopped.store(true, Ordering::Relaxed);
            }
        }
        worker
            .join()
            .unwrap_or_else(|panic| panic::resume_unwind(panic))
    });
    (result, was_stopped.into_inner())
}
