//! Sends chunks to a server over HTTP.
//!
//! - this file: determines which chunk is sent, and when;
//! - [`direct`]: requests that the thread sends itself, unencrypted; [`exchange`]: one such request as a state
//!   machine; [`url`]: parses the URL of a server; [`resolve`]: resolves its host name; [`response`]: parses its
//!   response;
//! - [`crate::relay`]: requests that the helper process sends, encrypted;
//! - [`finished`]: how a request ended.

pub mod direct;
pub mod exchange;
pub mod finished;
pub mod resolve;
pub mod response;
pub mod url;

pub use resolve::is_resolving;

use crate::now::Now;
use crate::queue::Queue;
use crate::relay::{self, Relay};
use crate::system::Waiting;
use direct::{Direct, Endpoint};
use finished::Finished;
use profile_core::error::Result;
use profile_core::message;
use profile_core::retry::{self, Verdict};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest delay that a server may request. A longer one is treated as a final error.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Where to send, and how.
#[derive(Debug, Clone)]
pub struct Target {
    pub way: Way,
    /// The timeout of a request.
    pub timeout: Duration,
    /// The delay before the first retry.
    pub first: Duration,
    /// The maximum size of a response body, in bytes.
    pub most: usize,
}

#[derive(Debug, Clone)]
pub enum Way {
    /// The thread sends requests itself.
    Direct(Endpoint),
    /// The helper process sends them.
    Relay(relay::Settings),
}

/// Sends requests to the server, one at a time. No method blocks.
pub trait Route {
    /// Starts a request with a timeout, and with an absolute deadline `end` if there is one.
    fn begin(
        &mut self,
        body: &Arc<Vec<u8>>,
        timeout: Duration,
        end: Option<Instant>,
        now: Now,
    ) -> Result<()>;

    /// Does everything that is possible without blocking. Returns how the request ended, once.
    fn step(&mut self, queue: &Queue, now: Now) -> Option<Finished>;

    /// What the next step waits for.
    fn waiting(&self) -> Option<Waiting>;

    /// Brings the deadline of the request forward, if this one is earlier.
    fn hurry(&mut self, deadline: Instant);
}

pub struct Http {
    route: Box<dyn Route>,
    timeout: Duration,
    first: Duration,
    /// The chunk that is being sent.
    current: Option<u64>,
    /// The number of failed attempts to send the oldest chunk, and the time of the next attempt.
    attempts: u32,
    next: Instant,
    /// The deadline of the last attempt, set when the agent stops.
    deadline: Option<Instant>,
    has_given_up: bool,
    /// Randomises delays.
    chance: fn() -> f64,
}

impl Http {
    pub fn open(target: Target, now: Now) -> Result<Http> {
        let route: Box<dyn Route> = match target.way {
            Way::Direct(endpoint) => Box::new(Direct::new(endpoint, target.most)),
            Way::Relay(settings) => Box::new(Relay::open(settings, target.most, now)?),
        };
        Ok(Http::new(route, target.timeout, target.first, now))
    }

    pub fn new(route: Box<dyn Route>, timeout: Duration, first: Duration, now: Now) -> Http {
        Http {
            route,
            timeout,
            first,
            current: None,
            attempts: 0,
            next: now.instant,
            deadline: None,
            has_given_up: false,
            chance: retry::chance,
        }
    }

    pub fn step(&mut self, queue: &Queue, now: Now) {
        if self.current.is_none() {
            self.begin(queue, now);
        }
        let Some(finished) = self.route.step(queue, now) else {
            return;
        };
        if let Some(number) = self.current.take() {
            self.finish(number, &finished, queue, now);
        }
    }

    fn begin(&mut self, queue: &Queue, now: Now) {
        if self.has_given_up || now.instant < self.next {
            return;
        }
        let Some(chunk) = queue.front() else {
            return;
        };
        let begun = self
            .route
            .begin(&chunk.bytes, self.timeout, self.deadline, now);
        match begun {
            Ok(()) => self.current = Some(chunk.number),
            Err(error) => {
                self.wait(None, now);
                queue.failed(message!("{error}"), now);
            }
        }
    }

    fn finish(&mut self, number: u64, finished: &Finished, queue: &Queue, now: Now) {
        let why = finished.in_words();
        match finished.outcome.verdict() {
            Verdict::Accepted => {
                self.attempts = 0;
                queue.sent(number, finished.rejected, now);
                if let Some(why) = why {
                    queue.note(why, now);
                }
            }
            Verdict::Again => {
                let asked = finished.retry_after.as_deref();
                let asked = asked.and_then(|text| retry::requested(text, now.date));
                if asked.is_some_and(|asked| asked > PATIENCE.as_secs_f64()) {
                    self.attempts = 0;
                    queue.refused(number, why.unwrap_or_default(), now);
                } else {
                    self.wait(asked, now);
                    queue.failed(why.unwrap_or_default(), now);
                }
            }
            Verdict::Final => {
                self.attempts = 0;
                queue.refused(number, why.unwrap_or_default(), now);
            }
        }
    }

    /// Schedules the next attempt.
    fn wait(&mut self, asked: Option<f64>, now: Now) {
        self.attempts = self.attempts.saturating_add(1);
        let delay = retry::delay(self.attempts, self.first, (self.chance)());
        let asked = asked.and_then(|asked| Duration::try_from_secs_f64(asked).ok());
        self.next = now.instant + delay.max(asked.unwrap_or_default());
        self.has_given_up = self.deadline.is_some();
    }

    pub fn waiting(&self) -> Option<Waiting> {
        self.route.waiting()
    }

    /// The agent is stopping: starts the last attempt now, with this deadline.
    pub fn hurry(&mut self, deadline: Instant, now: Now) {
        self.next = now.instant;
        self.deadline = Some(deadline);
        self.route.hurry(deadline);
    }

    pub fn has_given_up(&self) -> bool {
        self.has_given_up
    }
}

#[cfg(test)]
mod tests;
