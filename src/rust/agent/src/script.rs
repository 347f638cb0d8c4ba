//! What the tests of this crate share: a clock that they move, and servers, sessions and helpers that do what a test
//! says.

use crate::http::Route;
use crate::http::finished::Finished;
use crate::http::response::{Progress, Response};
use crate::now::Now;
use crate::queue::{Counts, Queue};
use crate::relay::site::Site;
use crate::session::Session;
use crate::system::Waiting;
use profile_core::error::{Error, Result};
use profile_core::formats::{self, Input, otlp};
use profile_core::io::input::Origin;
use profile_core::limits::memory::TryGrow;
use profile_core::model::Profile;
use profile_core::retry::Outcome;
use profile_reader::samples::declare_types;
use profile_reader::session::Tick;
use profile_reader::settings::Clock;
use profile_reader::source::{TYPES, own_source};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

pub type Shared<T> = Rc<RefCell<T>>;

// ---- Time ----------------------------------------------------------------------

/// 1994-11-06 08:49:07 UTC, by `date -u -d @784111747`.
pub const DATE: u64 = 784_111_747;

pub fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// A moment at which tests begin.
pub fn beginning() -> Now {
    Now {
        instant: Instant::now(),
        boot: Duration::from_secs(1000),
        date: UNIX_EPOCH + Duration::from_secs(DATE),
    }
}

impl Now {
    /// So many seconds later.
    pub fn after(self, time: f64) -> Now {
        Now {
            instant: self.instant + seconds(time),
            ..self.after_suspend(time)
        }
    }

    /// The same, if the system was suspended for all of that time.
    pub fn after_suspend(self, time: f64) -> Now {
        Now {
            boot: self.boot + seconds(time),
            date: self.date + seconds(time),
            ..self
        }
    }
}

// ---- The queue -----------------------------------------------------------------

/// The counts, after a check that each sample is counted once.
pub fn checked(queue: &Queue) -> Counts {
    let (counts, _, queued, _) = queue.all();
    let sum = counts.open + queued + counts.sent + counts.dropped();
    assert_eq!(counts.taken, sum, "{counts:?}");
    counts
}

/// Adds a chunk of so many samples that consists of this byte.
pub fn add_chunk(queue: &Queue, samples: u64, byte: u8, now: Now) {
    for _ in 0..samples {
        queue.took(false);
    }
    queue.add(Ok(vec![byte; 10]), now);
}

/// The last error.
pub fn last_error(queue: &Queue) -> String {
    checked(queue).last_error.unwrap_or_default().0
}

/// The profile in the oldest chunk, which is removed as if it had been sent.
pub fn next_profile(queue: &Queue, now: Now) -> Option<Profile> {
    let chunk = queue.front()?;
    let input = Input::Bytes(&chunk.bytes);
    let read = formats::read(input, Some(&otlp::FORMAT), Origin::default(), &|| false);
    let (profile, problems) = read.unwrap();
    assert!(problems.is_empty());
    assert_eq!(
        sum(
            &profile,
            profile.sources[0].default_type.as_deref().unwrap()
        ) > 0.0,
        chunk.samples > 0
    );
    queue.sent(chunk.number, 0, now);
    Some(profile)
}

/// The sum of the values of a type.
pub fn sum(profile: &Profile, name: &str) -> f64 {
    let unit = if name == "samples" {
        "count"
    } else {
        "nanoseconds"
    };
    profile.value(name, unit).unwrap().column.iter().sum()
}

// ---- A server ------------------------------------------------------------------

/// How a request ended without an answer.
pub fn ended(outcome: Outcome) -> Finished {
    Finished::new("http://a", outcome, "why".into())
}

/// An answer without a body; `headers` are lines.
pub fn answered(status: u16, headers: &str) -> Finished {
    let text = format!("HTTP/1.1 {status} \r\nContent-Length: 0\r\n{headers}\r\n");
    let mut response = Response::default();
    let progress = response.add(text.as_bytes(), 0).unwrap();
    assert_eq!(progress, Progress::Complete);
    Finished::answered("http://a", &response)
}

/// The requests that a scripted server has got.
#[derive(Default)]
pub struct Requests {
    /// The first byte of the body, the timeout, and the deadline.
    pub begun: Vec<(u8, Duration, Option<Instant>)>,
    pub is_open: bool,
    /// How the open request ends at the next step.
    pub answer: Option<Finished>,
    /// Why the next request cannot begin.
    pub refusal: Option<Error>,
    pub hurried: Option<Instant>,
}

pub struct Server(pub Shared<Requests>);

impl Route for Server {
    fn begin(
        &mut self,
        body: &Arc<Vec<u8>>,
        timeout: Duration,
        end: Option<Instant>,
        _: Now,
    ) -> Result<()> {
        let mut requests = self.0.borrow_mut();
        assert!(!requests.is_open);
        if let Some(error) = requests.refusal.take() {
            return Err(error);
        }
        requests.begun.push((body[0], timeout, end));
        requests.is_open = true;
        Ok(())
    }

    fn step(&mut self, _: &Queue, _: Now) -> Option<Finished> {
        let mut requests = self.0.borrow_mut();
        if !requests.is_open {
            return None;
        }
        let answer = requests.answer.take();
        requests.is_open = answer.is_none();
        answer
    }

    fn waiting(&self) -> Option<Waiting> {
        None
    }

    fn hurry(&mut self, deadline: Instant) {
        self.0.borrow_mut().hurried = Some(deadline);
    }
}

// ---- A session of the reader -----------------------------------------------------

pub const TAKEN: Tick = Tick::Taken {
    is_cut: false,
    free: None,
};

/// What a scripted session has to do, and what it was asked to do.
#[derive(Default)]
pub struct Script {
    /// What happens at each tick. Without an entry, a sample is taken.
    pub ticks: VecDeque<Result<Tick>>,
    /// Why the session cannot be opened again or continued.
    pub failures: VecDeque<Error>,
    /// The calls, except ticks.
    pub calls: Vec<&'static str>,
    /// When recordings ended.
    pub ends: Vec<Instant>,
}

impl Script {
    /// The calls since the last call of this function.
    pub fn new_calls(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.calls)
    }

    fn begin(&mut self, call: &'static str, profile: &mut Profile) -> Result<()> {
        self.calls.push(call);
        assert!(profile.samples.is_empty() && profile.sources.is_empty());
        match self.failures.pop_front() {
            Some(error) => Err(error),
            None => begin_profile(profile),
        }
    }
}

/// Adds what a session adds when it is opened.
pub fn begin_profile(profile: &mut Profile) -> Result<()> {
    declare_types(profile)?;
    let source = own_source(1, Clock::Cpu, 1e7, &TYPES, profile)?;
    profile.add_source(source).map(drop)
}

pub struct Scripted(pub Shared<Script>);

impl Session for Scripted {
    fn prepare(&mut self) -> Result<()> {
        self.0.borrow_mut().calls.push("prepare");
        Ok(())
    }

    fn tick(&mut self, profile: &mut Profile) -> Result<Tick> {
        let tick = self.0.borrow_mut().ticks.pop_front().unwrap_or(Ok(TAKEN))?;
        if let Tick::Taken { .. } = tick {
            let file = profile.strings.intern("a.R")?;
            let frame = profile.frame("f", file, 7)?;
            let stack = profile.stacks.intern(&[frame])?;
            let source = profile.source_ids().next().unwrap();
            profile.samples.source.try_push(source)?;
            profile.samples.stack.try_push(stack)?;
            for column in &mut profile.values {
                column.push(10_000_000)?;
            }
        }
        Ok(tick)
    }

    fn continue_in(&mut self, profile: &mut Profile) -> Result<()> {
        self.0.borrow_mut().begin("continue", profile)
    }

    fn reopen(&mut self, profile: &mut Profile) -> Result<()> {
        self.0.borrow_mut().begin("reopen", profile)
    }

    fn skip_time(&mut self) {
        self.0.borrow_mut().calls.push("skip");
    }

    fn finish_at(&mut self, end: Instant, _: &mut Profile) {
        self.0.borrow_mut().ends.push(end);
    }
}

// ---- A helper ------------------------------------------------------------------

/// The state of a scripted folder of a helper.
#[derive(Default)]
pub struct Helper {
    /// Whether the helper removes the folder.
    pub is_closing: bool,
    pub is_running: bool,
    /// Whether another agent may start the helper.
    pub is_turn_of_other: bool,
    /// Whether this agent is the one that may.
    pub has_turn: bool,
    pub cannot_start: bool,
    pub starts: usize,
    pub looks: usize,
}

pub struct Place {
    pub folder: PathBuf,
    pub helper: Shared<Helper>,
}

impl Site for Place {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn enter(&mut self) -> Result<bool> {
        let mut helper = self.helper.borrow_mut();
        helper.looks += 1;
        Ok(!helper.is_closing)
    }

    fn is_helped(&self) -> Result<bool> {
        Ok(self.helper.borrow().is_running)
    }

    fn take_turn(&self) -> Result<bool> {
        let mut helper = self.helper.borrow_mut();
        helper.has_turn = !helper.is_turn_of_other;
        Ok(helper.has_turn)
    }

    fn end_turn(&self) -> Result<()> {
        self.helper.borrow_mut().has_turn = false;
        Ok(())
    }

    fn start(&mut self) -> io::Result<()> {
        let mut helper = self.helper.borrow_mut();
        assert!(helper.has_turn);
        helper.starts += 1;
        match helper.cannot_start {
            true => Err(ErrorKind::PermissionDenied.into()),
            false => Ok(()),
        }
    }

    fn said(&self) -> String {
        ": broken".into()
    }
}
