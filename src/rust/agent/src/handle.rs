//! The agent of this process. R's thread starts it, stops it and queries its status.
//!
//! A forked process inherits the static variable but not the thread. It therefore discards the value without taking
//! any of its locks, which the thread may have held at the time of the fork.

use crate::counts::Counts;
use crate::now::Now;
use crate::run::{Job, run};
use crate::source::Source;
use crate::state::State;
use crate::system::{self, Log};
use profile_core::error::{Error, Result};
use profile_core::limits::thread::refused;
use profile_core::message;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How much longer than requested the thread may take to stop: it may be writing a file.
const GRACE: Duration = Duration::from_secs(2);

/// Only R's thread takes this lock, so it is not held when R forks.
static AGENT: Mutex<Option<Agent>> = Mutex::new(None);
/// Whether a thread could not be stopped, so that the code of this library must stay in memory.
static IS_LEFT: AtomicBool = AtomicBool::new(false);

struct Agent {
    pid: u32,
    source: Source,
    state: Arc<State>,
    /// Whether R's thread takes the chunks.
    gives: bool,
    thread: Option<JoinHandle<()>>,
    /// The channel is disconnected when the thread ends.
    ended: Receiver<Result<()>>,
}

fn lock() -> MutexGuard<'static, Option<Agent>> {
    let mut agent = AGENT.lock().unwrap_or_else(PoisonError::into_inner);
    if agent
        .as_ref()
        .is_some_and(|agent| agent.pid != process::id())
    {
        // The thread belongs to the parent process, and dropping the agent would join it or take locks.
        std::mem::forget(agent.take());
    }
    agent
}

/// Starts the agent. A previous agent must have been stopped.
pub fn start(job: Job) -> Result<()> {
    let mut slot = lock();
    if slot.as_ref().is_some_and(|agent| !agent.status().ended) {
        return Err(Error::Unsupported(message!(
            "The agent is running already."
        )));
    }
    if let Some(mut agent) = slot.take() {
        // Its thread may have ended without being stopped.
        agent.stop(Duration::ZERO);
    }
    let state = Arc::new(State::new(job.to.open()?));
    let (gives, source) = (job.to.is_r(), job.source.clone());
    let (sender, ready) = sync_channel(1);
    let shared = Arc::clone(&state);
    let body = move || run(job, &shared, &sender);
    let thread = system::without_signals(|| {
        let named = thread::Builder::new().name(message!("profile-agent"));
        named.spawn(body)
    });
    let thread = thread.map_err(refused)?;
    let failed = || Error::Process(message!("The agent has ended at once."));
    match ready.recv().map_err(|_| failed()).and_then(|opened| opened) {
        Ok(()) => {}
        Err(error) => {
            let _ = thread.join();
            state.leave(gives, Now::read());
            return Err(error);
        }
    }
    *slot = Some(Agent {
        pid: process::id(),
        source,
        state,
        gives,
        thread: Some(thread),
        ended: ready,
    });
    Ok(())
}

/// The current status of the agent, or its last one if it was stopped.
pub fn status() -> Option<Counts> {
    lock().as_ref().map(Agent::status)
}

/// The file to which R's profiler should write, if it is the source of samples.
pub fn log() -> Option<Arc<Log>> {
    match &lock().as_ref()?.source {
        Source::Rprof(log) => Some(Arc::clone(log)),
        Source::Reader => None,
    }
}

/// Stops the agent if it is running. Within the timeout, it sends the chunks in the spool. Those for an R function stay
/// there.
pub fn stop(timeout: Duration) -> Option<Counts> {
    let mut slot = lock();
    let agent = slot.as_mut()?;
    agent.stop(timeout);
    Some(agent.status())
}

/// Drops the chunks for an R function that remain after the agent was stopped.
pub fn clear() {
    if let Some(agent) = lock().as_ref().filter(|agent| agent.gives) {
        let now = Now::read();
        agent.state.spool(now, |spool| spool.scan());
        agent.state.leave(true, now);
    }
}

/// Called before the library is unloaded: stops the thread without sending anything. Returns whether code of this
/// library is still running, in which case the library must stay in memory.
pub fn abandon() -> bool {
    stop(Duration::ZERO);
    IS_LEFT.load(Ordering::Acquire)
}

impl Agent {
    fn status(&self) -> Counts {
        if self.gives && self.thread.is_some() {
            // R's thread may just have taken chunks.
            self.state.spool(Now::read(), |spool| spool.scan());
        }
        let mut counts = self.state.counts();
        counts.ended |= self.thread.is_none();
        counts
    }

    fn stop(&mut self, timeout: Duration) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        // Releases the file of R's profiler. The thread has its own reference to it.
        self.source = Source::Reader;
        let deadline = Instant::now() + timeout;
        self.state.stop(deadline);
        let left = (deadline + GRACE).saturating_duration_since(Instant::now());
        match self.ended.recv_timeout(left) {
            Err(RecvTimeoutError::Timeout) => {
                // The thread is blocked on a file. It ends when it can, and uses only its own data.
                IS_LEFT.store(true, Ordering::Release);
                let why = message!("The thread did not end in time.");
                self.state.note(why, Now::read());
            }
            _ => {
                // The thread has only a few instructions left.
                let _ = thread.join();
            }
        }
    }
}
