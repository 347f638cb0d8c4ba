//! The samples of a process: when there is one, its time, and how its stack was read.

use crate::fake::Space;
use crate::fake::module::Hash;
use crate::fake::process::{At, FakeR, HEAP, On, STACK_END};
use crate::fake::recording::{MS, Recording, WHOLE, process, settings};
use profile_core::analysis::label_frames::OUTER_CALLS;
use profile_core::model::{Profile, StringId};
use profile_reader::recorded::result::Tick;
use profile_reader::recorded::scheduled::Scheduled;
use profile_reader::recorded::settings::Clock;
use profile_reader::recorded::states::{State, WhyFree};
use profile_reader::stack::frames::Cut;
use profile_reader::stack::frames::MOST_CALLS;
use profile_runtime::contexts::{CALL, CLOENV, CLOSURE, Layout};
use std::ops::Range;

#[test]
fn a_sample_has_the_time_at_which_the_process_was_held() {
    let mut recording = Recording::new(Clock::Wall);
    recording.thread.takes.set([5, 7]);
    for _ in 0..2 {
        recording.pass(10, 10);
        assert_eq!(recording.tick(), WHOLE);
    }
    let date = |milliseconds: i64| (1_000_000_000 + milliseconds) * MS as i64;
    let times = [(0, date(10 + 5)), (1, date(10 + 5 + 7 + 10 + 5))];
    assert_eq!(recording.profile.samples.times, times);
    assert_eq!(recording.times(), [(10.0, 10.0); 2]);
}

#[test]
fn what_the_thread_has_done_since_the_last_tick_is_known() {
    let mut recording = Recording::new(Clock::Cpu);
    let mut since = |numbers: Option<[u64; 3]>| {
        let scheduled = numbers.map(|[computed, delayed, slices]| Scheduled {
            computed,
            delayed,
            slices,
        });
        recording.thread.scheduled.set(scheduled);
        recording.pass(10, 0);
        recording.tick();
        let since = recording.session.since_last();
        since.map(|since| (since.computed, since.delayed, since.was_scheduled))
    };
    assert_eq!(since(Some([100, 5, 1])), None);
    assert_eq!(since(Some([100, 5, 1])), Some((0, 0, false)));
    assert_eq!(since(Some([120, 9, 2])), Some((20, 4, true)));
    assert_eq!(since(None), None);
    recording.session.skip_gap();
    recording.pass(10, 0);
    recording.tick();
    assert_eq!(recording.session.since_last(), None);
}

#[test]
fn a_process_ends_once_and_was_recorded_until_then() {
    let mut recording = Recording::new(Clock::Wall);
    recording.pass(10, 0);
    assert_eq!(recording.tick(), WHOLE);
    recording.thread.state.set(None);
    recording.pass(10, 0);
    assert!(!recording.session.has_ended());
    assert_eq!(recording.tick(), Tick::Ended);
    assert_eq!(recording.tick(), Tick::Idle);
    assert!(recording.session.has_ended());
    recording.pass(1000, 0);
    recording.finish();
    assert_eq!(recording.profile.sources[0].duration, Some(10 * MS as i64));
    // It was where it computes, but has used no CPU time: a nanosecond.
    assert_eq!(recording.times(), [(1e-6, 10.0)]);
}

#[test]
fn the_recording_ends_if_the_process_executes_another_program() {
    let mut recording = Recording::new(Clock::Cpu);
    recording.pass(10, 10);
    assert_eq!(recording.tick(), WHOLE);
    // While it executes the program, it has an address space where nothing is.
    recording.memory.change(|space| *space = Space::default());
    assert_eq!(recording.tick(), Tick::Unread);
    // This is noticed in any state, even if all is still readable.
    for state in [State::Running, State::Sleeping] {
        let mut recording = Recording::new(Clock::Cpu);
        recording.pass(10, 10);
        assert_eq!(recording.tick(), WHOLE);
        recording.thread.state.set(Some(state));
        recording.thread.has_left.set(true);
        assert_eq!(recording.tick(), Tick::Left);
        assert!(recording.session.has_ended());
        assert_eq!(recording.tick(), Tick::Idle);
    }
}

#[test]
fn a_stack_without_its_outer_calls_is_marked() {
    let mut r = FakeR::with(Layout::R_4_4, Hash::Gnu, MOST_CALLS as u64 + 10);
    let f = r.call_of("f");
    for _ in 0..=MOST_CALLS {
        r.enter(f, At::Nowhere);
    }
    let mut recording = Recording::of(&r, settings(Clock::Wall));
    recording.pass(10, 0);
    let cut = Tick::Taken {
        cut: Some(Cut::TooDeep),
        free: None,
    };
    assert_eq!(recording.tick(), cut);
    let stack = &recording.stacks()[0];
    assert_eq!(stack.len(), MOST_CALLS + 1);
    assert_eq!(stack[MOST_CALLS], OUTER_CALLS);
}

#[test]
fn different_deep_stacks_take_limited_memory() {
    let depth = 50_000;
    let mut r = FakeR::with(Layout::R_4_2, Hash::Gnu, depth + 10);
    let f = r.call_of("f");
    let others = (0..400).map(|number| r.call_of(&format!("f{number}")));
    let others: Vec<_> = others.collect();
    for _ in 0..depth {
        r.enter(f, At::Nowhere);
    }
    let inner = r.head;
    let mut recording = Recording::of(&r, settings(Clock::Wall));
    let mut tick = |number: usize| {
        recording
            .memory
            .change(|space| space.set(inner + CALL, others[number]));
        recording.pass(10, 0);
        recording.tick()
    };
    let full = Tick::Taken {
        cut: Some(Cut::Full),
        free: None,
    };
    // A stack takes 200,000 bytes.
    let whole = (64 << 20) / 200_000 + 1;
    for number in 0..400 {
        let expected = if number < whole { WHOLE } else { full };
        assert_eq!(tick(number), expected, "{number}");
    }
    // It is there already.
    assert_eq!(tick(7), WHOLE);
    assert_eq!(tick(398), full);
    let Profile {
        stacks, samples, ..
    } = &recording.profile;
    assert!(stacks.bytes() < (64 << 20) + 2_000_000);
    assert_eq!(stacks.len(), 400);
    let size = |sample: usize| stacks.get(samples.stack[sample]).len();
    assert_eq!([0, 399, 400, 401].map(size), [50_000, 1001, 50_000, 1001]);
}

#[test]
fn a_stack_that_changes_all_the_time_is_read_only_if_the_process_is_held() {
    let r = process();
    let mut recording = Recording::of(&r, settings(Clock::Wall));
    let inner = r.head;
    recording.memory.before_read(move |space, reads| {
        space.set(inner + CLOENV, HEAP + 64 * (reads % 1000));
    });
    recording.thread.free.set(Some(WhyFree::Unwanted));
    for _ in 0..20 {
        assert_eq!(recording.tick(), Tick::Unread);
    }
    recording.thread.free.set(None);
    assert_eq!(recording.tick(), WHOLE);
}

#[test]
fn a_process_that_wakes_up_meanwhile_is_stopped() {
    let mut recording = Recording::new(Clock::Wall);
    recording.thread.state.set(Some(State::Sleeping));
    recording.thread.wakes.set(1);
    assert_eq!(recording.tick(), WHOLE);
    let held = recording.thread.held.take();
    assert_eq!(held, [State::Sleeping, State::Running]);
    recording.thread.wakes.set(0);
    assert_eq!(recording.tick(), WHOLE);
    assert_eq!(recording.thread.held.take(), [State::Sleeping]);
    // The state is the one that it was in at the tick.
    assert_eq!(recording.states(), ["sleeping"; 2]);
}

#[test]
fn why_a_process_was_not_held_is_told_unless_that_was_not_wanted() {
    let mut recording = Recording::new(Clock::Wall);
    for (why, told) in [
        (WhyFree::Unwanted, None),
        (WhyFree::Traced, Some(WhyFree::Traced)),
        (WhyFree::Late, Some(WhyFree::Late)),
    ] {
        recording.thread.free.set(Some(why));
        let taken = Tick::Taken {
            cut: None,
            free: told,
        };
        assert_eq!(recording.tick(), taken);
    }
    assert_eq!(recording.stacks(), [["inner", "outer"]; 3]);
}

#[test]
fn functions_have_the_package_that_the_process_knows() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (one, other, global) = (r.namespace("one"), r.namespace("other"), r.global);
    let call = r.call_of("f");
    for environment in [one, other, one, global] {
        let closure = r.closure(environment);
        r.record(On::C, CLOSURE, call, closure, At::Nowhere);
    }
    r.enter(call, At::Nowhere);
    let mut recording = Recording::of(&r, settings(Clock::Wall));
    recording.pass(10, 10);
    assert_eq!(recording.tick(), WHOLE);
    let profile = &recording.profile;
    let text = |text: Option<StringId>| text.map(|text| profile.strings.get(text));
    let functions = profile.functions.iter();
    let each: Vec<_> = functions
        .map(|function| (text(function.package), text(function.package_from)))
        .collect();
    let process = Some("process");
    assert_eq!(
        each,
        [
            (None, None),
            (None, process),
            (Some("one"), process),
            (Some("other"), process)
        ]
    );
    assert_eq!(recording.stacks(), [["f"; 5]]);
}

/// A process whose R runs `outer()` and `inner()` in another thread than the first one. Returns the stack of this thread.
fn in_thread() -> (FakeR, Range<u64>) {
    let mut r = FakeR::new(Layout::R_4_4);
    let stack = r.change_thread();
    for name in ["outer", "inner"] {
        let call = r.call_of(name);
        r.enter(call, At::Nowhere);
    }
    (r, stack)
}

const FIRST: Range<u64> = STACK_END - (1 << 21)..STACK_END;

#[test]
fn r_may_run_in_another_thread() {
    let (r, stack) = in_thread();
    let mut recording = Recording::of(&r, settings(Clock::Cpu));
    recording.thread.has_others.set(true);
    recording.thread.stacks.replace(vec![FIRST, stack]);
    recording.pass(10, 10);
    // The stack of the thread is known since the process was opened.
    assert_eq!(recording.tick(), WHOLE);
    assert_eq!(recording.stacks(), [["inner", "outer"]]);
}

#[test]
fn r_is_followed_to_another_thread_while_the_first_one_sleeps() {
    let mut recording = Recording::new(Clock::Cpu);
    let (r, stack) = in_thread();
    recording.pass(10, 10);
    assert_eq!(recording.tick(), WHOLE);
    // The first thread waits, and R runs in another one, which has used CPU time before.
    recording.memory.change(|space| *space = r.space.clone());
    recording.thread.has_others.set(true);
    recording.thread.stacks.replace(vec![FIRST, stack]);
    recording.pass(10, 10_000);
    assert_eq!(recording.tick(), WHOLE);
    assert_eq!(recording.thread.current.get(), 1);
    recording.pass(10, 10);
    assert_eq!(recording.tick(), WHOLE);
    assert_eq!(recording.stacks(), [["inner", "outer"]; 3]);
    recording.finish();
    let clock = recording.attribute("profile.cpu.clock").unwrap();
    // Of the time until R was found there, only what is possible counts.
    let longest = (10 + 10 + 20 + 10) * MS;
    assert!(clock.parse::<u64>().unwrap() <= longest, "{clock}");
}

#[test]
fn samples_of_a_thread_that_is_not_found_are_unread() {
    let (r, _) = in_thread();
    for clock in [Clock::Cpu, Clock::Wall] {
        let mut recording = Recording::new(clock);
        recording.memory.change(|space| *space = r.space.clone());
        recording.thread.has_others.set(true);
        recording.thread.stacks.replace(vec![FIRST]);
        // The first thread sleeps.
        recording.thread.state.set(Some(State::Sleeping));
        recording.pass(10, 0);
        assert_eq!(recording.tick(), Tick::Unread);
        let why = recording.session.why_missing().unwrap();
        assert_eq!(why, "the thread that runs R was not found");
    }
}

#[test]
fn the_only_thread_is_followed_if_its_stack_is_not_where_it_was_expected() {
    let mut recording = Recording::new(Clock::Cpu);
    // As in a fork by another thread than the one that ran R when the parent was looked at.
    let (r, stack) = in_thread();
    recording.memory.change(|space| *space = r.space.clone());
    recording.thread.stacks.replace(vec![stack]);
    recording.pass(10, 10);
    assert_eq!(recording.tick(), Tick::Unread);
    for _ in 0..2 {
        recording.pass(10, 10);
        assert_eq!(recording.tick(), WHOLE);
    }
    assert_eq!(recording.stacks(), [["inner", "outer"]; 2]);
}

#[test]
fn a_process_with_a_single_thread_is_not_searched() {
    let mut recording = Recording::new(Clock::Cpu);
    recording.thread.state.set(Some(State::Sleeping));
    for _ in 0..3 {
        let before = recording.memory.reads();
        recording.pass(10, 0);
        assert_eq!(recording.tick(), Tick::Idle);
        assert_eq!(recording.memory.reads(), before);
    }
}
