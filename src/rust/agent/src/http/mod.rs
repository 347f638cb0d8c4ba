//! Sends chunks to a server over HTTP, without encryption.
//!
//! - [`url`]: the address of a server; [`resolve`]: of its name;
//! - [`exchange`]: a request and its response, step by step; [`response`]: reads that response;
//! - this file: which chunk is sent when.
//!
//! A connection is used once: there is one request in some seconds.

pub mod exchange;
pub mod resolve;
pub mod response;
pub mod url;

pub use resolve::is_resolving;

use crate::queue::{Chunk, Queue};
use crate::system::Waiting;
use exchange::{Exchange, Finished};
use profile_core::message;
use profile_core::retry::{self, Outcome, Verdict};
use resolve::Resolver;
use std::time::{Duration, Instant, SystemTime};
use url::Url;

/// The longest delay that a server may request. It is an error if it asks for more.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Where to send, and how.
#[derive(Debug, Clone)]
pub struct Target {
    pub url: Url,
    /// Complete lines of the head of a request, other than those that depend on URL and body.
    pub headers: Vec<u8>,
    /// How long a request may take.
    pub timeout: Duration,
    /// The first delay.
    pub first: Duration,
    /// The most bytes of a response.
    pub most: usize,
}

pub struct Http {
    target: Target,
    resolver: Resolver,
    current: Option<(Chunk, Exchange)>,
    /// Failed attempts to send the oldest chunk, and when the next one is.
    attempts: u32,
    next: Instant,
    /// The end of the last attempt, once the agent ends.
    deadline: Option<Instant>,
    has_given_up: bool,
}

impl Http {
    pub fn new(target: Target) -> Http {
        Http {
            resolver: Resolver::new(&target.url),
            target,
            current: None,
            attempts: 0,
            next: Instant::now(),
            deadline: None,
            has_given_up: false,
        }
    }

    pub fn step(&mut self, queue: &Queue) {
        if self.current.is_none() {
            self.begin(queue);
        }
        let Some((chunk, exchange)) = &mut self.current else {
            return;
        };
        let Some(finished) = exchange.step(&mut self.resolver) else {
            return;
        };
        let number = chunk.number;
        self.current = None;
        self.finish(number, &finished, queue);
    }

    fn begin(&mut self, queue: &Queue) {
        if self.has_given_up || Instant::now() < self.next {
            return;
        }
        let Some(chunk) = queue.front() else {
            return;
        };
        let mut deadline = Instant::now() + self.target.timeout;
        if let Some(end) = self.deadline {
            deadline = deadline.min(end);
        }
        match Exchange::new(&self.target, &chunk.bytes, deadline) {
            Ok(exchange) => self.current = Some((chunk, exchange)),
            Err(error) => {
                self.wait(None);
                queue.failed(message!("{error}"));
            }
        }
    }

    fn finish(&mut self, number: u64, finished: &Finished, queue: &Queue) {
        let why = finished.in_words();
        if finished.outcome == Outcome::NotSent {
            // Perhaps the server has moved.
            self.resolver.forget();
        }
        match finished.outcome.verdict() {
            Verdict::Accepted => {
                self.attempts = 0;
                queue.sent(number, finished.rejected);
                if let Some(why) = why {
                    queue.note(why);
                }
            }
            Verdict::Again => {
                let asked = finished.retry_after.as_deref();
                let asked = asked.and_then(|text| retry::requested(text, SystemTime::now()));
                if asked.is_some_and(|asked| asked > PATIENCE.as_secs_f64()) {
                    self.attempts = 0;
                    queue.refused(number, why.unwrap_or_default());
                } else {
                    self.wait(asked);
                    queue.failed(why.unwrap_or_default());
                }
            }
            Verdict::Final => {
                self.attempts = 0;
                queue.refused(number, why.unwrap_or_default());
            }
        }
    }

    /// Determines when the next attempt is.
    fn wait(&mut self, asked: Option<f64>) {
        self.attempts = self.attempts.saturating_add(1);
        let delay = retry::delay(self.attempts, self.target.first, retry::chance());
        let asked = asked.and_then(|asked| Duration::try_from_secs_f64(asked).ok());
        self.next = Instant::now() + delay.max(asked.unwrap_or_default());
        self.has_given_up = self.deadline.is_some();
    }

    pub fn waiting(&self) -> Option<Waiting> {
        self.current.as_ref()?.1.waiting()
    }

    /// The agent ends: the last attempt is now, and takes until a moment.
    pub fn hurry(&mut self, deadline: Instant) {
        self.next = Instant::now();
        self.deadline = Some(deadline);
        if let Some((_, exchange)) = &mut self.current {
            exchange.hurry(deadline);
        }
    }

    pub fn has_given_up(&self) -> bool {
        self.has_given_up
    }
}
