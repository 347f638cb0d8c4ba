//! The samples of a process: when there is one, its CPU time, its real time, and its state. The clock, the CPU time and
//! the state are those that the test sets.

use crate::fake::FakeMemory;
use crate::fake::module::Hash;
use crate::fake::process::{At, FakeR, HEAP};
use profile_core::analysis::label_frames::OUTER_CALLS;
use profile_core::model::Profile;
use profile_reader::moment::Moment;
use profile_reader::process::{Activity, Held, Placement, Process, State, WhyFree};
use profile_reader::reading::Watched;
use profile_reader::samples::declare_types;
use profile_reader::session::{Session, Tick};
use profile_reader::settings::{Clock, Settings};
use profile_runtime::contexts::{CLOENV, Layout};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::{Duration, Instant, UNIX_EPOCH};

const MS: u64 = 1_000_000;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

thread_local! {
    /// The time that has passed in the test of this thread.
    static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn now() -> Moment {
    let passed = PASSED.get();
    Moment {
        time: *START + passed,
        date: UNIX_EPOCH + Duration::from_secs(1_000_000) + passed,
    }
}

/// Lets time pass, in milliseconds.
fn pass(time: u64) {
    PASSED.set(PASSED.get() + Duration::from_millis(time));
}

const WHOLE: Tick = Tick::Taken {
    is_cut: false,
    free: None,
};

fn settings(clock: Clock) -> Settings {
    Settings {
        interval: Duration::from_millis(10),
        duration: Duration::MAX,
        clock,
        children: false,
        pause: true,
        native: false,
        own: false,
    }
}

/// A thread with this CPU time and state. Counts how often it was asked for its state.
#[derive(Clone)]
struct FakeThread {
    cpu: Rc<Cell<Option<u64>>>,
    state: Rc<Cell<Option<State>>>,
    looks: Rc<Cell<u32>>,
    /// The states in which it was to be held.
    held: Rc<RefCell<Vec<State>>>,
    /// Why it cannot be held.
    free: Rc<Cell<Option<WhyFree>>>,
    /// The number of times that it wakes up before it is held in vain.
    wakes: Rc<Cell<u32>>,
    /// How long it takes to hold it, and to let it go on, in milliseconds.
    takes: Rc<Cell<[u64; 2]>>,
}

impl Watched for FakeThread {
    fn cpu_time(&self) -> Option<u64> {
        self.cpu.get()
    }

    fn activity(&self) -> Option<Activity> {
        self.looks.set(self.looks.get() + 1);
        let state = self.state.get()?;
        // No processor has this number.
        let processor = usize::MAX;
        Some(Activity { state, processor })
    }

    fn hold(&mut self, state: State) -> Held {
        self.held.borrow_mut().push(state);
        pass(self.takes.get()[0]);
        match self.free.get() {
            Some(why) => Held::Free(why),
            None => Held::Asleep(1),
        }
    }

    fn is_still(&self, held: &Held) -> bool {
        assert!(matches!(held, Held::Asleep(1)));
        pass(self.takes.get()[1]);
        let wakes = self.wakes.get();
        self.wakes.set(wakes.saturating_sub(1));
        wakes == 0
    }
}

/// A recording, whose clock shows the time that has passed in the test.
struct Recording {
    settings: Settings,
    session: Session<'static, FakeMemory, FakeThread>,
    memory: FakeMemory,
    thread: FakeThread,
    profile: Profile,
}

impl Recording {
    fn of(r: &FakeR, settings: Settings) -> Recording {
        let (memory, mut reader) = r.reader();
        // Nothing is freed.
        reader.shortest_collection = Duration::MAX;
        reader.set_clock(now);
        let thread = FakeThread {
            cpu: Rc::new(Cell::new(Some(500 * MS))),
            state: Rc::new(Cell::new(Some(State::Running))),
            looks: Rc::default(),
            held: Rc::default(),
            free: Rc::default(),
            wakes: Rc::default(),
            takes: Rc::default(),
        };
        let mut profile = Profile::default();
        declare_types(&mut profile).unwrap();
        let start = now().time;
        let process = Process::find(std::process::id() as i32).unwrap();
        let watched = thread.clone();
        let session = Session::of(&process, watched, reader, &settings, &mut profile, start);
        Recording {
            settings,
            session: session.unwrap(),
            memory,
            thread,
            profile,
        }
    }

    fn new(clock: Clock) -> Recording {
        Recording::of(&process(), settings(clock))
    }

    /// Lets time pass, in milliseconds, of which the process uses some.
    fn pass(&mut self, real: u64, cpu: u64) {
        pass(real);
        let before = self.thread.cpu.get();
        self.thread.cpu.set(before.map(|before| before + cpu * MS));
    }

    fn tick(&mut self) -> Tick {
        // It does not matter which thread runs this.
        let placement = Placement::of_this_thread();
        let (session, profile) = (&mut self.session, &mut self.profile);
        let mut natives = Vec::new();
        let tick = session.tick(&self.settings, profile, &mut natives, &placement);
        assert!(natives.is_empty());
        tick.unwrap()
    }

    /// The CPU time and the real time of the samples, in milliseconds.
    fn times(&self) -> Vec<(f64, f64)> {
        let values = |column: usize| {
            let values = &self.profile.values[column].column;
            values.iter().map(|value| value / MS as f64)
        };
        values(0).zip(values(1)).collect()
    }

    fn states(&self) -> Vec<&str> {
        let labels = self.profile.labels.iter();
        let state = |text| self.profile.strings.get(text);
        labels.map(|label| state(label.str.unwrap())).collect()
    }

    /// The functions of each sample, innermost first.
    fn stacks(&self) -> Vec<Vec<&str>> {
        let profile = &self.profile;
        let name = |location| {
            let function = profile.locations.get(location).function.unwrap();
            profile.strings.get(profile.functions.get(function).name)
        };
        let mut stacks = Vec::new();
        for &stack in &profile.samples.stack {
            let mut locations = Vec::new();
            profile.stacks.get(stack).append_to(&mut locations).unwrap();
            stacks.push(locations.into_iter().map(name).collect());
        }
        stacks
    }
}

/// A process in `inner()`, which `outer()` has called.
fn process() -> FakeR {
    let mut r = FakeR::new(Layout::R_4_4);
    for name in ["outer", "inner"] {
        let call = r.call_of(name);
        r.enter(call, At::Nowhere);
    }
    r
}

#[test]
fn a_sample_has_the_time_since_the_last_one() {
    let mut recording = Recording::new(Clock::Cpu);
    for (real, cpu) in [(10, 10), (12, 3), (9, 1)] {
        recording.pass(real, cpu);
        assert_eq!(recording.tick(), WHOLE);
    }
    assert_eq!(recording.times(), [(10.0, 10.0), (3.0, 12.0), (1.0, 9.0)]);
    assert_eq!(recording.stacks(), [["inner", "outer"]; 3]);
    assert_eq!(recording.states(), ["running"; 3]);
    let date = |milliseconds: i64| (1_000_000_000 + milliseconds) * MS as i64;
    let times = [(0, date(10)), (1, date(22)), (2, date(31))];
    assert_eq!(recording.profile.samples.times, times);
}

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
    assert_eq!(recording.times(), [(10.0, 15.0), (10.0, 22.0)]);
}

#[test]
fn without_cpu_time_there_is_no_sample_and_idle_time_is_left_out() {
    let mut recording = Recording::new(Clock::Cpu);
    recording.pass(10, 0);
    assert_eq!(recording.tick(), Tick::Idle);
    assert_eq!(recording.tick(), Tick::Idle);
    recording.pass(15, 4);
    assert_eq!(recording.tick(), WHOLE);
    recording.pass(5, 0);
    // A clock that was set back.
    recording.thread.cpu.set(Some(1));
    assert_eq!(recording.tick(), Tick::Idle);
    assert_eq!(recording.times(), [(4.0, 15.0)]);
    // Nobody was asked for the state of an idle process.
    assert_eq!(recording.thread.looks.get(), 1);
}

#[test]
fn by_the_clock_there_is_always_a_sample() {
    let mut recording = Recording::new(Clock::Wall);
    let states = [
        State::Sleeping,
        State::Waiting,
        State::Stopped,
        State::Other('?'),
    ];
    for state in states {
        recording.thread.state.set(Some(state));
        recording.pass(10, 0);
        assert_eq!(recording.tick(), WHOLE);
    }
    recording.pass(10, 2);
    assert_eq!(recording.tick(), WHOLE);
    let times = [
        (0.0, 10.0),
        (0.0, 10.0),
        (0.0, 10.0),
        (0.0, 10.0),
        (2.0, 10.0),
    ];
    assert_eq!(recording.times(), times);
    let states = ["sleeping", "waiting", "stopped", "other", "other"];
    assert_eq!(recording.states(), states);
}

#[test]
fn the_time_of_a_stack_that_cannot_be_read_counts_for_the_next_one() {
    for clock in [Clock::Cpu, Clock::Wall] {
        let mut recording = Recording::new(clock);
        let regions = recording
            .memory
            .change(|space| std::mem::take(&mut space.regions));
        recording.pass(10, 7);
        assert_eq!(recording.tick(), Tick::Unread);
        recording.memory.change(|space| space.regions = regions);
        recording.pass(11, 5);
        assert_eq!(recording.tick(), WHOLE);
        assert_eq!(recording.times(), [(12.0, 21.0)]);
    }
}

#[test]
fn skipped_time_is_no_real_time_of_the_next_sample_but_cpu_time_is() {
    let mut recording = Recording::new(Clock::Cpu);
    recording.pass(100, 6);
    recording.session.skip_time_until(now().time);
    recording.pass(8, 1);
    assert_eq!(recording.tick(), WHOLE);
    // The real time is at least the CPU time.
    recording.pass(100, 20);
    recording.session.skip_time_until(now().time);
    recording.pass(8, 1);
    assert_eq!(recording.tick(), WHOLE);
    assert_eq!(recording.times(), [(7.0, 8.0), (21.0, 21.0)]);
}

#[test]
fn an_unknown_cpu_time_is_missing() {
    for clock in [Clock::Cpu, Clock::Wall] {
        let mut recording = Recording::new(clock);
        recording.thread.cpu.set(None);
        recording.pass(10, 0);
        assert_eq!(recording.tick(), WHOLE);
        recording.thread.cpu.set(Some(900 * MS));
        recording.pass(10, 1);
        assert_eq!(recording.tick(), WHOLE);
        recording.pass(10, 1);
        assert_eq!(recording.tick(), WHOLE);
        let times = recording.times();
        assert!(times[0].0.is_nan() && times[1].0.is_nan());
        assert_eq!(times[2], (1.0, 10.0));
        assert!(times.iter().all(|times| times.1 == 10.0));
    }
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
    recording.session.finish(&mut recording.profile).unwrap();
    assert_eq!(recording.profile.sources[0].duration, Some(10 * MS as i64));
    assert_eq!(recording.times(), [(0.0, 10.0)]);
}

#[test]
fn a_process_that_records_itself_has_no_state_and_is_seldom_looked_at() {
    let own = Settings {
        own: true,
        ..settings(Clock::Cpu)
    };
    let mut recording = Recording::of(&process(), own);
    for _ in 0..64 {
        recording.pass(10, 10);
        assert_eq!(recording.tick(), WHOLE);
    }
    assert!(recording.states().is_empty());
    assert_eq!(recording.thread.looks.get(), 4);
    recording.thread.state.set(None);
    let ends = (1..100).find(|_| {
        recording.pass(10, 10);
        recording.tick() == Tick::Ended
    });
    assert_eq!(ends, Some(16));
    // By the clock, it may be in any state.
    let mut recording = Recording::of(
        &process(),
        Settings {
            clock: Clock::Wall,
            ..recording.settings
        },
    );
    for _ in 0..3 {
        recording.pass(10, 10);
        assert_eq!(recording.tick(), WHOLE);
    }
    assert_eq!(recording.states(), ["running"; 3]);
}

#[test]
fn a_stack_without_its_outer_calls_is_marked() {
    let mut r = FakeR::with(Layout::R_4_4, Hash::Gnu, 20_010);
    let f = r.call_of("f");
    for _ in 0..20_001 {
        r.enter(f, At::Nowhere);
    }
    let mut recording = Recording::of(&r, settings(Clock::Wall));
    recording.pass(10, 0);
    // It would stand still for too long.
    let cut = Tick::Taken {
        is_cut: true,
        free: Some(WhyFree::Slow),
    };
    assert_eq!(recording.tick(), cut);
    let stack = &recording.stacks()[0];
    assert_eq!(stack.len(), 20_001);
    assert_eq!(stack[20_000], OUTER_CALLS);
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
            is_cut: false,
            free: told,
        };
        assert_eq!(recording.tick(), taken);
    }
    assert_eq!(recording.stacks(), [["inner", "outer"]; 3]);
}

#[test]
fn a_recording_continues_in_another_profile() {
    let mut recording = Recording::new(Clock::Wall);
    recording.pass(10, 3);
    assert_eq!(recording.tick(), WHOLE);
    recording
        .session
        .finish_at(now().time, &mut recording.profile);
    let first = std::mem::take(&mut recording.profile);
    assert_eq!(first.sources[0].duration, Some(10 * MS as i64));
    let end = now().time;
    let (session, profile) = (&mut recording.session, &mut recording.profile);
    session
        .continue_at(end, &recording.settings, profile)
        .unwrap();
    recording.pass(20, 4);
    assert_eq!(recording.tick(), WHOLE);
    // No time between both is lost.
    assert_eq!(recording.times(), [(4.0, 20.0)]);
    assert_eq!(recording.stacks(), [["inner", "outer"]]);
    assert_eq!(recording.states(), ["running"]);
    recording
        .session
        .finish_at(now().time, &mut recording.profile);
    assert_eq!(recording.profile.sources[0].duration, Some(20 * MS as i64));
    let types = |profile: &Profile| profile.sources[0].types.len();
    assert_eq!((types(&first), types(&recording.profile)), (2, 2));
}
