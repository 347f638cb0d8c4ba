//! The agent of this process. R's thread starts it, stops it and queries its status.
//!
//! A forked process inherits the static variable but not the thread. It therefore discards the value without taking
//! any of its locks, which the thread may have held at the time of the fork.

use crate::chunks::Timing;
use crate::http;
use crate::now::Now;
use crate::queue::{Chunk, Counts, Queue};
use crate::run::{Job, run};
use crate::sink::To;
use crate::source::Source;
use crate::system::{self, Log};
use profile_core::error::{Error, Result};
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
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    /// The channel is disconnected when the thread ends.
    ended: Receiver<Result<()>>,
}

pub struct Settings {
    pub source: Source,
    pub timing: Timing,
    pub to: To,
    pub resource: Vec<(String, String)>,
    /// The maximum size of all queued chunks, in bytes.
    pub queue: usize,
}

/// The state of the agent, with its counts.
#[derive(Debug, Clone)]
pub struct Status {
    pub is_running: bool,
    pub counts: Counts,
    /// The number of queued chunks, of their samples and of their bytes.
    pub chunks: usize,
    pub samples: u64,
    pub bytes: usize,
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
pub fn start(settings: Settings) -> Result<()> {
    let mut slot = lock();
    if slot.as_ref().is_some_and(|agent| agent.status().is_running) {
        return Err(Error::Unsupported(message!(
            "The agent is running already."
        )));
    }
    if let Some(mut agent) = slot.take() {
        // Its thread may have ended without being stopped.
        agent.stop(Duration::ZERO);
    }
    let queue = Arc::new(Queue::new(settings.queue));
    let job = Job {
        source: settings.source.clone(),
        timing: settings.timing,
        to: settings.to,
        resource: settings.resource,
    };
    let (sender, ready) = sync_channel(1);
    let shared = Arc::clone(&queue);
    let body = move || run(job, &shared, &sender);
    let thread = system::without_signals(|| {
        let named = thread::Builder::new().name(message!("profile-agent"));
        named.spawn(body)
    });
    let thread = thread.map_err(|_| Error::Memory)?;
    let failed = || Error::Process(message!("The agent has ended at once."));
    match ready.recv().map_err(|_| failed()).and_then(|opened| opened) {
        Ok(()) => {}
        Err(error) => {
            let _ = thread.join();
            return Err(error);
        }
    }
    *slot = Some(Agent {
        pid: process::id(),
        source: settings.source,
        queue,
        thread: Some(thread),
        ended: ready,
    });
    Ok(())
}

/// The current status of the agent, or its last one if it was stopped.
pub fn status() -> Option<Status> {
    lock().as_ref().map(Agent::status)
}

/// The file to which R's profiler should write, if it is the source of samples.
pub fn log() -> Option<Arc<Log>> {
    match &lock().as_ref()?.source {
        Source::Rprof(log) => Some(Arc::clone(log)),
        Source::Reader => None,
    }
}

/// Stops the agent if it is running. Within the timeout, it sends what is queued. Chunks for an R function stay in
/// the queue.
pub fn stop(timeout: Duration) -> Option<Status> {
    let mut slot = lock();
    let agent = slot.as_mut()?;
    agent.stop(timeout);
    Some(agent.status())
}

/// The oldest chunk, to be passed to an R function.
pub fn front() -> Option<Chunk> {
    lock().as_ref()?.queue.front()
}

/// Reports the result for a chunk that R has taken: sent, or an error.
pub fn given(number: u64, error: Option<String>) {
    if let Some(agent) = lock().as_ref() {
        match error {
            None => agent.queue.sent(number, 0, Now::read()),
            Some(error) => agent.queue.refused(number, error, Now::read()),
        }
    }
}

/// Drops the chunks that are still queued after the agent was stopped.
pub fn clear() {
    if let Some(agent) = lock().as_ref() {
        agent.queue.clear();
    }
}

/// Called before the library is unloaded: stops the thread without sending anything. Returns whether code of this
/// library is still running, in which case the library must stay in memory.
pub fn abandon() -> bool {
    stop(Duration::ZERO);
    IS_LEFT.load(Ordering::Acquire) || http::is_resolving()
}

impl Agent {
    fn status(&self) -> Status {
        let (counts, chunks, samples, bytes) = self.queue.all();
        Status {
            is_running: self.thread.is_some() && !counts.ended,
            counts,
            chunks,
            samples,
            bytes,
        }
    }

    fn stop(&mut self, timeout: Duration) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        // Releases the file of R's profiler. The thread has its own reference to it.
        self.source = Source::Reader;
        let deadline = Instant::now() + timeout;
        self.queue.stop(deadline);
        system::ring(&thread);
        let left = (deadline + GRACE).saturating_duration_since(Instant::now());
        match self.ended.recv_timeout(left) {
            Err(RecvTimeoutError::Timeout) => {
                // The thread is blocked on a file. It ends when it can, and uses only its own data.
                IS_LEFT.store(true, Ordering::Release);
                let why = message!("The thread did not end in time.");
                self.queue.note(why, Now::read());
            }
            _ => {
                // The thread has only a few instructions left.
                let _ = thread.join();
            }
        }
    }
}
