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
