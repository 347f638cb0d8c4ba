//! A recording of a fake process. The clock, the CPU time and the state are those that the test sets.

use crate::fake::FakeMemory;
use crate::fake::process::{At, FakeR};
use profile_core::error::Result;
use profile_core::model::Profile;
use profile_reader::process::Watched;
use profile_reader::process::computing::{Evidence, SystemCall};
use profile_reader::process::{Held, Placement, Process};
use profile_reader::record::session::Session;
use profile_reader::recorded::result::Tick;
use profile_reader::recorded::scheduled::Scheduled;
use profile_reader::recorded::settings::{Clock, Settings};
use profile_reader::recorded::source::declare_types;
use profile_reader::recorded::states::{Activity, FoundThread, State, WhyFree};
use profile_reader::recorded::waits::{Wait, WaitNames};
use profile_reader::stack::moment::Moment;
use profile_runtime::contexts::Layout;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::{Duration, Instant, UNIX_EPOCH};

pub const MS: u64 = 1_000_000;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

thread_local! {
    /// The time that has passed in the test of this thread.
    static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

pub fn now() -> Moment {
    let passed = PASSED.get();
    Moment {
        time: *START + passed,
        date: UNIX_EPOCH + Duration::from_secs(1_000_000) + passed,
    }
}

/// Lets time pass, in milliseconds.
pub fn pass(time: u64) {
    PASSED.set(PASSED.get() + Duration::from_millis(time));
}

pub const WHOLE: Tick = Tick::Taken {
    cut: None,
    free: None,
};

pub fn settings(clock: Clock) -> Settings {
    Settings {
        interval: Duration::from_millis(10),
        duration: Duration::MAX,
        clock,
        children: false,
        pause: true,
        native: false,
        names: WaitNames::Short,
        own: false,
        positions: false,
    }
}

/// A thread with this CPU time and state. Counts how often it was asked for its state.
#[derive(Clone)]
pub struct FakeThread {
    pub cpu: Rc<Cell<Option<u64>>>,
    pub state: Rc<Cell<Option<State>>>,
    pub scheduled: Rc<Cell<Option<Scheduled>>>,
    /// What it waits for, how often that was asked, and whether this is refused.
    pub wait: Rc<RefCell<Option<Wait>>>,
    pub waits: Rc<Cell<u32>>,
    pub is_wait_refused: Rc<Cell<bool>>,
    /// The CPU time of the other threads, and how much of it they use between two readings.
    pub others: Rc<Cell<Option<u64>>>,
    pub others_use: Rc<Cell<u64>>,
    /// Whether its process runs another program.
    pub has_left: Rc<Cell<bool>>,
    /// What is known if its state is running.
    pub evidence: Rc<Cell<Evidence>>,
    pub looks: Rc<Cell<u32>>,
    /// The states in which it was to be held.
    pub held: Rc<RefCell<Vec<State>>>,
    /// Why it cannot be held.
    pub free: Rc<Cell<Option<WhyFree>>>,
    /// The number of times that it wakes up before it is held in vain.
    pub wakes: Rc<Cell<u32>>,
    /// How long it takes to hold it, and to let it go on, in milliseconds.
    pub takes: Rc<Cell<[u64; 2]>>,
    /// Whether the process has other threads, and the stacks of all threads.
    pub has_others: Rc<Cell<bool>>,
    pub stacks: Rc<RefCell<Vec<Range<u64>>>>,
    /// The number of the thread to which R was followed.
    pub current: Rc<Cell<usize>>,
}

/// What a thread does that is on a processor.
pub const COMPUTES: Evidence = Evidence {
    call: SystemCall::None,
    on_processor: Some(true),
};

impl Watched for FakeThread {
    fn id(&self) -> i32 {
        1
    }

    fn cpu_time(&self) -> Option<u64> {
        self.cpu.get()
    }

    fn scheduled(&self) -> Option<Scheduled> {
        self.scheduled.get()
    }

    fn others_cpu(&self) -> Option<u64> {
        let others = self.others.get();
        self.others
            .set(others.map(|used| used + self.others_use.get()));
        others
    }

    fn notice_wait(&mut self) -> bool {
        self.waits.set(self.waits.get() + 1);
        self.wait.borrow().is_some()
    }

    fn explain_wait(&mut self) -> Result<Wait> {
        Ok(self.wait.borrow().clone().unwrap())
    }

    fn name_waits(&mut self, _: WaitNames, _: &[i32]) -> Result<()> {
        Ok(())
    }

    fn is_wait_refused(&self) -> bool {
        self.is_wait_refused.get()
    }

    fn activity(&mut self) -> Option<Activity> {
        self.looks.set(self.looks.get() + 1);
        Some(Activity {
            state: self.state.get()?,
            processor: None,
            cpu: self.cpu.get(),
            scheduled: self.scheduled.get(),
            has_others: self.has_others.get(),
        })
    }

    fn has_left(&self) -> bool {
        self.has_left.get()
    }

    fn follow(&mut self, address: u64) -> Result<Option<FoundThread>> {
        let stacks = self.stacks.borrow();
        let found = stacks.iter().position(|stack| stack.contains(&address));
        Ok(found.map(|number| FoundThread {
            stack: stacks[number].clone(),
            is_other: self.current.replace(number) != number,
        }))
    }

    fn hold(&mut self, state: State) -> Held {
        self.held.borrow_mut().push(state);
        pass(self.takes.get()[0]);
        match self.free.get() {
            Some(why) => Held::Free(why),
            None => Held::Asleep(1),
        }
    }

    fn evidence(&self, _: &Held) -> Evidence {
        assert_eq!(self.state.get(), Some(State::Running));
        self.evidence.get()
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
pub struct Recording {
    pub settings: Settings,
    pub session: Session<'static, FakeMemory, FakeThread>,
    pub memory: FakeMemory,
    pub thread: FakeThread,
    pub profile: Profile,
}

impl Recording {
    pub fn of(r: &FakeR, settings: Settings) -> Recording {
        let (memory, mut reader) = r.reader();
        // Nothing is freed.
        reader.shortest_collection = Duration::MAX;
        reader.set_clock(now);
        let thread = FakeThread {
            cpu: Rc::new(Cell::new(Some(500 * MS))),
            state: Rc::new(Cell::new(Some(State::Running))),
            scheduled: Rc::default(),
            wait: Rc::default(),
            waits: Rc::default(),
            is_wait_refused: Rc::default(),
            others: Rc::default(),
            others_use: Rc::default(),
            has_left: Rc::default(),
            evidence: Rc::new(Cell::new(COMPUTES)),
            looks: Rc::default(),
            held: Rc::default(),
            free: Rc::default(),
            wakes: Rc::default(),
            takes: Rc::default(),
            has_others: Rc::default(),
            stacks: Rc::default(),
            current: Rc::default(),
        };
        let mut profile = Profile::default();
        declare_types(&mut profile).unwrap();
        let start = now().time;
        let process = Process::find(std::process::id() as i32).unwrap();
        let watched = thread.clone();
        let session = Session::new(&process, watched, reader, &settings, &mut profile, start);
        Recording {
            settings,
            session: session.unwrap(),
            memory,
            thread,
            profile,
        }
    }

    pub fn new(clock: Clock) -> Recording {
        Recording::of(&process(), settings(clock))
    }

    /// Lets time pass, in milliseconds, of which the process uses some.
    pub fn pass(&mut self, real: u64, cpu: u64) {
        pass(real);
        let before = self.thread.cpu.get();
        self.thread.cpu.set(before.map(|before| before + cpu * MS));
    }

    pub fn tick(&mut self) -> Tick {
        // It does not matter which thread runs this.
        let placement = Placement::current();
        let (session, profile) = (&mut self.session, &mut self.profile);
        let mut natives = Vec::new();
        let tick = session.tick(&self.settings, profile, &mut natives, &placement);
        assert!(natives.is_empty());
        tick.unwrap()
    }

    /// Ends the recording, which sets the CPU time of the samples.
    pub fn finish(&mut self) {
        self.session.finish(None, &mut self.profile).unwrap();
    }

    /// The value of an attribute of the source.
    pub fn attribute(&self, key: &str) -> Option<&str> {
        let strings = &self.profile.strings;
        let mut all = self.profile.sources[0].attributes.iter();
        let found = all.find(|attribute| strings.get(attribute.key) == key)?;
        Some(strings.get(found.value.text))
    }

    /// The CPU time and the real time of the samples, in milliseconds.
    pub fn times(&self) -> Vec<(f64, f64)> {
        let values = |column: usize| {
            let values = &self.profile.values[column].column;
            values.iter().map(|value| value / MS as f64)
        };
        values(0).zip(values(1)).collect()
    }

    pub fn states(&self) -> Vec<&str> {
        let text = |text| self.profile.strings.get(text);
        let labels = self.profile.labels.iter();
        let states = labels.filter(|label| text(label.key) == "state");
        states.map(|label| text(label.str.unwrap())).collect()
    }

    /// The functions of each sample, innermost first.
    pub fn stacks(&self) -> Vec<Vec<&str>> {
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
pub fn process() -> FakeR {
    let mut r = FakeR::new(Layout::R_4_4);
    for name in ["outer", "inner"] {
        let call = r.call_of(name);
        r.enter(call, At::Nowhere);
    }
    r
}
