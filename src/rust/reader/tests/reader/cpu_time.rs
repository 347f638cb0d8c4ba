//! The CPU time of samples, for ticks that a script gives: what the process does at each of them, and its CPU clock.
//!
//! The expected values follow from the rule that a tick stands for one interval if the process computes at it, and from
//! the factor by which their sum equals the CPU clock.

use crate::fake::process::{At, FakeR, variable};
use crate::fake::recording::{MS, Recording, WHOLE, now, process, settings};
use profile_core::model::Profile;
use profile_reader::process::computing::{Evidence, SystemCall};
use profile_reader::recorded::result::Tick;
use profile_reader::recorded::settings::Clock;
use profile_reader::recorded::states::{State, WhyFree};
use profile_runtime::contexts::Layout;
use std::collections::BTreeMap;

/// What the process does at a tick.
#[derive(Clone, Copy)]
enum Does {
    /// It is on a processor.
    Computes,
    /// It has lost its processor while it computed.
    IsPreempted,
    /// It is on a processor, in a system call.
    Writes,
    Sleeps,
    /// It was woken and waits for a processor.
    Wakes,
    WaitsForDisk,
}
use Does::*;

impl Does {
    fn state(self) -> State {
        match self {
            Computes | IsPreempted | Writes | Wakes => State::Running,
            Sleeps => State::Sleeping,
            WaitsForDisk => State::WaitsForDevice,
        }
    }

    fn evidence(self) -> Evidence {
        let (call, on_processor) = match self {
            Computes => (SystemCall::None, Some(true)),
            IsPreempted => (SystemCall::None, Some(false)),
            Writes => (SystemCall::Works, None),
            Sleeps | Wakes | WaitsForDisk => (SystemCall::Waits, Some(false)),
        };
        Evidence { call, on_processor }
    }
}

/// A service that is in `wait()`, `a()` or `b()`.
struct Service {
    recording: Recording,
    records: BTreeMap<&'static str, u64>,
}

impl Service {
    fn new(clock: Clock) -> Service {
        let mut r = FakeR::new(Layout::R_4_4);
        let call = r.call_of("serve");
        let serve = r.enter(call, At::Nowhere);
        let mut records = BTreeMap::new();
        for name in ["wait", "a", "b"] {
            r.head = serve;
            let call = r.call_of(name);
            records.insert(name, r.enter(call, At::Nowhere));
        }
        let recording = Recording::of(&r, settings(clock));
        Service { recording, records }
    }

    /// A tick after so many milliseconds of real time and of CPU time.
    fn tick(&mut self, time: u64, cpu: u64, does: Does, function: &str) -> Tick {
        let record = self.records[function];
        let head = variable("R_GlobalContext");
        self.recording
            .memory
            .change(|space| space.set(head, record));
        self.recording.thread.state.set(Some(does.state()));
        self.recording.thread.evidence.set(does.evidence());
        self.recording.pass(time, cpu);
        self.recording.tick()
    }

    /// Ends the recording. The number of samples of each function, and their CPU time and real time in milliseconds.
    fn table(&mut self) -> BTreeMap<String, (usize, f64, f64)> {
        self.recording.finish();
        let mut table = BTreeMap::new();
        let stacks = self.recording.stacks();
        for (stack, (cpu, wall)) in stacks.into_iter().zip(self.recording.times()) {
            assert_eq!(stack.last(), Some(&"serve"));
            let row: &mut (usize, f64, f64) = table.entry(stack[0].to_owned()).or_default();
            *row = (row.0 + 1, row.1 + cpu, row.2 + wall);
        }
        table
    }

    /// The ticks, the clock in milliseconds, the factor, and the time that no tick met.
    fn balance(&self) -> (u64, u64, f64, Option<u64>) {
        let number = |key| self.recording.attribute(key)?.parse().ok();
        (
            number("profile.cpu.ticks").unwrap(),
            number("profile.cpu.clock").unwrap() / MS,
            self.recording
                .attribute("profile.cpu.factor")
                .unwrap()
                .parse()
                .unwrap(),
            number("profile.cpu.missed").map(|missed| missed / MS),
        )
    }
}

fn table<const N: usize>(
    rows: [(&str, (usize, f64, f64)); N],
) -> BTreeMap<String, (usize, f64, f64)> {
    rows.map(|(name, row)| (name.to_owned(), row)).into()
}

#[test]
fn a_service_that_waits_has_the_time_of_its_work() {
    // Each request takes 2 ms, then it waits for 8 ms: every fifth tick meets the work.
    let script = |service: &mut Service| {
        for round in 0..20 {
            let (does, function) = if round % 5 == 0 {
                (Computes, "a")
            } else {
                (Sleeps, "wait")
            };
            service.tick(10, 2, does, function);
        }
    };
    let mut service = Service::new(Clock::Cpu);
    script(&mut service);
    assert_eq!(service.table(), table([("a", (4, 40.0, 40.0))]));
    assert_eq!(service.balance(), (4, 40, 1.0, None));
    assert_eq!(service.recording.states(), ["running"; 4]);
    let mut service = Service::new(Clock::Wall);
    script(&mut service);
    let expected = table([("a", (4, 40.0, 40.0)), ("wait", (16, 0.0, 160.0))]);
    assert_eq!(service.table(), expected);
    assert_eq!(service.recording.states()[..2], ["running", "sleeping"]);
}

#[test]
fn a_busy_service_has_the_time_of_each_tick() {
    let mut service = Service::new(Clock::Cpu);
    for round in 0..30 {
        let function = if round % 3 == 0 { "a" } else { "b" };
        assert_eq!(service.tick(10, 10, Computes, function), WHOLE);
    }
    let expected = table([("a", (10, 100.0, 100.0)), ("b", (20, 200.0, 200.0))]);
    assert_eq!(service.table(), expected);
    assert_eq!(service.balance(), (30, 300, 1.0, None));
}

#[test]
fn a_mixture_has_the_sum_of_the_clock_and_the_shares_of_ticks() {
    let mut service = Service::new(Clock::Wall);
    for (cpu, does, function) in [
        (9, Computes, "a"),
        (3, Sleeps, "wait"),
        (0, WaitsForDisk, "a"),
        (12, Computes, "b"),
        (10, Writes, "b"),
        (0, Sleeps, "wait"),
        (11, Computes, "b"),
        (15, Sleeps, "wait"),
    ] {
        assert_eq!(service.tick(10, cpu, does, function), WHOLE);
    }
    // Four ticks for 60 ms of CPU time.
    let expected = table([
        ("a", (2, 15.0, 20.0)),
        ("b", (3, 45.0, 30.0)),
        ("wait", (3, 0.0, 30.0)),
    ]);
    assert_eq!(service.table(), expected);
    assert_eq!(service.balance(), (4, 60, 1.5, None));
}

#[test]
fn waiting_for_a_processor_counts_only_if_it_was_lost_while_computing() {
    let script = |service: &mut Service| {
        for (cpu, does, function) in [
            (10, Computes, "a"),
            (0, IsPreempted, "a"),
            (0, IsPreempted, "b"),
            (2, Wakes, "wait"),
            (0, Wakes, "wait"),
            (18, Computes, "b"),
        ] {
            service.tick(10, cpu, does, function);
        }
    };
    let mut service = Service::new(Clock::Cpu);
    script(&mut service);
    let expected = table([("a", (2, 15.0, 20.0)), ("b", (2, 15.0, 20.0))]);
    assert_eq!(service.table(), expected);
    // It was running by its state, and held to find out where it was.
    assert_eq!(service.recording.thread.held.borrow().len(), 6);
    let mut service = Service::new(Clock::Wall);
    script(&mut service);
    assert_eq!(service.table()["wait"], (2, 0.0, 20.0));
    assert_eq!(service.recording.states()[3..5], ["sleeping"; 2]);
}

#[test]
fn a_thread_that_is_not_held_computes_as_its_state_says() {
    let mut service = Service::new(Clock::Cpu);
    service.recording.thread.free.set(Some(WhyFree::Unwanted));
    service.tick(10, 4, Computes, "a");
    service.recording.thread.evidence.set(Evidence {
        call: SystemCall::Unknown,
        on_processor: None,
    });
    service.recording.pass(10, 4);
    assert_eq!(service.recording.tick(), WHOLE);
    // It has no processor, which is known of a thread of this process.
    service.recording.thread.evidence.set(Evidence {
        call: SystemCall::Unknown,
        on_processor: Some(false),
    });
    assert_eq!(service.recording.tick(), Tick::Idle);
    assert_eq!(service.table(), table([("a", (2, 8.0, 20.0))]));
}

#[test]
fn time_that_no_tick_met_is_a_count() {
    let mut service = Service::new(Clock::Wall);
    for _ in 0..10 {
        service.tick(10, 1, Sleeps, "wait");
    }
    assert_eq!(service.table(), table([("wait", (10, 0.0, 100.0))]));
    assert_eq!(service.balance(), (0, 10, 1.0, Some(10)));
}

#[test]
fn a_stack_that_cannot_be_read_moves_no_time() {
    for clock in [Clock::Cpu, Clock::Wall] {
        let mut service = Service::new(clock);
        service.tick(10, 10, Computes, "a");
        let head = variable("R_GlobalContext");
        let set_head = |service: &mut Service, address| {
            let memory = &service.recording.memory;
            memory.change(|space| {
                let before = space.word(head);
                space.set(head, address);
                before
            })
        };
        let before = set_head(&mut service, 7);
        service.recording.pass(10, 10);
        assert_eq!(service.recording.tick(), Tick::Unread);
        set_head(&mut service, before);
        service.tick(10, 10, Computes, "b");
        // Both stand for more CPU time, and for no more real time.
        let expected = table([("a", (1, 15.0, 10.0)), ("b", (1, 15.0, 10.0))]);
        assert_eq!(service.table(), expected);
    }
}

#[test]
fn a_clock_that_jumps_is_not_believed() {
    let mut service = Service::new(Clock::Cpu);
    service.tick(10, 10, Computes, "a");
    service.tick(10, 60_000, Computes, "b");
    // It is set back.
    service.recording.thread.cpu.set(Some(1));
    service.tick(10, 0, Computes, "b");
    service.tick(10, 10, Computes, "a");
    assert_eq!(service.balance_after_end(), (4, 10 + 30 + 10));
}

#[test]
fn ticks_that_were_missed_move_no_time() {
    // The recorder did not run for a second.
    let mut service = Service::new(Clock::Wall);
    service.tick(10, 10, Computes, "a");
    service.tick(1000, 990, Sleeps, "wait");
    service.tick(10, 0, Sleeps, "wait");
    let expected = table([("a", (1, 1000.0, 10.0)), ("wait", (2, 0.0, 20.0))]);
    assert_eq!(service.table(), expected);
}

#[test]
fn without_a_clock_a_tick_stands_for_an_interval() {
    let mut service = Service::new(Clock::Cpu);
    service.recording.thread.cpu.set(None);
    for _ in 0..3 {
        service.tick(10, 0, Computes, "a");
    }
    // The clock was known when the recording began.
    assert_eq!(service.table(), table([("a", (3, 30.0, 30.0))]));
}

impl Service {
    fn balance_after_end(&mut self) -> (u64, u64) {
        self.recording.finish();
        let (ticks, clock, ..) = self.balance();
        (ticks, clock)
    }

    /// Ends a part of a recording that continues.
    fn next_part(&mut self) -> Profile {
        let recording = &mut self.recording;
        let end = now().time;
        recording
            .session
            .finish_at(end, &mut recording.profile)
            .unwrap();
        let part = std::mem::take(&mut recording.profile);
        let (session, profile) = (&mut recording.session, &mut recording.profile);
        session
            .continue_at(end, &recording.settings, profile)
            .unwrap();
        part
    }
}

#[test]
fn rare_work_beside_frequent_checks_keeps_its_share() {
    // In each part of 15 s there is a check of 5 ms, which every second tick meets. In every fourth part there are 3 s of
    // other work.
    let mut service = Service::new(Clock::Cpu);
    let (mut check, mut work, mut parts) = (0.0, 0.0, 0);
    for part in 0..40 {
        if part % 4 == 0 {
            for _ in 0..300 {
                service.tick(10, 10, Computes, "b");
            }
        }
        let (does, function) = if part % 2 == 0 {
            (Computes, "a")
        } else {
            (Sleeps, "wait")
        };
        service.tick(10, 5, does, function);
        let profile = service.next_part();
        parts += usize::from(!profile.samples.is_empty());
        let values: Vec<_> = profile.values[0]
            .column
            .iter()
            .map(|value| value / MS as f64)
            .collect();
        // The check is the last sample of its part.
        if let Some((last, others)) = values.split_last() {
            check += last;
            work += others.iter().sum::<f64>();
        }
    }
    assert_eq!(parts, 20);
    // The truth is 200 ms of checks and 30,000 ms of work.
    assert!((199.0..202.0).contains(&check), "{check}");
    assert!((29_900.0..30_100.0).contains(&work), "{work}");
}

#[test]
fn parts_without_samples_are_counted_in_the_next_one_that_is_kept() {
    let mut service = Service::new(Clock::Cpu);
    for _ in 0..2 {
        service.tick(10, 5, Sleeps, "wait");
        assert!(service.next_part().samples.is_empty());
    }
    service.tick(10, 5, Computes, "a");
    assert_eq!(service.table(), table([("a", (1, 15.0, 10.0))]));
    assert_eq!(service.balance(), (1, 5, 1.5, Some(10)));
}

#[test]
fn what_happens_in_a_gap_is_no_part_of_the_recording() {
    let mut service = Service::new(Clock::Cpu);
    service.tick(10, 10, Computes, "a");
    service.recording.pass(60_000, 2000);
    service.recording.session.skip_gap();
    service.tick(10, 10, Computes, "b");
    let expected = table([("a", (1, 10.0, 10.0)), ("b", (1, 10.0, 10.0))]);
    assert_eq!(service.table(), expected);
    assert_eq!(service.balance(), (2, 20, 1.0, None));
}

#[test]
fn a_part_has_its_own_duration_and_types() {
    let mut recording = Recording::of(&process(), settings(Clock::Wall));
    for (time, cpu) in [(10, 3), (20, 4)] {
        recording.pass(time, cpu);
        assert_eq!(recording.tick(), WHOLE);
        let mut service = Service {
            recording,
            records: BTreeMap::new(),
        };
        let part = service.next_part();
        assert_eq!(part.sources[0].duration, Some((time * MS) as i64));
        assert_eq!(part.sources[0].types.len(), 2);
        recording = service.recording;
    }
}

#[test]
fn a_fork_has_used_cpu_time_before_it_was_found() {
    let begin = now().time;
    let mut recording = Recording::new(Clock::Cpu);
    recording.thread.cpu.set(Some(0));
    recording.pass(30, 30);
    recording.session.include_start(begin);
    recording.pass(10, 10);
    recording.tick();
    recording.finish();
    assert_eq!(recording.times(), [(40.0, 10.0)]);
}
