//! Holds R's thread of this process for a moment, so that another thread of the process can copy R's records.
//!
//! A process cannot stop itself by `ptrace()`. Instead, R's thread gets a signal, in whose handler it waits. It does not
//! wait for longer than a millisecond, so nothing can go wrong for good: a lock that R's thread has, and that the
//! reading thread needs, delays both by that time at most.
//!
//! Only a thread that runs gets the signal. It would wake up a thread that sleeps, and interrupt its system call.

use super::interrupted::Interrupted;
use super::{processor, system_calls};
use crate::process::computing::SystemCall;
use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time that R's thread waits in the handler.
const LONGEST: Duration = Duration::from_millis(1);
/// How long it does so without leaving its processor, and how long the reading thread waits for it in the same way.
const SOON: Duration = Duration::from_micros(20);
/// How long to wait until R's thread is in the handler. If all processors are busy, it may not run before.
const PATIENCE: Duration = Duration::from_millis(5);
/// The time between two checks.
const STEP: Duration = Duration::from_micros(50);

/// What R's thread is asked to do, and what it does.
static STATE: AtomicU32 = AtomicU32::new(FREE);
const FREE: u32 = 0;
const ASKED: u32 = 1;
const HELD: u32 = 2;

/// Where the last signal has interrupted R's thread, as a number of [`Interrupted`].
static INTERRUPTED: AtomicI64 = AtomicI64::new(0);

/// Whether there is a holder.
static EXISTS: AtomicBool = AtomicBool::new(false);

/// The number of signals that R's thread has handled.
static HANDLED: AtomicU32 = AtomicU32::new(0);

/// Holds R's thread, repeatedly. There is at most one holder in a process.
#[derive(Debug)]
pub struct Holder {
    signal: libc::c_int,
    /// The number of signals that were sent.
    sent: u32,
}

/// A period in which R's thread is held, at most until the limit.
#[derive(Debug)]
#[must_use]
pub struct Hold;

impl Holder {
    /// `None` if there is another holder, or if all signals that programs may define are in use.
    pub fn new() -> Option<Holder> {
        if EXISTS.swap(true, Ordering::AcqRel) {
            return None;
        }
        let holder = Holder::with_signal();
        if holder.is_none() {
            EXISTS.store(false, Ordering::Release);
        }
        holder
    }

    fn with_signal() -> Option<Holder> {
        let unused = |signal: &libc::c_int| {
            // SAFETY: the struct consists of integers, and the kernel fills it.
            unsafe {
                let mut action: libc::sigaction = zeroed();
                libc::sigaction(*signal, ptr::null(), &mut action) == 0
                    && action.sa_sigaction == libc::SIG_DFL
            }
        };
        // Programs that use such signals usually take the first ones.
        let signal = (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev().find(unused)?;
        // SAFETY: the struct consists of integers and a function, which does only what a handler may do.
        let is_set = unsafe {
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = wait as *const () as usize;
            action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
            libc::sigfillset(&mut action.sa_mask);
            libc::sigaction(signal, &action, ptr::null_mut()) == 0
        };
        is_set.then(|| Holder {
            signal,
            sent: HANDLED.load(Ordering::Acquire),
        })
    }

    /// Holds R's thread, which has this ID. `None` if it is not in the handler soon.
    pub fn hold(&mut self, thread: i32) -> Option<Hold> {
        STATE.store(ASKED, Ordering::Release);
        // A signal that was sent before may still be on its way.
        if self.sent == HANDLED.load(Ordering::Acquire) {
            let pid = std::process::id() as libc::pid_t;
            // SAFETY: it has no preconditions.
            let result = unsafe { libc::syscall(libc::SYS_tgkill, pid, thread, self.signal) };
            self.sent = self.sent.wrapping_add(u32::from(result == 0));
        }
        let begin = Instant::now();
        while STATE.load(Ordering::Acquire) != HELD {
            let waited = begin.elapsed();
            if waited > PATIENCE {
                let given_up =
                    STATE.compare_exchange(ASKED, FREE, Ordering::AcqRel, Ordering::Acquire);
                return given_up.is_err().then_some(Hold);
            }
            if waited < SOON {
                std::hint::spin_loop()
            } else {
                thread::sleep(STEP)
            }
        }
        Some(Hold)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        STATE.store(FREE, Ordering::Release);
        // Ignoring a signal discards one that is still on its way, which would end the process by default.
        for action in [libc::SIG_IGN, libc::SIG_DFL] {
            // SAFETY: these are no functions.
            unsafe { libc::signal(self.signal, action) };
        }
        EXISTS.store(false, Ordering::Release);
    }
}

impl Hold {
    /// The system call that R's thread is in.
    pub fn call(&self) -> SystemCall {
        match Interrupted::from_number(INTERRUPTED.load(Ordering::Acquire)) {
            Interrupted::Elsewhere => SystemCall::None,
            Interrupted::InCall(number) => system_calls::call(number),
            Interrupted::InSomeCall => SystemCall::Waits,
        }
    }

    /// Lets R's thread go on. Returns whether it was held until now.
    pub fn end(self) -> bool {
        let was_held = STATE.swap(FREE, Ordering::AcqRel) == HELD;
        if was_held {
            // SAFETY: the address is that of a static variable.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    STATE.as_ptr(),
                    libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                    1,
                )
            };
        }
        was_held
    }
}

/// The handler: waits until R's thread may go on. It allocates nothing and takes no lock.
extern "C" fn wait(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the address of this thread's `errno`, which the interrupted code may be about to use.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel passes the context of the interrupted thread to a handler with `SA_SIGINFO`.
    let interrupted = processor::interrupted(unsafe { &*context.cast::<libc::ucontext_t>() });
    INTERRUPTED.store(interrupted.number(), Ordering::Release);
    HANDLED.fetch_add(1, Ordering::AcqRel);
    let is_held = STATE.compare_exchange(ASKED, HELD, Ordering::AcqRel, Ordering::Acquire);
    if is_held.is_ok() {
        wait_while_held();
    }
    // SAFETY: see above.
    unsafe { *libc::__errno_location() = errno };
}

fn wait_while_held() {
    let begin = Instant::now();
    while STATE.load(Ordering::Acquire) == HELD {
        let waited = begin.elapsed();
        let Some(left) = LONGEST.checked_sub(waited) else {
            let _ = STATE.compare_exchange(HELD, FREE, Ordering::AcqRel, Ordering::Acquire);
            break;
        };
        if waited < SOON {
            std::hint::spin_loop();
            continue;
        }
        let left = libc::timespec {
            tv_sec: 0,
            tv_nsec: left.subsec_nanos().into(),
        };
        // SAFETY: the addresses are those of a static variable and of a local one. It returns when the variable is
        // changed, or when the time has passed.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                STATE.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                HELD,
                &raw const left,
            )
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::caller;
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    fn action(signal: libc::c_int) -> usize {
        // SAFETY: the struct consists of integers, and the kernel fills it.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            assert_eq!(libc::sigaction(signal, ptr::null(), &mut action), 0);
            action.sa_sigaction
        }
    }

    /// The first thread of the test program waits for the tests.
    #[test]
    fn a_thread_is_held_and_goes_on() {
        // A signal that is in use.
        let last = libc::SIGRTMAX();
        // SAFETY: this is no function.
        unsafe { libc::signal(last, libc::SIG_IGN) };
        let first = std::process::id() as i32;
        let mut holder = Holder::new().unwrap();
        assert_eq!(holder.signal, last - 1);
        assert!(Holder::new().is_none());
        // It waits, except when it prints the result of a test.
        let (mut held, mut waited) = (0, 0);
        let begin = Instant::now();
        while held == 0 || waited == 0 {
            assert!(begin.elapsed() < Duration::from_secs(300));
            if let Some(hold) = holder.hold(first) {
                waited += u32::from(hold.call() == SystemCall::Waits);
                held += u32::from(hold.end());
            }
        }
        // Another thread, which runs.
        let (tell, told) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let end = is_over.clone();
        let other = thread::spawn(move || {
            tell.send(caller::id()).unwrap();
            while !end.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let id = told.recv().unwrap();
        let begin = Instant::now();
        let computes = |hold: Hold| hold.call() == SystemCall::None && hold.end();
        while !holder.hold(id).is_some_and(computes) {
            assert!(begin.elapsed() < Duration::from_secs(300));
        }
        is_over.store(true, Ordering::Relaxed);
        other.join().unwrap();
        // It does not wait for longer than the limit.
        let hold = (0..1000).find_map(|_| holder.hold(first)).unwrap();
        while STATE.load(Ordering::Acquire) == HELD {
            thread::sleep(STEP);
        }
        assert!(!hold.end());
        // A signal for which nobody waits any more changes nothing.
        let handled = HANDLED.load(Ordering::Acquire);
        let pid = std::process::id() as libc::pid_t;
        // SAFETY: it has no preconditions.
        unsafe { libc::syscall(libc::SYS_tgkill, pid, pid, holder.signal) };
        while HANDLED.load(Ordering::Acquire) == handled {
            thread::sleep(STEP);
        }
        assert_eq!(STATE.load(Ordering::Acquire), FREE);
        holder.sent = HANDLED.load(Ordering::Acquire);
        let signal = holder.signal;
        drop(holder);
        assert_eq!(action(signal), libc::SIG_DFL);
        assert!(Holder::new().is_some());
        // SAFETY: this is no function.
        unsafe { libc::signal(last, libc::SIG_DFL) };
    }
}
