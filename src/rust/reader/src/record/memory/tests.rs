use super::group::{JUST_NOW, RECENTLY};
use super::*;
use crate::process::{Entry, Scripted};
use profile_core::model::{Profile, Source};
use std::cell::Cell;
use std::fs;

const MB: u64 = 1 << 20;

/// A system that tests describe, and a watch of its processes.
struct World {
    system: Scripted,
    watch: MemoryWatch,
    profile: Profile,
    now: Cell<Duration>,
}

impl World {
    fn new(name: &str) -> World {
        let system = Scripted::new(name);
        let world = World {
            system,
            watch: MemoryWatch::default(),
            profile: Profile::default(),
            now: Cell::default(),
        };
        let folder = world.system.path().join("fs");
        let folder = folder.display();
        let mount = format!("35 31 0:32 / {folder} rw - cgroup2 cgroup2 rw\n");
        world.write("self/mountinfo", &mount);
        world.machine(0, 1000);
        world
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.system.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// The number of kills on the machine, and what of 1000 MB is available.
    fn machine(&self, kills: u64, available: u64) {
        self.write("vmstat", &format!("oom_kill {kills}\n"));
        let (all, available) = (1000 * 1024, available * 1024);
        self.write(
            "meminfo",
            &format!("MemTotal: {all} kB\nMemAvailable: {available} kB\n"),
        );
    }

    /// The control group in which all processes are; sizes are in MB.
    fn group(&self, limit: u64, used: u64, highest: u64, kills: u64) {
        for (name, number) in [("max", limit), ("current", used), ("peak", highest)] {
            self.write(
                &format!("fs/job/memory.{name}"),
                &format!("{}\n", number * MB),
            );
        }
        self.write(
            "fs/job/memory.events",
            &format!("oom 0\noom_kill {kills}\n"),
        );
    }

    /// Adds a process to the watch. Returns its source.
    fn add(&mut self, pid: i32, memory: (u64, u64, u64)) -> SourceId {
        self.system.add(&Entry {
            pid,
            started: 1,
            command: "R",
            ..Entry::default()
        });
        self.write(&format!("{pid}/cgroup"), "0::/job\n");
        self.uses(pid, memory);
        let source = self.profile.add_source(Source::default()).unwrap();
        self.watch
            .add(&Process::find(pid).unwrap(), source)
            .unwrap();
        source
    }

    /// What a process has mapped, the highest that this was, and its share, in MB.
    fn uses(&self, pid: i32, (resident, highest, share): (u64, u64, u64)) {
        let (resident, highest) = (resident * 1024, highest * 1024);
        self.write(
            &format!("{pid}/status"),
            &format!("VmHWM: {highest} kB\nVmRSS: {resident} kB\n"),
        );
        self.write(
            &format!("{pid}/smaps_rollup"),
            &format!("Pss: {} kB\n", share * 1024),
        );
    }

    fn look(&mut self) {
        self.look_after(SYSTEM);
    }

    fn look_after(&mut self, time: Duration) {
        self.now.set(self.now.get() + time);
        let now = &self.now;
        self.watch.look(&|| now.get());
    }

    /// The process ends like this, and nobody has asked for it.
    fn ends(&mut self, pid: i32, source: SourceId, exit_code: i32) -> Option<Ending> {
        let (before, after) = ("0 ".repeat(18), "0 ".repeat(29));
        let line = format!("{pid} (R) Z {before}1 {after}{exit_code}");
        self.write(&format!("{pid}/stat"), &line);
        self.write(&format!("{pid}/status"), "State: Z (zombie)\n");
        assert!(self.watch.has_ended(source));
        self.watch.end(source, self.now.get());
        assert!(!self.watch.has_ended(source));
        self.ending(source)
    }

    fn ending(&self, source: SourceId) -> Option<Ending> {
        let mut processes = self.watch.processes();
        processes.find(|one| one.source == source)?.ending
    }

    fn peaks(&self) -> Vec<u64> {
        self.watch.processes().map(|one| one.peak / MB).collect()
    }
}

fn cause(ending: Option<Ending>) -> Option<Cause> {
    ending.map(|ending| ending.cause)
}

#[test]
fn the_peak_is_the_highest_during_the_recording() {
    let mut world = World::new("peaks");
    world.add(1, (100, 500, 100));
    world.add(2, (100, 110, 100));
    assert_eq!(world.peaks(), [100, 100]);
    world.uses(1, (200, 500, 200));
    world.uses(2, (120, 300, 120));
    world.look();
    // The first one was higher before; of the second one, the kernel knows what it used between two readings.
    assert_eq!(world.peaks(), [200, 300]);
    world.uses(1, (90, 501, 90));
    world.look();
    assert_eq!(world.peaks(), [501, 300]);
    // It has ended, and is not noticed yet.
    fs::remove_file(world.system.path().join("1/status")).unwrap();
    world.look();
    assert_eq!(world.peaks(), [501, 300]);
}

#[test]
fn what_processes_share_counts_once_for_all_together() {
    let mut world = World::new("together");
    world.add(1, (100, 100, 100));
    world.look();
    assert_eq!(world.watch.together(), None);
    let fork = world.add(2, (100, 100, 55));
    world.uses(1, (100, 100, 55));
    world.look();
    let together = |bytes, processes| {
        Some(Together {
            bytes: bytes * MB,
            processes,
        })
    };
    assert_eq!(world.watch.together(), together(110, 2));
    // The sum has grown by two percent only, then by more.
    world.uses(1, (104, 104, 59));
    world.look();
    assert_eq!(world.watch.together(), together(110, 2));
    world.uses(1, (105, 105, 60));
    world.look();
    assert_eq!(world.watch.together(), together(115, 2));
    // A higher sum of which more is shared.
    world.uses(1, (200, 200, 50));
    world.look();
    assert_eq!(world.watch.together(), together(115, 2));
    // Only those count that are there at the same moment.
    world.watch.end(fork, world.now.get());
    world.uses(1, (900, 900, 900));
    world.look();
    assert_eq!(world.watch.together(), together(115, 2));
}

#[test]
fn all_together_are_unknown_if_one_of_them_is() {
    let mut world = World::new("together-unknown");
    world.add(1, (100, 100, 100));
    world.add(2, (100, 100, 100));
    fs::remove_file(world.system.path().join("2/smaps_rollup")).unwrap();
    world.look();
    assert_eq!(world.watch.together(), None);
}

#[test]
fn measurements_of_all_together_take_a_small_share_of_the_time() {
    let mut world = World::new("together-time");
    world.add(1, (100, 100, 100));
    world.add(2, (100, 100, 100));
    let mut measured = Vec::new();
    for size in 1..200 {
        world.uses(1, (100 * size, 100 * size, 100 * size));
        // Each takes 10 ms.
        let (begin, calls) = (Duration::from_millis(20 * size), Cell::new(0));
        world.watch.look(&|| {
            calls.set(calls.get() + 1);
            begin + Duration::from_millis(10) * (calls.get() - 1)
        });
        if calls.get() > 1 {
            measured.push(size);
        }
    }
    // After a fifth of a second, and the measurement.
    assert_eq!(measured[..4], [1, 12, 23, 34]);
}

#[test]
fn many_processes_are_read_less_often() {
    let mut world = World::new("many-peaks");
    for pid in 1..=32 {
        world.add(pid, (1, 1, 1));
    }
    world.look_after(EVERY);
    world.uses(1, (9, 9, 9));
    world.look_after(EVERY);
    world.look_after(EVERY);
    assert_eq!(world.peaks()[0], 1);
    world.look_after(EVERY);
    assert_eq!(world.peaks()[0], 9);
}

#[test]
fn a_kill_for_memory_is_one_that_the_kernel_has_counted_in_the_group() {
    let mut world = World::new("killed");
    // Four processes were killed before.
    world.group(500, 100, 200, 4);
    let sources = [1, 2, 3].map(|pid| world.add(pid, (100, 100, 100)));
    world.group(500, 490, 499, 4);
    world.look();
    world.group(500, 490, 499, 5);
    world.machine(1, 900);
    let ending = world.ends(1, sources[0], 9);
    let expected = Ending {
        cause: Cause::Killed,
        limit: Some(500 * MB),
        used: Some(490 * MB),
        available: None,
    };
    assert_eq!(ending, Some(expected));
    assert!(expected.is_for_memory());
    // That kill explains one process only.
    world.group(500, 100, 499, 5);
    world.look();
    let ending = world.ends(2, sources[1], 9).unwrap();
    assert_eq!((ending.cause, ending.used), (Cause::Signal(9), None));
    assert!(!ending.is_for_memory());
    assert_eq!(
        cause(world.ends(3, sources[2], 139)),
        Some(Cause::Signal(11))
    );
    let expected = OfGroup {
        limit: Some(500 * MB),
        peak: Some(499 * MB),
        kills: 1,
    };
    assert_eq!(world.watch.of_group(), expected);
}

#[test]
fn signal_9_without_a_count_is_only_that() {
    let mut world = World::new("signal");
    let sources = [1, 2, 3].map(|pid| world.add(pid, (100, 100, 100)));
    assert_eq!(cause(world.ends(1, sources[0], 9)), Some(Cause::Signal(9)));
    // Little memory is a fact, and no more.
    world.machine(0, 49);
    world.look();
    let ending = world.ends(2, sources[1], 9).unwrap();
    assert_eq!(
        (ending.cause, ending.available),
        (Cause::Signal(9), Some(49 * MB))
    );
    assert!(ending.is_for_memory());
    // The kernel has killed some process of the machine.
    world.machine(1, 800);
    world.look();
    let ending = world.ends(3, sources[2], 9).unwrap();
    assert_eq!(
        (ending.cause, ending.available),
        (Cause::KilledOnMachine, None)
    );
    assert_eq!(world.watch.of_group(), OfGroup::default());
}

#[test]
fn a_kill_long_ago_explains_nothing() {
    let mut world = World::new("long-ago");
    world.group(500, 100, 200, 0);
    let sources = [1, 2].map(|pid| world.add(pid, (100, 100, 100)));
    world.look();
    world.group(500, 100, 200, 1);
    world.machine(1, 900);
    world.look();
    world.now.set(world.now.get() + RECENTLY);
    assert_eq!(cause(world.ends(1, sources[0], 9)), Some(Cause::Killed));
    world.group(500, 100, 200, 2);
    world.machine(2, 900);
    world.look();
    world.now.set(world.now.get() + RECENTLY + EVERY);
    assert_eq!(cause(world.ends(2, sources[1], 9)), Some(Cause::Signal(9)));
}

#[test]
fn an_end_that_is_unknown_is_explained_by_a_kill_at_the_same_time() {
    let mut world = World::new("unknown-end");
    world.group(500, 100, 200, 0);
    let sources = [1, 2, 3].map(|pid| world.add(pid, (100, 100, 100)));
    world.look();
    let ends_unseen = |world: &mut World, at: usize| {
        let pid = at as i32 + 1;
        world.system.remove(pid);
        world.watch.end(sources[at], world.now.get());
        cause(world.ending(sources[at]))
    };
    assert_eq!(ends_unseen(&mut world, 0), None);
    world.group(500, 100, 499, 1);
    world.look();
    assert_eq!(ends_unseen(&mut world, 1), Some(Cause::KilledInGroup));
    // Long ago.
    world.group(500, 100, 499, 2);
    world.look();
    world.now.set(world.now.get() + JUST_NOW);
    world.look();
    assert_eq!(ends_unseen(&mut world, 2), None);
    assert_eq!(world.watch.of_group().kills, 2);
}

#[test]
fn usual_ends_are_not_mentioned() {
    let mut world = World::new("usual-end");
    world.group(500, 490, 490, 0);
    let sources = [1, 2, 3].map(|pid| world.add(pid, (100, 100, 100)));
    world.look();
    world.group(500, 490, 490, 1);
    assert_eq!(world.ends(1, sources[0], 256), None);
    // It executes another program.
    world.watch.leave(sources[1]);
    assert_eq!(world.ending(sources[1]), None);
    assert_eq!(world.peaks(), [100, 100, 100]);
    // It is not known, so nothing happens.
    world.watch.end(sources[1], world.now.get());
    assert_eq!(world.ending(sources[1]), None);
}
