//! Tells when R's thread goes on.
//!
//! While R waits for a request, there is nothing to record, and a thread that wakes a hundred times a second to find this
//! out takes half a percent of a core. The kernel has timers for the CPU time of a thread: one that expires after the
//! next nanosecond expires at the first tick of the kernel at which R computes. Its signal goes to this thread only, in
//! which all signals are blocked, and is read from a file.

use super::{Waiting, time_of};
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::thread::JoinHandleExt;
use std::process;
use std::ptr;
use std::thread::JoinHandle;
use std::time::Duration;

/// Belongs to the thread that made it.
pub struct Alarm {
    timer: libc::c_int,
    /// Readable after the timer has expired.
    signals: OwnedFd,
}

impl Alarm {
    /// For the first thread of this process, which is R's. `None` if the kernel has no such timer, or this user has too many.
    pub fn new() -> Option<Alarm> {
        Alarm::of_thread(process::id())
    }

    fn of_thread(thread: u32) -> Option<Alarm> {
        let signal = libc::SIGRTMIN();
        // SAFETY: the set is initialised before it is used, and the kernel reads it only.
        let signals = unsafe {
            let mut set = MaybeUninit::uninit();
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), signal);
            libc::signalfd(-1, set.as_ptr(), libc::SFD_NONBLOCK | libc::SFD_CLOEXEC)
        };
        if signals < 0 {
            return None;
        }
        // SAFETY: the file is open, and nobody else has it.
        let signals = unsafe { OwnedFd::from_raw_fd(signals) };
        // SAFETY: it is integers and a pointer that is not used.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        // SAFETY: it has no preconditions.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let clock = profile_reader::process::clock_of_thread(thread);
        let mut timer: libc::c_int = 0;
        // The function of the C library is in another library before glibc 2.34.
        // SAFETY: the kernel reads the event, and writes the number of the timer, which is an `int`.
        let result = unsafe {
            let event: *const libc::sigevent = &raw const event;
            libc::syscall(libc::SYS_timer_create, clock, event, &raw mut timer)
        };
        (result == 0).then_some(Alarm { timer, signals })
    }

    /// Waits until R's thread computes or rings, for a connection, or for some time. Returns whether it was R's thread.
    pub fn wait(&self, waiting: Option<Waiting>, longest: Duration) -> bool {
        self.set(Duration::from_nanos(1));
        let to_read = libc::pollfd {
            fd: self.signals.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut poll = [to_read; 2];
        let mut count = 1;
        if let Some(waiting) = waiting {
            poll[1].fd = waiting.file;
            poll[1].events = waiting.events;
            count = 2;
        }
        let time = time_of(longest);
        // SAFETY: there are so many structs. If the call fails, the caller looks again.
        unsafe { libc::ppoll(poll.as_mut_ptr(), count, &raw const time, ptr::null()) };
        // Since Linux 6.13 the signal of a timer is gone when the timer is set.
        let has_rung = self.has_rung();
        self.set(Duration::ZERO);
        has_rung
    }

    /// Expires after so much CPU time of R's thread, or not any more.
    fn set(&self, after: Duration) {
        let times = libc::itimerspec {
            it_interval: time_of(Duration::ZERO),
            it_value: time_of(after),
        };
        let none: *mut libc::itimerspec = ptr::null_mut();
        // SAFETY: the timer exists as long as this, and the kernel reads the times.
        unsafe {
            libc::syscall(
                libc::SYS_timer_settime,
                self.timer,
                0,
                &raw const times,
                none,
            )
        };
    }

    /// Whether the timer has expired. Takes its signal.
    fn has_rung(&self) -> bool {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        let file = self.signals.as_raw_fd();
        // SAFETY: the kernel writes no more than this size.
        unsafe { libc::read(file, info.as_mut_ptr().cast(), size) > 0 }
    }
}

/// Ends the wait of a thread that has an alarm. In others the signal stays blocked.
pub fn ring<T>(thread: &JoinHandle<T>) {
    // SAFETY: the thread was not joined yet, so it has this number, also if it has ended.
    unsafe { libc::pthread_kill(thread.as_pthread_t(), libc::SIGRTMIN()) };
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: the timer exists, and is not used any more.
        unsafe { libc::syscall(libc::SYS_timer_delete, self.timer) };
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::system::without_signals;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Instant;

    #[test]
    fn a_thread_that_computes_is_heard() {
        let (tell, told) = channel();
        let (go, gone) = channel::<()>();
        let other = thread::spawn(move || {
            // SAFETY: it has no preconditions.
            let id = unsafe { libc::gettid() };
            tell.send(id).unwrap();
            // Until the sender is dropped.
            gone.recv().unwrap_err();
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_secs(1) {}
        });
        let id = u32::try_from(told.recv().unwrap()).unwrap();
        without_signals(|| {
            thread::spawn(move || {
                let alarm = Alarm::of_thread(id).unwrap();
                // The thread may still be on its way to `recv()`.
                alarm.wait(None, Duration::from_millis(100));
                assert!(!alarm.wait(None, Duration::from_millis(100)));
                drop(go);
                let begin = Instant::now();
                assert!(alarm.wait(None, Duration::from_secs(60)));
                assert!(begin.elapsed() < Duration::from_secs(50));
            })
        })
        .join()
        .unwrap();
        other.join().unwrap();
    }
}
