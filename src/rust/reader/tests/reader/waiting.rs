//! What samples of the real time wait for.

use crate::fake::process::{At, FakeR};
use crate::fake::recording::{COMPUTES, MS, Recording, WHOLE, settings};
use profile_reader::process::computing::{Evidence, SystemCall};
use profile_reader::recorded::scheduled::Scheduled;
use profile_reader::recorded::settings::Clock;
use profile_reader::recorded::states::{State, WhyFree};
use profile_reader::recorded::waits::{Wait, WaitKind};
use profile_runtime::contexts::Layout;

/// A process in a function, and its thread as the kernel counts it.
struct World {
    recording: Recording,
    scheduled: Scheduled,
}

impl World {
    fn new(functions: &[&str], clock: Clock) -> World {
        let mut r = FakeR::new(Layout::R_4_4);
        for name in functions {
            let call = r.call_of(name);
            r.enter(call, At::Nowhere);
        }
        let recording = Recording::of(&r, settings(clock));
        let mut world = World {
            recording,
            scheduled: Scheduled {
                computed: 0,
                delayed: 0,
                slices: 1,
            },
        };
        world.set(State::Sleeping, Some(Wait::of(WaitKind::Network)));
        world
    }

    fn set(&mut self, state: State, wait: Option<Wait>) {
        let thread = &self.recording.thread;
        thread.state.set(Some(state));
        *thread.wait.borrow_mut() = wait;
    }

    /// What is known about it, if it runs.
    fn runs(&mut self, call: SystemCall, on_processor: Option<bool>) {
        self.set(State::Running, None);
        let evidence = Evidence { call, on_processor };
        self.recording.thread.evidence.set(evidence);
    }

    /// A tick, since which the thread computed and waited for so many milliseconds, and got so many time slices.
    fn tick(&mut self, computed: u64, delayed: u64, slices: u64) {
        self.scheduled.computed += computed * MS;
        self.scheduled.delayed += delayed * MS;
        self.scheduled.slices += slices;
        self.recording.thread.scheduled.set(Some(self.scheduled));
        self.recording.pass(10, computed);
        assert_eq!(self.recording.tick(), WHOLE);
    }

    /// How often the state was read, the thread was to be held, and it was asked what it waits for.
    fn reads(&self) -> (usize, u32) {
        let thread = &self.recording.thread;
        (thread.held.borrow().len(), thread.waits.get())
    }

    /// The values of a label, by sample.
    fn labels(&self, key: &str) -> Vec<&str> {
        let profile = &self.recording.profile;
        let text = |id| profile.strings.get(id);
        let mut values = vec![""; profile.samples.len()];
        for label in profile.labels.iter().filter(|label| text(label.key) == key) {
            assert_eq!(values[label.sample], "");
            values[label.sample] = text(label.str.unwrap());
        }
        values
    }

    fn waits(&self) -> Vec<&str> {
        self.labels("waits_for")
    }
}

fn named(kind: WaitKind, name: &str) -> Option<Wait> {
    Some(Wait {
        name: Some(name.to_owned()),
        ..Wait::of(kind)
    })
}

#[test]
fn the_same_wait_is_read_once() {
    let mut world = World::new(&["f"], Clock::Wall);
    world.set(State::Sleeping, named(WaitKind::Network, "127.0.0.1:5432"));
    world.tick(0, 0, 0);
    assert_eq!(world.reads(), (1, 1));
    for _ in 0..3 {
        world.tick(0, 0, 0);
    }
    assert_eq!(world.reads(), (1, 1));
    // It was given a processor, and waits for something else.
    world.set(State::WaitsForDevice, named(WaitKind::File, "shop.sqlite"));
    world.tick(0, 0, 1);
    world.tick(0, 0, 0);
    assert_eq!(world.reads(), (2, 2));
    let expected = ["network", "network", "network", "network", "file", "file"];
    assert_eq!(world.waits(), expected);
    assert_eq!(
        world.labels("waits_for.name")[3..5],
        ["127.0.0.1:5432", "shop.sqlite"]
    );
    assert_eq!(world.recording.stacks(), [["f"]; 6]);
    assert_eq!(world.recording.times(), [(0.0, 10.0); 6]);
    // Its time goes on.
    let times = &world.recording.profile.samples.times;
    assert!(
        times
            .windows(2)
            .all(|two| two[1].1 - two[0].1 == 10 * MS as i64)
    );
}

#[test]
fn a_wait_is_read_again_if_it_may_be_another_one() {
    let mut world = World::new(&["f"], Clock::Wall);
    // The kernel does not count.
    for _ in 0..2 {
        world.recording.pass(10, 0);
        world.recording.tick();
    }
    assert_eq!(world.reads(), (2, 2));
    // What happened in a gap is unknown.
    world.tick(0, 0, 0);
    world.recording.session.skip_gap();
    world.tick(0, 0, 0);
    assert_eq!(world.reads(), (4, 4));
    world.tick(0, 0, 0);
    assert_eq!(world.reads(), (4, 4));
    // In the next profile it is the same wait, with its own stack.
    let (session, profile) = (&mut world.recording.session, &mut world.recording.profile);
    *profile = profile_core::model::Profile::default();
    session
        .continue_in(&settings(Clock::Wall), profile)
        .unwrap();
    world.tick(0, 0, 0);
    assert_eq!(world.waits(), ["network"]);
    assert_eq!(world.recording.stacks(), [["f"]]);
}

#[test]
fn functions_of_r_decide_first() {
    for (functions, kind) in [
        (&["f", "Sys.sleep"][..], "sleep"),
        (&["run_now", "execCallbacks", ".Call"], "idle"),
        (&["Sys.sleep", "f"], "network"),
    ] {
        let mut world = World::new(functions, Clock::Wall);
        world.tick(0, 0, 0);
        world.tick(0, 0, 0);
        assert_eq!(world.waits(), [kind; 2]);
    }
}

#[test]
fn what_cannot_be_seen_is_unknown() {
    let mut world = World::new(&["f"], Clock::Wall);
    // It has just been woken.
    world.set(State::Sleeping, None);
    world.tick(0, 0, 1);
    // A debugger has stopped it.
    world.set(State::Stopped, named(WaitKind::Network, "x"));
    world.tick(0, 0, 1);
    world.tick(0, 0, 0);
    assert_eq!(world.waits(), ["unknown"; 3]);
    assert_eq!(world.reads().1, 1);
    world.recording.thread.is_wait_refused.set(true);
    world.recording.finish();
    assert_eq!(
        world.recording.attribute("profile.waits.refused"),
        Some("1")
    );
}

#[test]
fn samples_of_cpu_time_have_no_waits() {
    let mut world = World::new(&["f"], Clock::Cpu);
    world.runs(SystemCall::None, Some(true));
    world.tick(10, 3, 1);
    world.runs(SystemCall::None, Some(false));
    world.tick(0, 0, 0);
    world.tick(1, 4, 1);
    assert_eq!(world.waits(), [""; 3]);
    assert_eq!(world.reads().1, 0);
    // But a sum of what they waited for a processor.
    world.recording.finish();
    assert_eq!(
        world.recording.attribute("profile.cpu.delay"),
        Some("4000000")
    );
    assert_eq!(world.recording.attribute("profile.waits.refused"), None);
}

#[test]
fn a_thread_that_could_run_waits_for_a_processor() {
    let mut world = World::new(&["f"], Clock::Wall);
    world.recording.thread.evidence.set(COMPUTES);
    world.set(State::Running, None);
    world.tick(10, 0, 0);
    // It was woken in a system call, or lost its processor.
    world.runs(SystemCall::Waits, Some(false));
    world.tick(0, 0, 1);
    world.runs(SystemCall::Waits, None);
    world.tick(0, 0, 1);
    world.runs(SystemCall::None, Some(false));
    world.tick(0, 0, 0);
    assert_eq!(world.waits(), ["", "processor", "processor", "processor"]);
    assert_eq!(
        world.recording.states(),
        ["running", "sleeping", "sleeping", "running"]
    );
}

#[test]
fn ticks_that_were_missed_until_it_had_a_processor_count() {
    let mut world = World::new(&["f"], Clock::Wall);
    world.runs(SystemCall::None, Some(false));
    world.recording.thread.takes.set([57, 0]);
    world.tick(0, 0, 0);
    // Not if it computed.
    world.runs(SystemCall::None, Some(true));
    world.tick(10, 0, 1);
    assert_eq!(world.waits(), ["processor", ""]);
    assert_eq!(world.recording.times(), [(10.0, 60.0), (10.0, 10.0)]);
}

#[test]
fn the_kernel_says_later_whether_it_waited_for_a_processor() {
    // It cannot be stopped, so that it is unknown at the tick.
    let mut world = World::new(&["f"], Clock::Wall);
    world.recording.thread.free.set(Some(WhyFree::Unwanted));
    world.runs(SystemCall::Unknown, None);
    let (computed, delayed) = (6, 30);
    world.tick(10, 0, 1);
    // These three do not run.
    for _ in 0..3 {
        world.tick(0, 0, 0);
    }
    assert_eq!(world.waits(), [""; 4]);
    // The wait has ended, which began 6 ms before the first of them.
    world.tick(computed, delayed, 1);
    // It goes on.
    world.tick(10, 0, 0);
    world.tick(9, 1, 1);
    let expected = ["", "processor", "processor", "processor", "", "", ""];
    assert_eq!(world.waits(), expected);
    // A wait that began later, and none at all.
    world.tick(0, 0, 0);
    world.tick(2, 4, 1);
    world.tick(0, 0, 0);
    world.tick(0, 0, 3);
    assert_eq!(world.waits()[7..], [""; 4]);
}

#[test]
fn a_futex_is_for_threads_if_others_compute() {
    let mut world = World::new(&["f"], Clock::Wall);
    let futex = Wait {
        is_for_threads: true,
        ..Wait::of(WaitKind::Lock)
    };
    world.set(State::Sleeping, Some(futex));
    // No other thread.
    world.recording.thread.others.set(Some(0));
    world.tick(0, 0, 0);
    world.recording.thread.has_others.set(true);
    let mut others = 0;
    for (used, expected) in [
        (5 * MS, "lock"),
        (0, "lock"),
        (5 * MS, "threads"),
        (MS / 20, "lock"),
        (MS, "threads"),
    ] {
        others += used;
        world.recording.thread.others.set(Some(others));
        world.tick(0, 0, 0);
        assert_eq!(world.waits().last(), Some(&expected), "{used}");
    }
    assert_eq!(world.reads(), (1, 1));
    // A new wait, while they compute and while they do not.
    for (used, expected) in [(MS / 100, "threads"), (0, "lock")] {
        world.recording.thread.others_use.set(used);
        world.tick(0, 0, 1);
        assert_eq!(world.waits().last(), Some(&expected), "{used}");
    }
    // They have ended.
    world.recording.thread.has_others.set(false);
    world.tick(0, 0, 0);
    assert_eq!(world.waits().last(), Some(&"lock"));
}
