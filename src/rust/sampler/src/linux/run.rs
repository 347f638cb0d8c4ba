//! A run: from [`start`] to [`stop`], and the handler in between.
//!
//! SIGPROF may arrive in any thread. Only the thread that runs R is recorded, so other threads forward the signal to
//! it, for which they read two atomic numbers. The run itself is used only by R's thread: in its handler, where the
//! signal is blocked, and in functions that block the signal.

use super::contexts::{self, Contexts};
use super::evaluator;
use super::memory::{Buffer, Limits, Stack};
use super::modules::Modules;
use super::registers::registers_of;
use super::titles::{Titles, set_titled};
use crate::{PositionVariables, Settings, State};
use profile_core::error::{Error, Result};
use profile_core::joint::recording::{HEADER, PAIR, WHOLE_CONTEXTS, WHOLE_STACK, WITH_POSITIONS};
use profile_core::joint::{Evaluator, Recording};
use profile_runtime::profiler;
use profile_unwind::Unwinder;
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

type Handler = extern "C" fn(c_int);

struct Run {
    process: libc::pid_t,
    /// Whether it is a recording of native code.
    native: bool,
    /// R's own handler, which is called at each tick.
    r_handler: Handler,
    recorder: UnsafeCell<Recorder>,
    start: SystemTime,
    /// The start on the monotonic clock.
    begin: Instant,
}

struct Recorder {
    buffer: Buffer,
    /// Follows native stacks, if they are recorded.
    unwinder: Option<Unwinder<Modules>>,
    contexts: Contexts,
    positions: Option<PositionVariables>,
    titles: Titles,
    limits: Limits,
    /// R's file, if lines are written immediately, so that its size shows where the line of a tick ends.
    file: Option<File>,
    lost: u64,
    evaluator: Evaluator,
}

/// The run, if there is one. Only R's thread may dereference this.
static RUN: AtomicPtr<Run> = AtomicPtr::new(std::ptr::null_mut());
/// The process and the thread of the last run.
static PROCESS: AtomicI32 = AtomicI32::new(0);
static THREAD: AtomicU64 = AtomicU64::new(0);
/// R's own handler in the last run, as a number.
static R_HANDLER: AtomicUsize = AtomicUsize::new(0);

/// A run that was stopped, and its recording.
pub struct Stopped {
    run: Box<Run>,
    duration: Duration,
}

/// Checks whether native code can be recorded in this process. R's profiler must be off.
pub fn check(settings: &Settings) -> Result<()> {
    Recorder::new(settings, None)?;
    if state() != State::Off {
        return Ok(());
    }
    // SAFETY: only the thread that calls this frees a run.
    let run = unsafe { RUN.load(Ordering::Acquire).as_ref() };
    let is_running = run.is_some_and(|run| !run.native) && matches!(current(), Current::Ours);
    // SAFETY: getitimer() fills the struct.
    let timer = unsafe {
        let mut timer: libc::itimerval = std::mem::zeroed();
        libc::getitimer(libc::ITIMER_PROF, &mut timer);
        timer.it_value
    };
    if is_running || (timer.tv_sec, timer.tv_usec) != (0, 0) {
        return Err(Error::Unsupported(
            "A profiler is running in this process; if it is R's own, `Rprof(NULL)` stops it."
                .to_owned(),
        ));
    }
    let foreign = match current() {
        Current::Nobody => false,
        Current::Plain(handler) => !contexts::is_r(handler as usize)?,
        Current::Ours | Current::Other => true,
    };
    if foreign {
        return Err(Error::Unsupported(
            "A library in this process handles the signal SIGPROF, which the profiler needs."
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

/// Installs the handler instead of R's. R's profiler must be on, and SIGPROF blocked.
pub fn start(settings: &Settings) -> Result<()> {
    if state() != State::Off {
        return Err(Error::Unsupported(
            "A recording is already running.".to_owned(),
        ));
    }
    // One without native code that has ended.
    stop();
    let r_handler = match current() {
        Current::Plain(handler) => handler,
        _ => {
            return Err(Error::Unsupported(
                "R's own profiler did not start, or does not use SIGPROF.".to_owned(),
            ));
        }
    };
    let file = if profiler::writes_lines_at_once(settings.version) {
        Some(File::open(settings.file).map_err(|source| Error::Open {
            path: settings.file.to_owned(),
            source,
        })?)
    } else {
        None
    };
    let recorder = Recorder::new(settings, file)?;
    set_titled(settings.titled);
    pin();
    // SAFETY: these have no preconditions.
    let (process, thread) = unsafe { (libc::getpid(), libc::pthread_self()) };
    PROCESS.store(process, Ordering::Release);
    THREAD.store(thread, Ordering::Release);
    R_HANDLER.store(r_handler as usize, Ordering::Release);
    let run = Box::new(Run {
        process,
        native: settings.native,
        r_handler,
        recorder: UnsafeCell::new(recorder),
        start: SystemTime::now(),
        begin: Instant::now(),
    });
    RUN.store(Box::into_raw(run), Ordering::Release);
    install();
    Ok(())
}

/// The state of the recording of native code.
pub fn state() -> State {
    // SAFETY: only the thread that calls this frees a run.
    let run = unsafe { RUN.load(Ordering::Acquire).as_ref() };
    let Some(run) = run.filter(|run| run.native) else {
        return State::Off;
    };
    // SAFETY: it has no preconditions.
    if unsafe { libc::getpid() } != run.process {
        State::Elsewhere
    } else {
        match current() {
            Current::Ours => State::On,
            Current::Plain(handler) if handler as usize == run.r_handler as usize => {
                State::Restarted
            }
            _ => State::Replaced,
        }
    }
}

/// Ends the run. R's profiler must be off, which means that R has installed another handler, and
/// SIGPROF must be blocked.
pub fn stop() -> Option<Stopped> {
    let run = RUN.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if run.is_null() {
        return None;
    }
    // SAFETY: it was created from a box. R's thread is here and not in its handler, or the handler
    // was interrupted and is not resumed, because R is quitting.
    let run = unsafe { Box::from_raw(run) };
    let duration = run.begin.elapsed();
    Some(Stopped { run, duration })
}

/// Restores R's handler and discards the run, before the package is unloaded.
pub fn abandon() {
    block();
    let r_handler = R_HANDLER.load(Ordering::Acquire);
    if matches!(current(), Current::Ours) && r_handler != 0 {
        // SAFETY: the handler that R had installed.
        unsafe { libc::signal(libc::SIGPROF, r_handler) };
    }
    stop();
    unblock();
}

/// Keeps this code in memory until the process ends: another library may have stored the address of
/// the handler, and install it again after the package was unloaded.
fn pin() {
    // SAFETY: dladdr() fills the struct if it succeeds; dlopen() only sets a flag of a library that
    // is loaded.
    unsafe {
        let mut about: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address() as *const c_void, &mut about) != 0 && !about.dli_fname.is_null() {
            let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
            libc::dlopen(about.dli_fname, flags);
        }
    }
}

impl Stopped {
    pub fn recording(&self) -> Result<Recording<'_>> {
        // SAFETY: the handler has no access after the run was stopped.
        let recorder = unsafe { &*self.run.recorder.get() };
        let start = self.run.start.duration_since(UNIX_EPOCH);
        let modules = match &recorder.unwinder {
            Some(unwinder) => unwinder.modules.seen(recorder.evaluator.eval.start)?,
            None => Vec::new(),
        };
        Ok(Recording {
            words: recorder.buffer.words(),
            modules,
            evaluator: recorder.evaluator.clone(),
            is_native: recorder.unwinder.is_some(),
            stack_top: recorder.limits.top,
            lines_written_at_once: recorder.file.is_some(),
            lost: recorder.lost,
            start: start.map_or(0, nanoseconds),
            duration: nanoseconds(self.duration),
        })
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// The current handler of SIGPROF.
enum Current {
    /// The default action, or the signal is ignored.
    Nobody,
    Ours,
    /// A handler without SA_SIGINFO, as R's is.
    Plain(Handler),
    Other,
}

fn current() -> Current {
    // SAFETY: only queries; the struct is filled.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPROF, std::ptr::null(), &mut action);
        action
    };
    if action.sa_sigaction == address() {
        Current::Ours
    } else if [libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction) {
        Current::Nobody
    } else if action.sa_flags & libc::SA_SIGINFO != 0 {
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
    // SAFETY: each thread has its own `errno`. It is restored, since the interrupted code may be about
    // to read it.
    let error = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *error };
    // SAFETY: with SA_SIGINFO the third argument is a `ucontext_t`.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    on_tick(signal, context);
    // SAFETY: as above.
    unsafe { *error = before };
}

fn on_tick(signal: c_int, context: &libc::ucontext_t) {
    // SAFETY: the functions have no preconditions, or send a signal to a thread that lives as long as R.
    unsafe {
        if libc::getpid() != PROCESS.load(Ordering::Acquire) {
            // A forked process: its stack is not part of the profile.
            return;
        }
        let thread = THREAD.load(Ordering::Acquire);
        if libc::pthread_equal(libc::pthread_self(), thread) == 0 {
            libc::pthread_kill(thread, signal);
            return;
        }
    }
    // SAFETY: R's thread, which is the only one that frees the run, in stop().
    if let Some(run) = unsafe { RUN.load(Ordering::Acquire).as_ref() } {
        tick(run, signal, context);
    }
}

fn tick(run: &Run, signal: c_int, context: &libc::ucontext_t) {
    // SAFETY: the thread that runs R, with the signal blocked.
    let recorder = unsafe { &mut *run.recorder.get() };
    let before = size_of(&recorder.file);
    let words = recorder.record(context);
    (run.r_handler)(signal);
    match words {
        Some(words) => recorder.finish(words, before, size_of(&recorder.file)),
        None => recorder.lost += 1,
    }
    // R reinstalls its own handler at each tick. A handler of another library is left in place.
    if matches!(current(), Current::Plain(handler) if handler as usize == run.r_handler as usize) {
        install();
    }
}

/// The current size of R's file.
fn size_of(file: &Option<File>) -> u64 {
    let Some(file) = file else {
        return 0;
    };
    // SAFETY: the descriptor is open, and fstat() fills the struct if it succeeds.
    unsafe {
        let mut about: libc::stat = std::mem::zeroed();
        if libc::fstat(file.as_raw_fd(), &mut about) != 0 {
            return 0;
        }
        about.st_size as u64
    }
}

impl Recorder {
    /// Allocates all memory. Without a file, its sizes are not recorded.
    fn new(settings: &Settings, file: Option<File>) -> Result<Recorder> {
        let limits = Limits::current()?;
        let contexts = Contexts::new(settings)?;
        let mut evaluator = Evaluator::default();
        let mut unwinder = None;
        if settings.native {
            let mut found = Unwinder::new(Modules::new()?)?;
            evaluator = evaluator::find(&mut found, &contexts, limits, settings.hooks)?;
            unwinder = Some(found);
        }
        Ok(Recorder {
            buffer: Buffer::new(settings.bytes)?,
            evaluator,
            unwinder,
            contexts,
            positions: settings.positions,
            titles: Titles::default(),
            limits,
            file,
            lost: 0,
        })
    }

    /// Records the stack and the contexts; returns the number of words, or `None` if the buffer is full.
    fn record(&mut self, context: &libc::ucontext_t) -> Option<usize> {
        let words = self.write(context);
        if words.is_none() {
            self.buffer.close();
        }
        words
    }

    fn write(&mut self, context: &libc::ucontext_t) -> Option<usize> {
        let registers = registers_of(context);
        let stack = Stack::in_use(registers.stack_pointer(), self.limits);
        let room = self.buffer.room()?;
        let (header, rest) = room.split_at_mut_checked(HEADER)?;
        let (mut frames, mut flags) = (0, 0);
        if let Some(unwinder) = &mut self.unwinder {
            let walked = unwinder.walk(registers, stack, rest)?;
            frames = walked.frames;
            flags |= if walked.whole { WHOLE_STACK } else { 0 };
        }
        let (_, rest) = rest.split_at_mut_checked(frames * PAIR)?;
        let called = self.contexts.walk(stack, rest)?;
        let contexts = called.contexts;
        flags |= if called.whole { WHOLE_CONTEXTS } else { 0 };
        let (calls, mut rest) = rest.split_at_mut_checked(contexts * PAIR)?;
        let mut words = HEADER + (frames + contexts) * PAIR;
        if let Some(variables) = &self.positions {
            let (positions, after) = rest.split_at_mut_checked(contexts * PAIR)?;
            self.contexts
                .positions(variables, stack, (calls, positions))?;
            flags |= WITH_POSITIONS;
            words += contexts * PAIR;
            rest = after;
        }
        let titles = self.titles.write(&self.contexts, stack, calls, rest);
        header[0] = frames as u64 | (contexts as u64) << 32;
        header[1] = flags | (titles as u64) << 32;
        Some(words + titles)
    }

    fn finish(&mut self, words: usize, before: u64, after: u64) {
        if let Some(header) = self.buffer.room() {
            header[2] = before;
            header[3] = after;
        }
        self.buffer.keep(words);
    }
}
