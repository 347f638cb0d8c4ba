use super::*;
use crate::forward::Settings;
use crate::testing::{
    Folder, Shared, beginning, checked, files, last_error, rename, seconds, spooled,
};
use profile_core::error::Error;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs;
use std::rc::Rc;

type Event = (f64, Box<dyn FnOnce()>);

/// Time that passes only while the loop waits. Events happen at their time, also during a wait.
struct Moved {
    start: Now,
    elapsed: Cell<f64>,
    events: RefCell<VecDeque<Event>>,
    /// The next random numbers, instead of 0.5.
    chances: RefCell<VecDeque<f64>>,
    waits: Cell<usize>,
}

impl Moved {
    fn pass(&self, time: f64) {
        // Times are multiples of a millisecond.
        let end = ((self.elapsed.get() + time) * 1000.0).round() / 1000.0;
        while let Some((at, event)) = self.events.borrow_mut().pop_front_if_due(end) {
            self.elapsed.set(at.max(self.elapsed.get()));
            event();
        }
        self.elapsed.set(end);
    }
}

trait Due {
    fn pop_front_if_due(&mut self, end: f64) -> Option<Event>;
}

impl Due for VecDeque<Event> {
    fn pop_front_if_due(&mut self, end: f64) -> Option<Event> {
        let is_due = self.front().is_some_and(|(at, _)| *at <= end);
        is_due.then(|| self.pop_front()).flatten()
    }
}

impl Clock for Rc<Moved> {
    fn now(&self) -> Now {
        self.start.after(self.elapsed.get())
    }

    fn used(&self) -> u64 {
        (self.elapsed.get() * 1000.0).round() as u64
    }

    fn chance(&self) -> f64 {
        self.chances.borrow_mut().pop_front().unwrap_or(0.5)
    }

    fn wait(&self, time: Duration) {
        assert!(time <= STEP);
        self.waits.set(self.waits.get() + 1);
        self.pass(time.as_secs_f64());
    }
}

/// What a recorder was asked to do, with times.
#[derive(Default)]
struct Calls {
    log: Vec<String>,
    /// At each tick: how long it takes, and whether it fails.
    ticks: VecDeque<(f64, bool)>,
    /// Whether the next calls of `recover()` fail.
    recoveries: VecDeque<bool>,
    preparation: Option<Error>,
    end: Option<Error>,
}

struct Scripted<'a> {
    calls: Shared<Calls>,
    clock: Rc<Moved>,
    state: &'a State,
}

impl Scripted<'_> {
    fn log(&self, call: &str) {
        let time = self.clock.elapsed.get();
        self.calls.borrow_mut().log.push(format!("{call} {time}"));
    }
}

impl Recorder for Scripted<'_> {
    fn pause(&self, chance: f64) -> Duration {
        seconds(0.04 * chance)
    }

    fn prepare(&mut self) -> Result<()> {
        self.log("prepare");
        self.calls
            .borrow_mut()
            .preparation
            .take()
            .map_or(Ok(()), Err)
    }

    fn tick(&mut self, now: Now) -> Result<()> {
        let elapsed = now.instant - self.clock.start.instant;
        assert_eq!(elapsed, seconds(self.clock.elapsed.get()));
        self.log("tick");
        let next = self.calls.borrow_mut().ticks.pop_front();
        let (time, fails) = next.unwrap_or_default();
        self.clock.pass(time);
        self.state.took(false);
        if fails {
            Err(Error::Process("a tick".into()))
        } else {
            Ok(())
        }
    }

    fn recover(&mut self, error: Error, now: Now) -> Result<()> {
        self.log("recover");
        self.state.add(Err(error), now);
        match self.calls.borrow_mut().recoveries.pop_front() {
            Some(true) => Err(Error::Process("a recovery".into())),
            _ => Ok(()),
        }
    }

    fn finish(&mut self, now: Now) -> Result<()> {
        self.log("finish");
        self.state.add(Ok(vec![1]), now);
        self.calls.borrow_mut().end.take().map_or(Ok(()), Err)
    }
}

struct World {
    state: Rc<State>,
    folder: Rc<Folder>,
    calls: Shared<Calls>,
    clock: Rc<Moved>,
    sender: Sender,
    /// Whether what the agent records for is over.
    is_over: Shared<bool>,
}

impl World {
    fn new() -> World {
        let start = beginning();
        let (state, folder) = spooled(1000);
        // The tests play the forwarder.
        let settings = Settings {
            target: Vec::new(),
            command: b"/bin/true\0".to_vec(),
            environment: Vec::new(),
        };
        World {
            state: Rc::new(state),
            folder: Rc::new(folder),
            calls: Shared::default(),
            is_over: Shared::default(),
            sender: Some(Forward::new(settings, start)),
            clock: Rc::new(Moved {
                start,
                elapsed: Cell::new(0.0),
                events: RefCell::default(),
                chances: RefCell::default(),
                waits: Cell::new(0),
            }),
        }
    }

    /// Adds an event. They have to be in the order of time.
    fn at(&self, time: f64, event: impl FnOnce() + 'static) {
        self.clock
            .events
            .borrow_mut()
            .push_back((time, Box::new(event)));
    }

    /// At this time, a forwarder has sent all chunks.
    fn sends_all(&self, time: f64) {
        let folder = self.folder.clone();
        self.at(time, move || {
            for file in files(&folder) {
                if file.ends_with(".otlp.gz") {
                    rename(&folder, &file, "sent");
                }
            }
        });
    }

    /// Records until the agent is asked to stop at this time, with this timeout. Returns the calls.
    fn record(&mut self, stop: f64, timeout: f64) -> Vec<String> {
        let (state, clock) = (self.state.clone(), self.clock.clone());
        self.at(stop, move || {
            state.stop(clock.now().instant + seconds(timeout))
        });
        let mut recorder = Scripted {
            calls: self.calls.clone(),
            clock: self.clock.clone(),
            state: &self.state,
        };
        let is_over = self.is_over.clone();
        record(
            &mut recorder,
            &mut self.sender,
            &mut None,
            &self.state,
            &|| !*is_over.borrow(),
            &self.clock,
        );
        checked(&self.state);
        std::mem::take(&mut self.calls.borrow_mut().log)
    }

    fn send_rest(&mut self) -> f64 {
        send_rest(&mut self.sender, &self.state, &self.clock);
        checked(&self.state);
        self.clock.elapsed.get()
    }
}

/// What the recorder is asked for, if a world is prepared like this and the agent is asked to stop at this time.
fn calls(prepare: impl FnOnce(&mut World), stop: f64, expected: &[&str]) -> World {
    let mut world = World::new();
    prepare(&mut world);
    assert_eq!(world.record(stop, 0.0), expected);
    world
}

#[test]
fn ticks_are_at_their_times_until_the_end() {
    // The third tick takes longer than two intervals, so ticks are missed. The last one is at the time of the stop.
    let late = [(0.0, false), (0.001, false), (0.05, false)];
    let world = calls(
        |world| world.calls.borrow_mut().ticks.extend(late),
        0.125,
        &[
            "prepare 0",
            "tick 0",
            "tick 0.02",
            "tick 0.04",
            "tick 0.09",
            "tick 0.11",
            "tick 0.13",
            "finish 0.13",
        ],
    );
    assert_eq!(checked(&world.state).cpu, 130);
    // What the agent records for has ended.
    let end = |world: &mut World| {
        let is_over = world.is_over.clone();
        world.at(0.03, move || *is_over.borrow_mut() = true);
    };
    let expected = [
        "prepare 0",
        "tick 0",
        "tick 0.02",
        "tick 0.04",
        "finish 0.04",
    ];
    calls(end, 1.0, &expected);
    // The time between two ticks is random.
    let chances = [0.4, 0.6, 0.9];
    let expected = [
        "prepare 0",
        "tick 0",
        "tick 0.016",
        "tick 0.04",
        "tick 0.076",
        "finish 0.076",
    ];
    let random = |world: &mut World| world.clock.chances.borrow_mut().extend(chances);
    calls(random, 0.07, &expected);
}

#[test]
fn after_an_error_it_rests_and_tries_again() {
    let fail = |world: &mut World| {
        let mut calls = world.calls.borrow_mut();
        calls.ticks.extend([(0.0, false), (0.0, true)]);
        calls.recoveries.extend([true, false]);
    };
    let expected = [
        "prepare 0",
        "tick 0",
        "tick 0.02",
        "recover 5.02",
        "recover 10.02",
        "tick 10.02",
        "tick 10.04",
        "finish 10.04",
    ];
    let world = calls(fail, 10.03, &expected);
    // Chunks are sent meanwhile: the loop looks every 50 milliseconds.
    assert!(world.clock.waits.get() >= 200);
    let counts = checked(&world.state);
    assert_eq!((counts.taken, counts.moves.lost), (4, 2));
    assert!(last_error(&world.state).contains("a recovery"));
}

#[test]
fn a_failed_preparation_is_an_error_that_passes() {
    let fail = |world: &mut World| {
        world.calls.borrow_mut().preparation = Some(Error::Process("a preparation".into()));
    };
    let expected = [
        "prepare 0",
        "recover 5",
        "tick 5",
        "tick 5.02",
        "finish 5.02",
    ];
    let world = calls(fail, 5.01, &expected);
    assert!(last_error(&world.state).contains("a preparation"));
}

#[test]
fn it_can_be_stopped_at_any_moment() {
    let tick = |time, fails| {
        move |world: &mut World| world.calls.borrow_mut().ticks.push_back((time, fails))
    };
    // During a rest after an error.
    let expected = ["prepare 0", "tick 0", "recover 1.05", "finish 1.05"];
    calls(tick(0.0, true), 1.01, &expected);
    // At an error.
    let world = calls(tick(0.01, true), 0.005, &["prepare 0", "tick 0"]);
    let counts = checked(&world.state);
    assert_eq!((counts.taken, counts.moves.lost), (1, 1));
    assert!(last_error(&world.state).contains("a tick"));
    // Before it starts.
    let stop = |world: &mut World| world.state.stop(world.clock.now().instant);
    calls(stop, 9.0, &["prepare 0", "finish 0"]);
    // The last chunk fails.
    let mut world = World::new();
    world.calls.borrow_mut().end = Some(Error::Process("the end".into()));
    world.record(0.01, 0.0);
    assert!(last_error(&world.state).contains("the end"));
}

#[test]
fn what_is_queued_at_the_end_is_sent_before_the_deadline() {
    // The forwarder sends it in time.
    let mut world = World::new();
    world.record(0.02, 3.0);
    world.sends_all(1.0);
    assert_eq!(world.send_rest(), 1.02);
    let counts = checked(&world.state);
    assert_eq!((counts.moves.sent, counts.cpu), (counts.taken, 1020));
    // It does not.
    let mut world = World::new();
    world.record(0.02, 3.0);
    let end = world.send_rest();
    assert!((3.02..3.07).contains(&end), "{end}");
    let counts = checked(&world.state);
    assert_eq!(
        (counts.moves.sent, counts.waiting.samples),
        (0, counts.taken)
    );
    // The server is unavailable.
    let mut world = World::new();
    world.record(0.02, 3.0);
    fs::write(world.folder.join("unavailable"), "http://a: HTTP 503").unwrap();
    assert_eq!(world.send_rest(), 0.02);
    assert_eq!(last_error(&world.state), "http://a: HTTP 503");
    // There is no time.
    let mut world = World::new();
    world.record(0.02, 0.0);
    assert_eq!(world.send_rest(), world.clock.elapsed.get());
    // There is nothing to do.
    let mut world = World::new();
    world.sender = None;
    world.record(0.02, 3.0);
    assert_eq!(world.send_rest(), 0.02);
}

#[test]
fn a_panic_is_told() {
    let said = |panic: Box<dyn Any + Send>| in_words(&*panic);
    assert_eq!(said(Box::new("100% wrong")), "Internal error: 100% wrong.");
    assert_eq!(said(Box::new(String::from("bad"))), "Internal error: bad.");
    assert_eq!(said(Box::new(1)), "Internal error: a panic.");
}
