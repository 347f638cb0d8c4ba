use super::*;
use crate::testing::{
    Folder, Script, Scripted, Shared, TAKEN, begin_profile, beginning, checked, encoder,
    last_error, next_profile, seconds, spooled, sum,
};
use profile_reader::recorded::settings::Clock;
use profile_reader::recorded::waits::WaitNames;
use profile_reader::stack::frames::Cut;

const INTERVAL: f64 = 0.01;

struct World {
    state: State,
    folder: Folder,
    encoder: Encoder,
    script: Shared<Script>,
    start: Now,
}

impl World {
    fn new() -> World {
        let (state, folder) = spooled(1 << 20);
        World {
            state,
            folder,
            encoder: encoder(),
            script: Shared::default(),
            start: beginning(),
        }
    }

    fn chunks(&self, every: f64) -> Chunks<'_, Scripted> {
        let timing = Timing {
            interval: seconds(INTERVAL),
            every: seconds(every),
            clock: Clock::Cpu,
            names: WaitNames::None,
            positions: false,
        };
        let mut profile = Profile::default();
        begin_profile(&mut profile).unwrap();
        let session = Scripted(self.script.clone());
        Chunks::new(
            timing,
            &self.state,
            &self.encoder,
            session,
            profile,
            self.start,
        )
    }

    /// The number of samples of the next chunk.
    fn next(&self) -> Option<f64> {
        let profile = next_profile(&self.state, &self.folder, self.start)?;
        assert_eq!(profile.functions.len(), 1);
        Some(sum(&profile, "cpu") / 1e7)
    }

    /// How many seconds after the start recordings have ended, since the last call.
    fn ends(&self) -> Vec<f64> {
        let ends = std::mem::take(&mut self.script.borrow_mut().ends);
        let since = |end: Instant| (end - self.start.instant).as_secs_f64();
        ends.into_iter().map(since).collect()
    }

    fn calls(&self) -> Vec<&'static str> {
        self.script.borrow_mut().new_calls()
    }
}

#[test]
fn a_chunk_is_as_long_as_requested() {
    let world = World::new();
    let mut chunks = world.chunks(0.5);
    chunks.prepare().unwrap();
    assert_eq!(chunks.pause(0.5), seconds(INTERVAL));
    assert_eq!(chunks.pause(0.0), seconds(0.75 * INTERVAL));
    for tick in 1..=120 {
        let now = world.start.after(f64::from(tick) * INTERVAL);
        chunks.tick(now).unwrap();
        let counts = checked(&world.state);
        // A tick that ends a chunk is the first sample of the next one.
        let open = if tick < 50 { tick } else { tick % 50 + 1 };
        assert_eq!((counts.taken, counts.open), (tick as u64, open as u64));
    }
    chunks.finish(world.start.after(1.2)).unwrap();
    assert_eq!(
        [world.next(), world.next(), world.next()],
        [Some(49.0), Some(50.0), Some(21.0)]
    );
    assert_eq!(world.ends(), [0.5, 1.0, 1.2]);
    assert_eq!(
        world.calls(),
        ["prepare", "continue", "continue", "continue"]
    );
    let counts = checked(&world.state);
    assert_eq!((counts.moves.sent, counts.moves.chunks_sent), (120, 3));
}

#[test]
fn chunks_without_samples_are_not_sent() {
    let world = World::new();
    let mut chunks = world.chunks(1.0);
    world
        .script
        .borrow_mut()
        .ticks
        .extend([Ok(Tick::Idle), Ok(Tick::Unread), Ok(Tick::Ended)]);
    for time in [0.5, 1.0, 2.0] {
        chunks.tick(world.start.after(time)).unwrap();
    }
    chunks.finish(world.start.after(2.5)).unwrap();
    assert_eq!(world.ends().len(), 3);
    assert!(world.state.is_empty());
    let counts = checked(&world.state);
    assert_eq!((counts.taken, counts.unread), (0, 1));
}

#[test]
fn waits_that_cannot_be_seen_are_reported_once() {
    let world = World::new();
    let mut chunks = world.chunks(100.0);
    chunks.tick(world.start.after(1.0)).unwrap();
    assert_eq!(last_error(&world.state), "");
    world.script.borrow_mut().is_wait_refused = true;
    chunks.tick(world.start.after(2.0)).unwrap();
    assert!(last_error(&world.state).contains("not dumpable"));
    world.state.note("another".to_owned(), world.start);
    chunks.tick(world.start.after(3.0)).unwrap();
    assert_eq!(last_error(&world.state), "another");
}

#[test]
fn a_gap_ends_a_chunk_and_is_not_counted() {
    let world = World::new();
    let mut chunks = world.chunks(100.0);
    let mut now = world.start.after(1.0);
    chunks.tick(now).unwrap();
    // Late, but no gap.
    now = now.after(GAP.as_secs_f64() + INTERVAL);
    chunks.tick(now).unwrap();
    assert!(world.state.is_empty() && world.calls().is_empty());
    // The process was stopped.
    let last = now;
    now = now.after(GAP.as_secs_f64() + INTERVAL + 0.001);
    chunks.tick(now).unwrap();
    assert_eq!(world.calls(), ["continue", "skip"]);
    assert_eq!(
        world.ends(),
        [(last.instant - world.start.instant).as_secs_f64()]
    );
    assert_eq!(world.next(), Some(2.0));
    // The system was suspended: other clocks have stopped.
    let last = now;
    now = now.after_suspend(3600.0);
    chunks.tick(now).unwrap();
    assert_eq!(world.calls(), ["continue", "skip"]);
    assert_eq!(
        world.ends(),
        [(last.instant - world.start.instant).as_secs_f64()]
    );
    assert_eq!(world.next(), Some(1.0));
    // The next chunk begins after the gap.
    chunks.last = now.after(99.9);
    chunks.tick(chunks.last).unwrap();
    assert!(world.state.is_empty());
    chunks.tick(now.after(100.0)).unwrap();
    assert_eq!(world.next(), Some(2.0));
    checked(&world.state);
}

#[test]
fn the_session_is_reopened_every_ten_minutes() {
    let world = World::new();
    let mut chunks = world.chunks(1.0);
    for second in 1..=1300 {
        let call = chunks.tick(world.start.after(f64::from(second)));
        call.unwrap();
        let expected: &[_] = match second {
            600 | 1200 => &["reopen", "prepare"],
            _ => &["continue"],
        };
        assert_eq!(world.calls(), expected, "{second}");
    }
    assert_eq!(checked(&world.state).taken, 1300);
}

#[test]
fn samples_that_lack_outer_calls_are_counted() {
    let world = World::new();
    let mut chunks = world.chunks(1000.0);
    let cut = Tick::Taken {
        cut: Some(Cut::TooDeep),
        free: None,
    };
    world
        .script
        .borrow_mut()
        .ticks
        .extend([Ok(cut), Ok(TAKEN), Ok(Tick::Unread)]);
    for _ in 0..3 {
        chunks.tick(world.start).unwrap();
    }
    let counts = checked(&world.state);
    assert_eq!((counts.taken, counts.cut, counts.unread), (2, 1, 1));
}

#[test]
fn an_error_costs_the_open_chunk_only() {
    let world = World::new();
    let mut chunks = world.chunks(1.0);
    for time in [0.5, 0.9, 1.0, 1.5] {
        chunks.tick(world.start.after(time)).unwrap();
    }
    assert_eq!(world.calls(), ["continue"]);
    world
        .script
        .borrow_mut()
        .ticks
        .push_back(Err(Error::Process("a stack".into())));
    let error = chunks.tick(world.start.after(1.9)).unwrap_err();
    let now = world.start.after(6.9);
    chunks.recover(error, now).unwrap();
    assert_eq!(world.calls(), ["reopen"]);
    let counts = checked(&world.state);
    assert_eq!((counts.taken, counts.moves.lost, counts.open), (4, 2, 0));
    assert!(last_error(&world.state).contains("a stack"));
    // The time without samples is a gap, and the new chunk has its full length.
    chunks.tick(now).unwrap();
    assert_eq!(world.calls(), ["continue", "skip"]);
    chunks.tick(now.after(0.9)).unwrap();
    assert!(world.calls().is_empty());
    chunks.tick(now.after(1.0)).unwrap();
    assert_eq!(world.calls(), ["continue"]);
    assert_eq!(
        [world.next(), world.next(), world.next()],
        [Some(2.0), Some(2.0), None]
    );
    checked(&world.state);
}

#[test]
fn the_chunk_after_an_error_has_its_full_length() {
    let world = World::new();
    let mut chunks = world.chunks(1.0);
    let error = Error::Process("a stack".into());
    chunks.recover(error, world.start.after(0.9)).unwrap();
    for time in [1.0, 1.875] {
        chunks.tick(world.start.after(time)).unwrap();
    }
    assert_eq!(world.calls(), ["reopen"]);
    chunks.tick(world.start.after(1.9)).unwrap();
    assert_eq!(world.calls(), ["continue"]);
    assert_eq!([world.next(), world.next()], [Some(2.0), None]);
}

#[test]
fn an_error_at_the_end_of_a_chunk_does_not_lose_it() {
    let world = World::new();
    let mut chunks = world.chunks(1.0);
    chunks.tick(world.start).unwrap();
    for error in [Error::Process("one".into()), Error::Process("two".into())] {
        world.script.borrow_mut().failures.push_back(error);
    }
    let now = world.start.after(1.0);
    let error = chunks.tick(now).unwrap_err();
    let error = chunks.recover(error, now).unwrap_err();
    chunks.recover(error, now).unwrap();
    assert_eq!(world.calls(), ["continue", "reopen", "reopen"]);
    assert!(last_error(&world.state).contains("two"));
    chunks.tick(now).unwrap();
    chunks.finish(now).unwrap();
    assert_eq!(
        [world.next(), world.next(), world.next()],
        [Some(1.0), Some(1.0), None]
    );
    assert_eq!(checked(&world.state).dropped(), 0);
}
