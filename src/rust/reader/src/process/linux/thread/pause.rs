//! Stops a thread of another process for a moment, using `ptrace()`.
//!
//! The thread is seized and interrupted, and detached when [`Pause`] is dropped, also after an error or a panic. The
//! kernel detaches it if this process is killed meanwhile, and when the thread that has stopped it ends. Therefore
//! processes are stopped by a thread that ends with the recording, see [`crate::process::apart`].
//!
//! A signal that arrives during the pause is passed on. A process that was already stopped by a signal remains
//! stopped. System calls are restarted by the kernel, as after `SIGSTOP` and `SIGCONT`.

use super::super::permission::{gone, why_refused};
use super::runner::threads;
use super::{processor, system_calls};
use crate::process::computing::SystemCall;
use profile_core::error::{Error, Result};
use profile_core::message;
use profile_unwind::Registers;
use std::fs;
use std::mem::zeroed;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait until the thread has stopped. It does not stop while it waits for a device.
const LONGEST: Duration = Duration::from_millis(500);
/// How long a thread that runs on another CPU takes to stop.
const SOON: Duration = Duration::from_micros(20);
/// The maximum time between two checks. A thread that stops in between stands still until the next one.
const STEP: Duration = Duration::from_micros(100);

/// Stops a thread, repeatedly.
#[derive(Debug)]
pub struct Stopper {
    /// The ID of the thread. That of the first one is the ID of the process.
    thread: libc::pid_t,
    /// Whether the thread was interrupted and has not stopped yet.
    is_pending: bool,
}

/// A thread, while it is stopped.
#[derive(Debug)]
pub struct Pause {
    thread: libc::pid_t,
    /// A signal that it is about to receive, or 0.
    signal: libc::c_int,
    /// When it was last seen running.
    begin: Instant,
}

/// Why a thread was not stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    Ended,
    /// Another process traces it.
    Traced,
    /// The system does not permit it.
    Refused,
    /// It may stop later.
    Late,
}

impl Stopper {
    pub fn new(thread: i32) -> Stopper {
        Stopper {
            thread,
            is_pending: false,
        }
    }

    /// Stops the thread once. Fails with the reason if that is not possible.
    pub fn check(&mut self) -> Result<()> {
        match self.stop() {
            Ok(_) | Err(Failure::Late) => Ok(()),
            Err(Failure::Ended) => Err(gone(process_of(self.thread))),
            Err(Failure::Traced | Failure::Refused) => Err(refused(self.thread)),
        }
    }

    /// Stops the thread.
    pub fn stop(&mut self) -> std::result::Result<Pause, Failure> {
        let mut begin = Instant::now();
        if !self.is_pending {
            request(libc::PTRACE_SEIZE, self.thread, 0).map_err(|errno| match errno {
                libc::ESRCH => Failure::Ended,
                _ if tracer(self.thread).is_some() => Failure::Traced,
                _ => Failure::Refused,
            })?;
            self.is_pending = true;
            // Fails only if it has ended, which is noticed below.
            let _ = request(libc::PTRACE_INTERRUPT, self.thread, 0);
        }
        let limit = begin + LONGEST;
        let mut step = Duration::from_micros(10);
        loop {
            if let Some(pause) = self.stopped(begin)? {
                return Ok(pause);
            }
            let now = Instant::now();
            if now > limit {
                return Err(Failure::Late);
            }
            let is_soon = limit - now > LONGEST - SOON;
            begin = now;
            if is_soon {
                std::hint::spin_loop();
                continue;
            }
            thread::sleep(step);
            step = (step * 2).min(STEP);
        }
    }

    /// Lets the thread go on if it has stopped by now. Returns whether it has been interrupted and has not stopped yet.
    pub fn is_pending(&mut self) -> bool {
        if self.is_pending {
            drop(self.stopped(Instant::now()));
        }
        self.is_pending
    }

    /// The interrupted thread, if it has stopped.
    fn stopped(&mut self, begin: Instant) -> std::result::Result<Option<Pause>, Failure> {
        // SAFETY: the kernel fills the struct. Nothing is reaped, since the process may be a child of this one that
        // other code waits for.
        let (result, info) = unsafe {
            let mut info: libc::siginfo_t = zeroed();
            let flags =
                libc::WSTOPPED | libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
            let result = libc::waitid(libc::P_PID, self.thread as libc::id_t, &mut info, flags);
            (result, info)
        };
        // SAFETY: `waitid()` has filled these fields, or left them 0.
        let (found, status) = unsafe { (info.si_pid(), info.si_status()) };
        match (result, info.si_code) {
            (0, libc::CLD_TRAPPED | libc::CLD_STOPPED) if found != 0 => {
                self.is_pending = false;
                Ok(Some(Pause {
                    thread: self.thread,
                    // The status contains the signal and, in the next byte, the kind of stop. There is no signal to
                    // pass on at the stop that was requested, or if the process was already stopped.
                    signal: match status >> 8 {
                        0 => status & 0x7f,
                        _ => 0,
                    },
                    begin,
                }))
            }
            (0, _) if found == 0 => Ok(None),
            (0, _) => {
                self.reap();
                Err(Failure::Ended)
            }
            // The thread is no longer traced.
            _ => {
                self.is_pending = false;
                Err(Failure::Ended)
            }
        }
    }

    /// Reaps a thread that has ended. If it was the first one, the parent of the process is notified then. This is not
    /// needed if this process is the parent.
    fn reap(&mut self) {
        self.is_pending = false;
        let is_first = process_of(self.thread) == self.thread;
        if !is_first || parent(self.thread) != Some(std::process::id()) {
            // SAFETY: the thread has ended. Nobody else waits for it before this process has done so.
            unsafe { libc::waitpid(self.thread, ptr::null_mut(), libc::WNOHANG | libc::__WALL) };
        }
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        if self.is_pending {
            // If the thread still has not stopped, it is detached when this thread ends.
            drop(self.stop());
        }
    }
}

impl Pause {
    /// Lets it go on. Returns how long it was stopped, at most.
    pub fn end(self) -> Duration {
        let begin = self.begin;
        drop(self);
        begin.elapsed()
    }

    /// Its registers; `None` if it was killed meanwhile.
    pub fn registers(&self) -> Option<Registers> {
        processor::registers(self.thread)
    }

    /// The system call that it is in.
    pub fn call(&self) -> SystemCall {
        match processor::system_call(self.thread) {
            Some(None) => SystemCall::None,
            Some(Some(number)) => system_calls::call(number),
            None => SystemCall::Unknown,
        }
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        // Fails if the process was killed meanwhile.
        let _ = request(
            libc::PTRACE_DETACH,
            self.thread,
            self.signal as libc::c_ulong,
        );
    }
}

/// Prepares this thread for stopping processes. It receives no signals, since R's handlers run in R's thread. Short
/// pauses do not last longer than requested, since a process may be stopped meanwhile.
pub fn prepare_thread() {
    // SAFETY: the set is filled before it is used.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        let mut all = zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, ptr::null_mut());
    }
}

/// Calls `ptrace()`. An error is the value of `errno`.
fn request(
    request: libc::c_uint,
    thread: libc::pid_t,
    data: libc::c_ulong,
) -> std::result::Result<(), i32> {
    // SAFETY: these requests take numbers.
    match unsafe { libc::ptrace(request, thread, ptr::null_mut::<libc::c_void>(), data) } {
        -1 => Err(std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EPERM)),
        _ => Ok(()),
    }
}

/// The number after a name in `/proc/ID/status`, of a process or a thread.
fn status(id: i32, name: &str) -> Option<u32> {
    let text = fs::read_to_string(message!("/proc/{id}/status")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().parse().ok()
}

fn parent(pid: i32) -> Option<u32> {
    status(pid, "PPid:")
}

/// The process to which a thread belongs, which may have ended.
fn process_of(thread: i32) -> i32 {
    let process = status(thread, "Tgid:").and_then(|process| i32::try_from(process).ok());
    process.unwrap_or(thread)
}

fn refused(thread: i32) -> Error {
    let pid = process_of(thread);
    if u32::try_from(pid) == Ok(std::process::id()) {
        return Error::Process(message!("A process cannot stop itself."));
    }
    match tracer(thread) {
        Some(tracer) => {
            let name = fs::read_to_string(message!("/proc/{tracer}/comm")).unwrap_or_default();
            let name = name.trim();
            Error::Process(message!(
                "Process {pid} cannot be stopped, because process {tracer} ({name}) traces it, as debuggers do."
            ))
        }
        None => {
            let why = why_refused(pid);
            Error::Process(message!(
                "The system does not permit to stop process {pid}. {why}"
            ))
        }
    }
}

/// Whether another process traces a thread of a process.
pub fn is_traced(pid: i32) -> Result<bool> {
    let threads = threads(pid)?;
    Ok(threads.iter().any(|&thread| tracer(thread).is_some()))
}

/// The process that traces a thread.
fn tracer(thread: i32) -> Option<u32> {
    // `TracerPid` is the ID of a thread.
    let tracer = status(thread, "TracerPid:").filter(|tracer| *tracer > 0)?;
    Some(status(i32::try_from(tracer).ok()?, "Tgid:").unwrap_or(0))
}

#[cfg(test)]
mod tests;
