use super::*;
use crate::heap::snapshot::Heap;
use crate::heap::wrong::Wrong;
use crate::process::{Entry, Scripted};
use crate::recorded::memory::Cause;
use profile_core::model::StringId;
use std::cell::Cell;
use std::fs;

const MB: u64 = 1 << 20;
const PID: i32 = 7;

struct World {
    system: Scripted,
    now: Cell<Duration>,
    watcher: Watcher,
}

/// A process of 100 MB, of which each snapshot takes so many milliseconds, or fails.
fn world(name: &str, mut pause: impl FnMut(u64) -> Result<u64> + Send + 'static) -> World {
    let system = Scripted::new(name);
    system.add(&Entry {
        pid: PID,
        started: 1,
        command: "R",
        ..Entry::default()
    });
    uses(&system, 100, 100);
    let mut number = 0;
    let take = move |_: Stop<'_>| {
        number += 1;
        let pause = Duration::from_millis(pause(number)?);
        let mut profile = Profile::default();
        profile.add_source(Source::default())?;
        // So that the last one is known.
        let snapshot = Snapshot {
            profile,
            heap: Heap::default(),
            wrong: Wrong::default(),
        };
        Ok((snapshot, pause))
    };
    World {
        watcher: Watcher::new(Process::find(PID).unwrap(), Box::new(take)).unwrap(),
        system,
        now: Cell::default(),
    }
}

fn uses(system: &Scripted, resident: u64, highest: u64) {
    let (resident, highest) = (resident * 1024, highest * 1024);
    let text = format!("VmHWM: {highest} kB\nVmRSS: {resident} kB\n");
    fs::write(system.path().join("7/status"), text).unwrap();
}

impl World {
    /// Steps with this memory, 20 ms after the last step. Returns whether there is a new snapshot.
    fn step(&mut self, resident: u64, highest: u64) -> bool {
        uses(&self.system, resident, highest);
        let before = self.watcher.so_far.snapshots;
        self.now.set(self.now.get() + EVERY);
        let now = &self.now;
        assert!(self.watcher.step(&|| now.get()).unwrap());
        self.watcher.so_far.snapshots > before
    }

    fn ends(&mut self, exit_code: i32) {
        let (before, after) = ("0 ".repeat(18), "0 ".repeat(29));
        let line = format!("{PID} (R) Z {before}1 {after}{exit_code}");
        fs::write(self.system.path().join("7/stat"), line).unwrap();
        self.now.set(self.now.get() + EVERY);
        let now = &self.now;
        assert!(!self.watcher.step(&|| now.get()).unwrap());
    }
}

impl World {
    fn finish(self) -> Peak {
        let now = self.now.get();
        self.watcher.finish(&|| now).unwrap()
    }
}

/// The attributes of the source.
fn about(profile: &Profile) -> Vec<(&str, &str)> {
    let text = |id: StringId| profile.strings.get(id);
    let attributes = profile.sources[0].attributes.iter();
    let pairs = attributes.map(|one| (text(one.key), text(one.value.text)));
    pairs.collect()
}

#[test]
fn a_snapshot_is_taken_at_each_new_maximum() {
    let mut world = world("peak", |_| Ok(10));
    let steps = [
        (100, true),
        (105, false),
        (60, false),
        (111, true),
        (121, false),
        (123, true),
    ];
    for (resident, is_taken) in steps {
        assert_eq!(world.step(resident, 200), is_taken, "{resident}");
    }
    let so_far = world.watcher.so_far;
    assert_eq!(
        (so_far.resident, so_far.taken, so_far.snapshots),
        (123 * MB, 123 * MB, 3)
    );
    // The kernel knows what it had used before the first reading, and a peak between two readings.
    assert_eq!(so_far.highest, 200 * MB);
    assert!(!world.step(110, 250));
    world.ends(0);
    let peak = world.finish();
    let highest = (250 * MB).to_string();
    let expected = [
        ("profile.memory.peak", highest.as_str()),
        ("profile.memory.snapshots", "3"),
    ];
    assert_eq!(about(&peak.snapshot.unwrap()), expected);
    assert_eq!((peak.ending, peak.error.is_none()), (None, true));
}

#[test]
fn the_process_stands_still_for_a_share_of_the_time() {
    let mut world = world("peak-share", |_| Ok(400));
    let mut taken = Vec::new();
    for step in 1_u64..=600 {
        if world.step(100 * step, 100 * step) {
            taken.push(step);
        }
    }
    // Two of them at once, and then one in four seconds.
    assert_eq!(taken, [1, 2, 100, 300, 500]);
}

#[test]
fn the_last_snapshot_remains_when_the_process_is_killed() {
    let mut world = world("peak-killed", |_| Ok(10));
    world.step(100, 100);
    world.step(300, 300);
    world.ends(9);
    let peak = world.finish();
    assert_eq!(
        peak.ending.map(|ending| ending.cause),
        Some(Cause::Signal(9))
    );
    let snapshot = peak.snapshot.unwrap();
    assert!(about(&snapshot).contains(&("profile.process.end", "signal 9")));
    assert_eq!(peak.so_far.taken, 300 * MB);
}

#[test]
fn a_snapshot_that_fails_leaves_the_last_one() {
    let mut world = world("peak-failed", |number| match number {
        2 => Err(Error::Process("not now".into())),
        _ => Ok(10),
    });
    assert!(world.step(100, 100));
    assert!(!world.step(200, 200));
    assert!(world.watcher.error.is_some());
    assert_eq!(world.watcher.so_far.taken, 100 * MB);
    // It is tried again at the next reading.
    assert!(world.step(200, 200));
    assert!(world.watcher.error.is_none());
}

#[test]
fn the_first_snapshot_has_to_succeed() {
    let mut world = world("peak-none", |_| Err(Error::Process("never".into())));
    let why = world
        .watcher
        .first(&|| Duration::ZERO)
        .unwrap_err()
        .to_string();
    assert!(why.contains("never"), "{why}");
    let mut world = self::world("peak-first", |_| Ok(10));
    world.watcher.first(&|| Duration::ZERO).unwrap();
    assert_eq!(world.watcher.so_far.taken, 100 * MB);
    let mut world = self::world("peak-gone", |_| Ok(10));
    world.system.remove(PID);
    let why = world
        .watcher
        .first(&|| Duration::ZERO)
        .unwrap_err()
        .to_string();
    assert!(why.contains("There is no process 7"), "{why}");
}

#[test]
fn an_end_just_before_the_watch_ends_is_noted() {
    let mut world = world("peak-end", |_| Ok(10));
    world.step(100, 100);
    let line = format!("{PID} (R) Z {}1 {}9", "0 ".repeat(18), "0 ".repeat(29));
    fs::write(world.system.path().join("7/stat"), line).unwrap();
    let peak = world.finish();
    assert_eq!(
        peak.ending.map(|ending| ending.cause),
        Some(Cause::Signal(9))
    );
}

#[test]
fn no_memory_for_a_snapshot_ends_the_watch() {
    let mut world = world("peak-memory", |_| Err(Error::Interrupted));
    assert!(world.watcher.step(&|| Duration::ZERO).is_err());
}
