//! A run: from [`start`] to [`stop`], and the handler in between.
//!
//! SIGPROF may come to any thread; what is recorded is the thread that runs R, so
//! others send it on. There the signal is blocked while the handler runs, which
//! makes the recorder that thread's alone. What other threads look at is atomic or
//! does not change.

use super::contexts::{self, Contexts};
use super::evaluator;
use super::memory::{Buffer, Limits, Stack};
use super::unwind::Unwinder;
use super::x86_64::Registers;
use crate::{Settings, State};
use profile_core::error::{Error, Result};
use profile_core::joint::recording::{HEADER, PAIR, WHOLE_CONTEXTS, WHOLE_STACK};
use profile_core::joint::{Evaluator, Recording};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

type Handler = extern "C" fn(c_int);

struct Run {
    process: libc::pid_t,
    thread: libc::pthread_t,
    /// What R does at a tick.
    of_r: Handler,
    recorder: UnsafeCell<Recorder>,
}

/// The thread that runs R has this to itself: in its handler, or while SIGPROF is
/// blocked.
struct Recorder {
    buffer: Buffer,
    unwinder: Unwinder,
    contexts: Contexts,
    limits: Limits,
    file: File,
    lost: u64,
    evaluator: Evaluator,
    sizes_tell: bool,
}

/// The run, if there is one.
static RUN: AtomicPtr<Run> = AtomicPtr::new(std::ptr::null_mut());
/// How many threads are inside the handler.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// What a run recorded.
pub struct Stopped(Box<Run>);

/// Whether native code can be recorded here and now.
pub fn check() -> Result<()> {
    Unwinder::new()?;
    contexts::evaluator()?;
    // SAFETY: getitimer() fills the struct.
    let timer = unsafe {
        let mut timer: libc::itimerval = std::mem::zeroed();
        libc::getitimer(libc::ITIMER_PROF, &mut timer);
        timer.it_value
    };
    if state() == State::Off && (timer.tv_sec, timer.tv_usec) != (0, 0) {
        return Err(Error::Unsupported(
            "A profiler is running in this process; if it is R's own, `Rprof(NULL)` stops it."
                .to_owned(),
        ));
    }
    Ok(())
}

pub fn block() {
    mask(libc::SIG_BLOCK);
}

pub fn unblock() {
    mask(libc::SIG_UNBLOCK);
}

fn mask(how: c_int) {
    // SAFETY: the set is filled before it is used.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGPROF);
        libc::pthread_sigmask(how, &set, std::ptr::null_mut());
    }
}

/// Puts the handler before R's. R's profiler is on, and SIGPROF blocked.
pub fn start(settings: &Settings) -> Result<()> {
    if state() != State::Off {
        return Err(Error::Unsupported("A recording is on.".to_owned()));
    }
    let of_r = match current() {
        Current::Plain(handler) => handler,
        _ => {
            return Err(Error::Unsupported(
                "R's own profiler did not start, or does not use SIGPROF.".to_owned(),
            ));
        }
    };
    let file = File::open(settings.file).map_err(|source| Error::Open {
        path: settings.file.to_owned(),
        source,
    })?;
    let limits = Limits::of_this_thread()?;
    let mut unwinder = Unwinder::new()?;
    let recorder = Recorder {
        buffer: Buffer::new(settings.bytes)?,
        evaluator: evaluator::find(&mut unwinder, limits)?,
        unwinder,
        contexts: Contexts::new(settings)?,
        limits,
        file,
        lost: 0,
        sizes_tell: settings.sizes_tell,
    };
    // The first call of a library's function binds it: better here than at a tick.
    size_of(&recorder.file);
    // SAFETY: these only tell, and signal 0 is none.
    let (process, thread) = unsafe {
        libc::pthread_kill(libc::pthread_self(), 0);
        (libc::getpid(), libc::pthread_self())
    };
    let run = Box::new(Run {
        process,
        thread,
        of_r,
        recorder: UnsafeCell::new(recorder),
    });
    RUN.store(Box::into_raw(run), Ordering::Release);
    install();
    Ok(())
}

/// Whether ticks still come in.
pub fn state() -> State {
    // SAFETY: a run is freed by the thread that calls this only.
    let Some(run) = (unsafe { RUN.load(Ordering::Acquire).as_ref() }) else {
        return State::Off;
    };
    // SAFETY: it only tells.
    if unsafe { libc::getpid() } != run.process {
        State::Elsewhere
    } else if matches!(current(), Current::Ours) {
        State::On
    } else {
        State::Replaced
    }
}

/// Ends the run. R's profiler is off, so R has another handler in place, and SIGPROF
/// is blocked.
pub fn stop() -> Option<Stopped> {
    let elsewhere = state() == State::Elsewhere;
    let run = RUN.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // Another thread may be about to send a tick on. In a fork there is none.
    while !elsewhere && INSIDE.load(Ordering::Acquire) != 0 {
        std::thread::yield_now();
    }
    if run.is_null() {
        return None;
    }
    // SAFETY: it came from a box, and nobody has it any more.
    Some(Stopped(unsafe { Box::from_raw(run) }))
}

/// Gives SIGPROF back to R and forgets the run: this code is about to be unloaded.
pub fn abandon() {
    block();
    // SAFETY: a run is freed by the thread that calls this only.
    if let Some(run) = unsafe { RUN.load(Ordering::Acquire).as_ref() } {
        if matches!(current(), Current::Ours) {
            // SAFETY: what R had put there.
            unsafe { libc::signal(libc::SIGPROF, run.of_r as *const () as usize) };
        }
    }
    stop();
    unblock();
}

impl Stopped {
    pub fn recording(&self) -> Result<Recording<'_>> {
        // SAFETY: the handler has no access any more.
        let recorder = unsafe { &*self.0.recorder.get() };
        Ok(Recording {
            words: recorder.buffer.words(),
            modules: recorder
                .unwinder
                .modules
                .seen(recorder.evaluator.eval.start)?,
            evaluator: recorder.evaluator.clone(),
            stack_top: recorder.limits.top,
            sizes_tell: recorder.sizes_tell,
            lost: recorder.lost,
        })
    }
}

/// Who handles SIGPROF.
enum Current {
    Ours,
    Plain(Handler),
    Other,
}

fn current() -> Current {
    // SAFETY: asks only; the struct is filled.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPROF, std::ptr::null(), &mut action);
        action
    };
    if action.sa_sigaction == address() {
        Current::Ours
    } else if action.sa_flags & libc::SA_SIGINFO != 0
        || action.sa_sigaction == libc::SIG_DFL
        || action.sa_sigaction == libc::SIG_IGN
    {
        Current::Other
    } else {
        // SAFETY: without SA_SIGINFO it is a function of this type.
        Current::Plain(unsafe { std::mem::transmute::<usize, Handler>(action.sa_sigaction) })
    }
}

fn address() -> usize {
    on_signal as *const () as usize
}

fn install() {
    // SAFETY: a handler of the type that SA_SIGINFO asks for. The signal itself is
    // blocked while it runs.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = address();
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(libc::SIGPROF, &action, std::ptr::null_mut());
    }
}

extern "C" fn on_signal(signal: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: each thread has its own; what was interrupted may be about to read it.
    let error = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *error };
    INSIDE.fetch_add(1, Ordering::AcqRel);
    // SAFETY: a run is not freed while a thread is inside.
    if let Some(run) = unsafe { RUN.load(Ordering::Acquire).as_ref() } {
        // SAFETY: with SA_SIGINFO the third argument is this.
        let context = unsafe { &*context.cast::<libc::ucontext_t>() };
        tick(run, signal, context);
    }
    INSIDE.fetch_sub(1, Ordering::AcqRel);
    // SAFETY: as above.
    unsafe { *error = before };
}

fn tick(run: &Run, signal: c_int, context: &libc::ucontext_t) {
    // SAFETY: these only tell, or send a signal to a thread that lives as long as R.
    unsafe {
        if libc::getpid() != run.process {
            // A fork: its stack is no part of the profile, and R's file not its own.
            return;
        }
        if libc::pthread_equal(libc::pthread_self(), run.thread) == 0 {
            libc::pthread_kill(run.thread, signal);
            return;
        }
    }
    // SAFETY: the thread that runs R, with the signal blocked.
    let recorder = unsafe { &mut *run.recorder.get() };
    let before = size_of(&recorder.file);
    let words = recorder.record(context);
    (run.of_r)(signal);
    match words {
        Some(words) => recorder.finish(words, before, size_of(&recorder.file)),
        None => recorder.lost += 1,
    }
    // R puts its own handler back at each tick. Anyone else may keep the signal.
    if matches!(current(), Current::Plain(handler) if handler as usize == run.of_r as usize) {
        install();
    }
}

/// How long R's file is by now.
fn size_of(file: &File) -> u64 {
    // SAFETY: the descriptor is open, and fstat() fills the struct it succeeds with.
    unsafe {
        let mut about: libc::stat = std::mem::zeroed();
        if libc::fstat(file.as_raw_fd(), &mut about) != 0 {
            return 0;
        }
        about.st_size as u64
    }
}

impl Recorder {
    /// Writes stack and contexts; how many words they took.
    fn record(&mut self, context: &libc::ucontext_t) -> Option<usize> {
        let words = self.write(context);
        if words.is_none() {
            self.buffer.close();
        }
        words
    }

    fn write(&mut self, context: &libc::ucontext_t) -> Option<usize> {
        let registers = Registers::of(context);
        let stack = Stack::in_use(registers.stack_pointer(), self.limits);
        let room = self.buffer.room()?;
        let (header, rest) = room.split_at_mut_checked(HEADER)?;
        let walked = self.unwinder.walk(registers, stack, rest)?;
        let (_, rest) = rest.split_at_mut_checked(walked.frames * PAIR)?;
        let called = self.contexts.walk(stack, rest)?;
        header[0] = walked.frames as u64 | (called.contexts as u64) << 32;
        header[1] = if walked.whole { WHOLE_STACK } else { 0 }
            | if called.whole { WHOLE_CONTEXTS } else { 0 };
        Some(HEADER + (walked.frames + called.contexts) * PAIR)
    }

    fn finish(&mut self, words: usize, before: u64, after: u64) {
        if let Some(header) = self.buffer.room() {
            header[2] = before;
            header[3] = after;
        }
        self.buffer.keep(words);
    }
}
