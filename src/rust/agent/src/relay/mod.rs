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

const WHAT: &str = "a response";
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
                count => bytes.try_extend(buffer.get(..count).unwrap_or_default(), WHAT)?,
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
mod tests {
    use super::*;
    use crate::script::{Helper, Place, Shared, beginning, last_error, seconds};
    use profile_core::retry::Verdict;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const TIMEOUT: f64 = 7.0;

    /// An agent, and the folder of a helper that the test plays.
    struct World {
        relay: Relay,
        helper: Shared<Helper>,
        queue: Queue,
        folder: PathBuf,
        start: Now,
    }

    impl World {
        fn new() -> World {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("profile-relay-{number}-{}", process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir(&folder).unwrap();
            let (start, helper) = (beginning(), Shared::<Helper>::default());
            let place = Place {
                folder: folder.clone(),
                helper: helper.clone(),
            };
            let mut watch = Watch::new(Box::new(place), start.instant);
            watch.chance = || 1.0;
            World {
                relay: Relay {
                    head: b"head ".to_vec(),
                    shown: "https://a".into(),
                    most: 100,
                    watch,
                    name: "name".into(),
                    count: 0,
                    current: None,
                },
                helper,
                queue: Queue::new(100),
                folder,
                start,
            }
        }

        fn begin_at(&mut self, time: f64, end: Option<f64>) -> Result<()> {
            let body = Arc::new(b"body".to_vec());
            let end = end.map(|end| self.start.instant + seconds(end));
            self.relay
                .begin(&body, seconds(TIMEOUT), end, self.start.after(time))
        }

        fn step(&mut self, time: f64) -> Option<Finished> {
            self.relay.step(&self.queue, self.start.after(time))
        }

        fn hurry(&mut self, time: f64) {
            self.relay.hurry(self.start.instant + seconds(time));
        }

        fn path(&self) -> &Path {
            &self.relay.current.as_ref().unwrap().path
        }

        fn take(&self) {
            let extension = |name| self.path().with_extension(name);
            fs::rename(extension("request"), extension("sending")).unwrap();
        }

        fn answer(&self, bytes: &[u8]) {
            fs::write(self.path().with_extension("answer"), bytes).unwrap();
        }

        fn files(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.folder).unwrap();
            let mut names = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect::<Vec<_>>();
            names.sort();
            names
        }
    }

    impl Drop for World {
        fn drop(&mut self) {
            if std::thread::panicking() {
                return;
            }
            self.relay.current = None;
            // Files of requests are removed, however they ended.
            assert_eq!(self.files(), [""; 0]);
            fs::remove_dir(&self.folder).unwrap();
        }
    }

    #[test]
    fn a_request_that_nobody_takes_is_withdrawn() {
        for (is_running, why) in [
            (
                false,
                "No connection to https://a: the helper process is not running",
            ),
            (
                true,
                "No connection to https://a: the helper process did not take the request",
            ),
        ] {
            let mut world = World::new();
            world.helper.borrow_mut().is_running = is_running;
            world.begin_at(0.0, None).unwrap();
            assert_eq!(world.files(), ["name-1.request"]);
            assert_eq!(
                fs::read(world.folder.join("name-1.request")).unwrap(),
                b"head body"
            );
            assert!(world.step(0.0).is_none() && world.step(9.999).is_none());
            assert!(world.relay.waiting().is_none());
            let finished = world.step(10.1).unwrap();
            assert_eq!(finished.outcome, Outcome::NotSent);
            assert_eq!(finished.in_words().unwrap(), why);
            assert_eq!(world.files(), [""; 0]);
            assert!(world.step(100.0).is_none());
            // The next one has another name.
            world.begin_at(100.0, None).unwrap();
            assert_eq!(world.files(), ["name-2.request"]);
        }
    }

    #[test]
    fn a_request_that_was_taken_is_never_sent_again() {
        for (is_running, outcome) in [(true, Outcome::Late), (false, Outcome::Closed)] {
            let mut world = World::new();
            world.helper.borrow_mut().is_running = is_running;
            world.begin_at(0.0, None).unwrap();
            world.take();
            // 10 seconds to take it, the timeout, and 2 seconds more.
            for time in [0.0, 10.0, 18.999] {
                assert!(world.step(time).is_none(), "{time}");
            }
            assert_eq!(world.step(19.1).unwrap().outcome, outcome);
            assert_eq!(world.files(), [""; 0]);
        }
    }

    #[test]
    fn the_end_of_the_agent_is_the_end_of_its_request() {
        // It was not taken.
        let mut world = World::new();
        world.begin_at(0.0, None).unwrap();
        world.hurry(3.0);
        assert!(world.step(2.999).is_none());
        assert_eq!(world.step(3.1).unwrap().outcome, Outcome::NotSent);
        // It was; a later deadline changes nothing.
        world.begin_at(4.0, Some(6.0)).unwrap();
        world.take();
        world.hurry(60.0);
        assert!(world.step(5.9).is_none());
        assert_eq!(world.step(6.0).unwrap().outcome, Outcome::Closed);
        // Nothing is being sent.
        world.hurry(7.0);
        assert!(world.step(8.0).is_none());
    }

    #[test]
    fn there_are_40_looks_for_an_answer_per_second() {
        let mut world = World::new();
        world.begin_at(0.0, None).unwrap();
        world.take();
        assert!(world.step(0.0).is_none());
        world.answer(b"tls\n");
        assert!(world.step(0.024).is_none());
        assert_eq!(world.step(0.025).unwrap().outcome, Outcome::Tls);
    }

    #[test]
    fn answers_are_responses_or_names_of_outcomes() {
        let answered = |answer: &[u8]| {
            let mut world = World::new();
            world.begin_at(0.0, None).unwrap();
            world.take();
            world.answer(answer);
            let finished = world.step(0.0).unwrap();
            assert!(world.step(0.0).is_none());
            finished
        };
        let finished = answered(b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n");
        assert_eq!(finished.outcome.verdict(), Verdict::Accepted);
        assert!(finished.in_words().is_none());
        let finished = answered(b"HTTP/1.1 503 \r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(finished.outcome, Outcome::Status(503));
        assert_eq!(finished.retry_after.as_deref(), Some("7"));
        let finished = answered(b"tls\n100% wrong\x1b");
        assert_eq!(finished.outcome, Outcome::Tls);
        let why = "The TLS connection to https://a failed: 100% wrong";
        assert_eq!(finished.in_words().unwrap(), why);
        for (name, outcome) in [
            ("not_sent", Outcome::NotSent),
            ("closed", Outcome::Closed),
            ("late", Outcome::Late),
            ("other", Outcome::Closed),
        ] {
            assert_eq!(answered(name.as_bytes()).outcome, outcome);
        }
        assert_eq!(answered(b"").outcome, Outcome::Closed);
        assert_eq!(answered(&[b'H'; 100_000]).outcome, Outcome::Closed);
        let cut = b"HTTP/1.1 200 \r\nContent-Length: 101\r\n\r\n";
        assert_eq!(answered(cut).outcome, Outcome::TooLarge);
        let cut = b"HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nabc";
        assert_eq!(answered(cut).outcome, Outcome::NotHttp);
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_waited_for() {
        let mut world = World::new();
        world.begin_at(0.0, None).unwrap();
        world.take();
        let answer = world.path().with_extension("answer");
        fs::create_dir(&answer).unwrap();
        assert!(world.step(1.0).is_none() && world.step(18.9).is_none());
        assert_eq!(world.step(19.0).unwrap().outcome, Outcome::Late);
        fs::remove_dir(&answer).unwrap();
    }

    #[test]
    fn nothing_is_written_to_a_folder_that_is_removed() {
        let mut world = World::new();
        world.helper.borrow_mut().is_closing = true;
        assert!(world.begin_at(0.0, None).is_err());
        // It is looked at again after a second.
        world.helper.borrow_mut().is_closing = false;
        assert!(world.begin_at(0.9, None).is_err());
        world.begin_at(1.0, None).unwrap();
        // A file that is in the way is an error.
        world.relay.current = None;
        fs::write(world.folder.join("name-2.new"), "").unwrap();
        assert!(world.begin_at(2.0, None).is_err());
        assert_eq!(world.files(), [""; 0]);
    }

    #[test]
    fn a_helper_that_cannot_be_started_is_reported() {
        let mut world = World::new();
        world.begin_at(0.0, None).unwrap();
        world.helper.borrow_mut().cannot_start = true;
        assert!(world.step(100.0).is_some());
        assert!(last_error(&world.queue).contains("cannot be started"));
        assert_eq!(world.helper.borrow().starts, 2);
        let error = world.begin_at(200.0, None).unwrap_err();
        assert!(error.to_string().contains("cannot be started"));
    }

    #[test]
    fn a_relay_has_a_private_folder() {
        let folder = std::env::temp_dir().join(format!("profile-relay-{}", process::id()));
        let settings = Settings {
            folder: folder.clone(),
            head: b"head ".to_vec(),
            shown: "https://a".into(),
            command: b"/bin/true\0".to_vec(),
            environment: Vec::new(),
        };
        let now = beginning();
        let mut relay = Relay::open(settings.clone(), 100, now).unwrap();
        let other = Relay::open(settings.clone(), 100, now).unwrap();
        assert_ne!(relay.name, other.name);
        drop(other);
        let body = Arc::new(b"body".to_vec());
        relay.begin(&body, seconds(1.0), None, now).unwrap();
        let path = relay.current.as_ref().unwrap().path.clone();
        assert_eq!(
            fs::read(path.with_extension("request")).unwrap(),
            b"head body"
        );
        assert!(folder.join("lock").exists() && folder.join("log").exists());
        drop(relay);
        assert!(!path.with_extension("request").exists());
        fs::remove_dir_all(&folder).unwrap();
        fs::write(&folder, "").unwrap();
        assert!(Relay::open(settings, 100, now).is_err());
        fs::remove_file(&folder).unwrap();
    }
}
