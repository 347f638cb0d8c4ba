//! Detects that R's thread has resumed computing.
//!
//! While R waits for a request, there is nothing to record, and a thread that wakes a hundred times per second to
//! check takes half a percent of a core. The kernel has timers on the CPU time of a thread: a timer of one nanosecond
//! expires at the first kernel tick at which R computes. Its signal is sent only to the agent's thread, where all
//! signals are blocked, and is read from a file descriptor.

use super::time_of;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::thread::JoinHandleExt;
use std::process;
use std::ptr;
use std::thread::JoinHandle;
use std::time::Duration;

/// Must be used by the thread that created it.
pub struct Alarm {
    timer: libc::c_int,
    /// Readable after the timer has expired.
    signals: OwnedFd,
}

impl Alarm {
    /// An alarm on the main thread of this process, which is R's. `None` if the kernel does not support such timers,
    /// or if this user has too many timers.
    pub fn new() -> Option<Alarm> {
        Alarm::of_thread(process::id())
    }

    fn of_thread(thread: u32) -> Option<Alarm> {
        let signal = libc::SIGRTMIN();
        // SAFETY: the set is initialised before it is used, and the kernel only reads it.
        let signals = unsafe {
            let mut set = MaybeUninit::uninit();
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), signal);
            libc::signalfd(-1, set.as_ptr(), libc::SFD_NONBLOCK | libc::SFD_CLOEXEC)
        };
        if signals < 0 {
            return None;
        }
        // SAFETY: the file descriptor is open and has no other owner.
        let signals = unsafe { OwnedFd::from_raw_fd(signals) };
        // SAFETY: the struct consists of integers and a pointer that is not used.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        // glibc has `gettid()` only since 2.30.
        // SAFETY: it has no preconditions.
        event.sigev_notify_thread_id = unsafe { libc::syscall(libc::SYS_gettid) } as libc::pid_t;
        let clock = profile_reader::process::clock_of_thread(thread);
        let mut timer: libc::c_int = 0;
        // Called directly, since glibc before 2.34 has the function in another library.
        // SAFETY: the kernel reads the event, and writes the number of the timer, which is an `int`.
        let result = unsafe {
            let event: *const libc::sigevent = &raw const event;
            libc::syscall(libc::SYS_timer_create, clock, event, &raw mut timer)
        };
        (result == 0).then_some(Alarm { timer, signals })
    }

    /// Waits until R's thread computes or calls [`ring()`], or until the time has elapsed. Returns whether it was R's
    /// thread.
    pub fn wait(&self, longest: Duration) -> bool {
        self.set(Duration::from_nanos(1));
        let mut poll = libc::pollfd {
            fd: self.signals.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let time = time_of(longest);
        // SAFETY: it is one struct. If the call fails, the caller checks its state again.
        unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, ptr::null()) };
        // Read first: since Linux 6.13, setting the timer discards its pending signal.
        let has_rung = self.has_rung();
        self.set(Duration::ZERO);
        has_rung
    }

    /// Sets the timer to expire after this CPU time of R's thread; zero disarms it.
    fn set(&self, after: Duration) {
        let times = libc::itimerspec {
            it_interval: time_of(Duration::ZERO),
            it_value: time_of(after),
        };
        let none: *mut libc::itimerspec = ptr::null_mut();
        // SAFETY: the timer lives as long as `self`, and the kernel only reads the times.
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

    /// Whether the timer has expired. Consumes its signal.
    fn has_rung(&self) -> bool {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        let file = self.signals.as_raw_fd();
        // SAFETY: the kernel writes no more than this size.
        unsafe { libc::read(file, info.as_mut_ptr().cast(), size) > 0 }
    }
}

/// Ends the wait of a thread that has an alarm. In other threads the signal stays blocked.
pub fn ring<T>(thread: &JoinHandle<T>) {
    // SAFETY: the thread was not joined yet, so its id is valid even if it has ended.
    unsafe { libc::pthread_kill(thread.as_pthread_t() as libc::pthread_t, libc::SIGRTMIN()) };
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: the timer exists and is not used afterwards.
        unsafe { libc::syscall(libc::SYS_timer_delete, self.timer) };
    }
}

#[cfg(all(
    test,
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod tests {
    use super::*;
    use crate::system::without_signals;
    use std::fs;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::thread;

    /// Whether a thread of this process sleeps.
    fn is_asleep(thread: u32) -> bool {
        let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        // The state follows the name, which is in parentheses.
        stat.rsplit(')')
            .next()
            .unwrap()
            .trim_start()
            .starts_with('S')
    }

    #[test]
    fn a_thread_that_computes_is_heard() {
        let (tell, told) = channel();
        let (go, gone) = channel::<()>();
        let is_heard = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_heard);
        let other = thread::spawn(move || {
            // SAFETY: it has no preconditions.
            let id = unsafe { libc::syscall(libc::SYS_gettid) };
            tell.send(id).unwrap();
            // Waits until the sender is dropped.
            gone.recv().unwrap_err();
            while !ends.load(Ordering::Relaxed) {}
        });
        let id = u32::try_from(told.recv().unwrap()).unwrap();
        without_signals(|| {
            thread::spawn(move || {
                let alarm = Alarm::of_thread(id).unwrap();
                // It has reached `recv()`, and computes no more.
                while !is_asleep(id) {
                    thread::yield_now();
                }
                assert!(!alarm.wait(Duration::from_millis(50)));
                drop(go);
                let has_rung = alarm.wait(Duration::from_secs(300));
                is_heard.store(true, Ordering::Relaxed);
                assert!(has_rung);
            })
        })
        .join()
        .unwrap();
        other.join().unwrap();
    }
}
