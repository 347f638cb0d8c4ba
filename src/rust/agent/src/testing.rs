//! What the tests of this crate share: a clock that they move, spools in temporary folders, and sessions that do what a
//! test says.

use crate::counts::Counts;
use crate::figures::Figures;
use crate::now::Now;
use crate::session::Session;
use crate::sink::{Encoder, To};
use crate::spool::Spool;
use crate::state::{State, Store};
use profile_core::error::{Error, Result};
use profile_core::formats::{self, Input, otlp};
use profile_core::io::input::Origin;
use profile_core::limits::memory::TryGrow;
use profile_core::model::Profile;
use profile_reader::recorded::result::Tick;
use profile_reader::recorded::settings::Clock;
use profile_reader::recorded::source::declare_types;
use profile_reader::recorded::source::{TYPES, own_source};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
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

    /// So many seconds later, if the system was suspended for all of them.
    pub fn after_suspend(self, time: f64) -> Now {
        Now {
            boot: self.boot + seconds(time),
            date: self.date + seconds(time),
            ..self
        }
    }
}

// ---- The spool -----------------------------------------------------------------

/// A path that no other test uses, at which nothing is.
pub fn temporary() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    std::env::temp_dir().join(format!("profile-test-{process}-{number}"))
}

/// A folder that is removed with its parent at the end of a test.
pub struct Folder(PathBuf);

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0.parent().unwrap());
    }
}

/// A state with a spool of at most so many bytes, in a new folder.
pub fn spooled(limit: usize) -> (State, Folder) {
    let folder = Folder(temporary().join("spool"));
    (again(&folder, limit), folder)
}

/// Another agent with the same folder.
pub fn again(folder: &Path, limit: usize) -> State {
    State::new(Store::Spool(
        Spool::open(folder.to_path_buf(), limit).unwrap(),
    ))
}

/// The counts, after a check that each sample is counted once.
pub fn checked(state: &State) -> Counts {
    let counts = state.counts();
    let sum = counts.open + counts.waiting.samples + counts.moves.sent + counts.dropped();
    assert_eq!(counts.taken + counts.moves.found, sum, "{counts:?}");
    counts
}

/// Adds a chunk of so many samples that consists of this byte.
pub fn add_chunk(state: &State, samples: u64, byte: u8, now: Now) {
    for _ in 0..samples {
        state.took(false);
    }
    state.add(Ok(vec![byte; 10]), now);
}

/// The last error.
pub fn last_error(state: &State) -> String {
    checked(state).last_error.unwrap_or_default().0
}

/// The names of the files in a folder except the lock, in order.
pub fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "lock")
        .collect::<Vec<_>>();
    names.sort();
    names
}

/// Does what a forwarder does with a file of a chunk.
pub fn rename(folder: &Path, file: &str, extension: &str) {
    let (chunk, _) = file.split_once('.').unwrap();
    let new = folder.join(format!("{chunk}.{extension}"));
    fs::rename(folder.join(file), new).unwrap();
}

pub fn scan(state: &State, now: Now) {
    state.spool(now, |spool| spool.scan());
}

/// The profile in the oldest chunk, which is sent.
pub fn next_profile(state: &State, folder: &Path, now: Now) -> Option<Profile> {
    let file = files(folder).into_iter().next()?;
    let bytes = fs::read(folder.join(&file)).unwrap();
    let input = Input::Bytes(&bytes);
    let read = formats::read(input, Some(&otlp::FORMAT), Origin::default(), &|| false);
    let (profile, problems) = read.unwrap();
    assert!(problems.is_empty());
    let type_ = profile.sources[0].default_type.as_deref().unwrap();
    assert!(sum(&profile, type_) > 0.0);
    assert_eq!(profile.sources[0].profile_id.as_ref().unwrap().len(), 32);
    rename(folder, &file, "sent");
    scan(state, now);
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

/// Encodes chunks for the spool. The process takes 5 bytes, and nothing is known of its R.
pub fn encoder() -> Encoder {
    let figures = Figures::new(Box::new(|| None), || Some(5));
    Encoder::new(&To::Spool(PathBuf::new(), 0, None), Vec::new(), figures)
}

// ---- A session of the reader -----------------------------------------------------

pub const TAKEN: Tick = Tick::Taken {
    cut: None,
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
    /// Whether waits cannot be seen.
    pub is_wait_refused: bool,
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

    fn is_wait_refused(&self) -> bool {
        self.0.borrow().is_wait_refused
    }

    fn continue_in(&mut self, profile: &mut Profile) -> Result<()> {
        self.0.borrow_mut().begin("continue", profile)
    }

    fn reopen(&mut self, profile: &mut Profile) -> Result<()> {
        self.0.borrow_mut().begin("reopen", profile)
    }

    fn skip_gap(&mut self) {
        self.0.borrow_mut().calls.push("skip");
    }

    fn finish_at(&mut self, end: Instant, _: &mut Profile) -> Result<()> {
        self.0.borrow_mut().ends.push(end);
        Ok(())
    }
}
