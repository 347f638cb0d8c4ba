//! Sends chunks with a helper: an R process that sends the requests it finds in a folder, with curl and encryption,
//! for all agents of a user on this machine. `R/relay.R` contains the code of the helper.
//!
//! ```text
//! agent   NAME.request ──► NAME.sending ──► NAME.answer   agent
//!         written          taken by         written by
//!         by the agent     the helper       the helper
//! ```
//!
//! Files are complete before they are renamed to these names. An agent whose request was not taken in time can
//! therefore withdraw it and knows that it was not sent. An agent always removes its files; the helper removes the
//! files of agents that were killed.
//!
//! - this file: requests and answers;
//! - [`watch`]: determines when the helper is started; [`site`]: the folder, and how the helper is started;
//! - [`lock`]: shows which processes are running: each holds locks on bytes of a file until it ends.

pub mod lock;
pub mod site;
pub mod watch;

use crate::http::Route;
use crate::http::finished::Finished;
use crate::http::response::{Progress, Response};
use crate::now::Now;
use crate::queue::Queue;
use crate::system::{self, Waiting};
use profile_core::error::{Error, Result};
use profile_core::formats::otlp::response::{self, Coding};
use profile_core::limits::memory::TryGrow;
use profile_core::message;
use profile_core::retry::Outcome;
use site::{SharedFolder, Site};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};
use watch::Watch;

/// How long a request waits for the helper, which may have to be started.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much longer than the timeout of a request the helper may take.
const GRACE: Duration = Duration::from_secs(2);
/// How often the agent checks for an answer.
const LOOK: Duration = Duration::from_millis(25);
/// The maximum size of an answer without its body, in bytes.
const MOST_HEAD: usize = 64 << 10;

/// How to send, as specified by R.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder that agents and the helper share.
    pub folder: PathBuf,
    /// The start of each request file: how the helper should send the body that follows.
    pub head: Vec<u8>,
    /// The URL without secrets.
    pub shown: String,
    /// The command that starts the helper, and its environment. Each string is terminated by NUL.
    pub command: Vec<u8>,
    pub environment: Vec<u8>,
}

/// Sends requests with the helper.
pub struct Relay {
    head: Vec<u8>,
    shown: String,
    most: usize,
    watch: Watch,
    /// The common prefix of the names of requests.
    name: String,
    count: u64,
    current: Option<Request>,
}

/// The files of a request, which are removed when it is dropped.
struct Request {
    /// The path of the files, without the extension.
    path: PathBuf,
    /// If the helper has not taken the request by then, it is withdrawn.
    take_by: Instant,
    answer_by: Instant,
    /// When to check for an answer again.
    next: Instant,
}

impl Drop for Request {
    fn drop(&mut self) {
        for extension in ["new", "request", "sending", "answer"] {
            let _ = fs::remove_file(self.path.with_extension(extension));
        }
    }
}

impl Request {
    fn write(&self, head: &[u8], body: &[u8]) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let mut file = system::create_private(&new)?;
        file.write_all(head)?;
        file.write_all(body)?;
        fs::rename(new, self.path.with_extension("request"))
    }

    /// The answer, if there is one. At most `most` bytes are read, plus one, so that a longer answer can be detected.
    fn answer(&self, most: usize) -> Result<Option<Vec<u8>>> {
        let path = self.path.with_extension("answer");
        let failed = |source| Error::Open {
            path: path.clone(),
            source,
        };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut file = file.take(most as u64 + 1);
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            match file.read(&mut buffer).map_err(failed)? {
                0 => return Ok(Some(bytes)),
                count => bytes.try_extend(buffer.get(..count).unwrap_or_default())?,
            }
        }
    }

    /// Withdraws the request. Returns `false` if the helper has already taken it.
    fn take_back(&self) -> bool {
        fs::remove_file(self.path.with_extension("request")).is_ok()
    }

    fn hurry(&mut self, deadline: Instant) {
        self.take_by = self.take_by.min(deadline);
        self.answer_by = self.answer_by.min(deadline);
    }
}

impl Relay {
    /// Fails if the folder cannot be used, with the reason.
    pub fn open(settings: Settings, most: usize, now: Now) -> Result<Relay> {
        let mut site = SharedFolder::new(settings.folder, settings.command, settings.environment);
        site.enter()?;
        // Process ids are not unique, since containers may share a folder.
        let random = RandomState::new().hash_one(process::id());
        Ok(Relay {
            watch: Watch::new(Box::new(site), now.instant),
            head: settings.head,
            shown: settings.shown,
            most,
            name: message!("{random:016x}"),
            count: 0,
            current: None,
        })
    }

    fn progress(&mut self, now: Instant) -> Option<Finished> {
        let request = self.current.as_mut()?;
        if now < request.next {
            return None;
        }
        request.next = now + LOOK;
        let most = self.most.saturating_add(MOST_HEAD);
        match request.answer(most) {
            Ok(Some(bytes)) => return Some(self.judge(&bytes)),
            Ok(None) => {}
            // This may be temporary: too many open files, or not enough memory.
            Err(_) if now < request.answer_by => return None,
            Err(_) => return Some(self.end(Outcome::Late, String::new())),
        }
        if now >= request.take_by && request.take_back() {
            let why = match self.watch.is_running() {
                true => message!("the helper process did not take the request"),
                false => message!("the helper process is not running"),
            };
            return Some(self.end(Outcome::NotSent, why));
        }
        if now < request.answer_by {
            return None;
        }
        Some(match self.watch.is_running() {
            true => self.end(Outcome::Late, String::new()),
            false => self.end(Outcome::Closed, message!("the helper process has ended")),
        })
    }

    /// An answer is an HTTP/1 response, or the name of an outcome followed by an explanation on the next line.
    fn judge(&self, bytes: &[u8]) -> Finished {
        if bytes.starts_with(b"HTTP/1.") {
            let mut response = Response::default();
            return match response.add(bytes, self.most) {
                Ok(Progress::Complete) => Finished::answered(&self.shown, &response),
                Ok(Progress::TooLarge) | Err(_) => self.end(Outcome::TooLarge, String::new()),
                Ok(_) => self.end(Outcome::NotHttp, String::new()),
            };
        }
        let mut lines = bytes.splitn(2, |&byte| byte == b'\n');
        let mut line = || lines.next().unwrap_or_default();
        let outcome = std::str::from_utf8(line()).ok().and_then(Outcome::named);
        let why = response::failure(line(), Coding::Text).unwrap_or_default();
        self.end(outcome.unwrap_or(Outcome::Closed), why)
    }

    fn end(&self, outcome: Outcome, message: String) -> Finished {
        Finished::new(&self.shown, outcome, message)
    }
}

impl Route for Relay {
    fn begin(
        &mut self,
        body: &Arc<Vec<u8>>,
        timeout: Duration,
        end: Option<Instant>,
        now: Now,
    ) -> Result<()> {
        let now = now.instant;
        self.watch.look(now)?;
        if !self.watch.is_ready() {
            // The helper is removing the folder.
            let source = io::Error::from(ErrorKind::NotFound);
            let path = self.watch.folder().to_path_buf();
            return Err(Error::Write { path, source });
        }
        self.count += 1;
        let name = message!("{}-{}", self.name, self.count);
        let mut request = Request {
            path: self.watch.folder().join(name),
            take_by: now + PATIENCE,
            answer_by: now + PATIENCE + timeout + GRACE,
            next: now,
        };
        if let Some(end) = end {
            request.hurry(end);
        }
        let written = request.write(&self.head, body);
        written.map_err(|source| Error::Write {
            path: request.path.clone(),
            source,
        })?;
        self.current = Some(request);
        Ok(())
    }

    fn step(&mut self, queue: &Queue, now: Now) -> Option<Finished> {
        if let Err(error) = self.watch.look(now.instant) {
            queue.note(message!("{error}"), now);
        }
        let finished = self.progress(now.instant);
        if finished.is_some() {
            self.current = None;
        }
        finished
    }

    fn waiting(&self) -> Option<Waiting> {
        None
    }

    fn hurry(&mut self, deadline: Instant) {
        if let Some(request) = &mut self.current {
            request.hurry(deadline);
        }
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod tests;
