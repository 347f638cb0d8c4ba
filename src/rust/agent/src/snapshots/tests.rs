use super::*;
use crate::testing::{
    Folder, add_chunk, begin_profile, beginning, checked, encoder, files, last_error, seconds,
    spooled,
};

struct World {
    state: State,
    folder: Folder,
    encoder: Encoder,
    start: Now,
}

impl World {
    fn new() -> World {
        let (state, folder) = spooled(1 << 20);
        World {
            state,
            folder,
            encoder: encoder(),
            start: beginning(),
        }
    }

    fn snapshots(&self, take: Take) -> Snapshots<'_> {
        let every = When::Every(seconds(10.0));
        Snapshots::new(Schedule::new(every, self.start), &self.encoder, take)
    }

    /// Steps at this time until no thread is running.
    fn step(&self, snapshots: &mut Snapshots, time: f64) {
        let now = self.start.after(time);
        snapshots.step(&self.state, now);
        while let Some(running) = &snapshots.running {
            while !running.thread.is_finished() {
                thread::sleep(seconds(0.001));
            }
            snapshots.step(&self.state, now);
        }
        checked(&self.state);
    }
}

fn succeed(_: Stop) -> Result<Profile> {
    let mut profile = Profile::default();
    begin_profile(&mut profile)?;
    Ok(profile)
}

#[test]
fn snapshots_are_stored_at_regular_times_as_chunks_without_samples() {
    let world = World::new();
    let mut snapshots = world.snapshots(succeed);
    let taken = |snapshots: &mut Snapshots, time| {
        world.step(snapshots, time);
        world.state.counts().snapshots
    };
    assert_eq!(taken(&mut snapshots, 0.0), 0);
    assert_eq!(taken(&mut snapshots, 9.9), 0);
    assert_eq!(taken(&mut snapshots, 10.1), 1);
    assert_eq!(taken(&mut snapshots, 20.0), 1);
    // Those that were missed, for example because the system was suspended, are skipped.
    assert_eq!(taken(&mut snapshots, 55.0), 2);
    assert_eq!(taken(&mut snapshots, 64.9), 2);
    assert_eq!(taken(&mut snapshots, 65.0), 3);
    // The open chunk is another one.
    world.state.took(false);
    assert_eq!(taken(&mut snapshots, 80.0), 4);
    assert_eq!(checked(&world.state).open, 1);
    add_chunk(&world.state, 2, 0, world.start);
    let waiting = checked(&world.state).waiting;
    assert_eq!((waiting.chunks, waiting.samples), (5, 3));
    assert_eq!(files(&world.folder).len(), 5);
    assert!(checked(&world.state).cpu_of_snapshots > 0);
}

#[test]
fn one_that_fails_is_reported_and_the_next_one_is_taken() {
    let world = World::new();
    for (take, why) in [
        (
            (|_| Err(Error::Process("not now".into()))) as Take,
            "not now",
        ),
        (|_| panic!("a bug"), "a bug"),
    ] {
        let mut snapshots = world.snapshots(take);
        world.step(&mut snapshots, 10.0);
        assert!(last_error(&world.state).contains(why), "{why}");
        snapshots.take = succeed;
        world.step(&mut snapshots, 20.0);
    }
    let counts = checked(&world.state);
    assert_eq!((counts.snapshots, counts.snapshots_lost), (2, 2));
    assert_eq!(counts.waiting.chunks, 2);
}

#[test]
fn at_the_end_one_that_is_being_taken_is_given_up() {
    let world = World::new();
    let until_stopped = |stop: Stop| {
        while !stop() {
            thread::sleep(seconds(0.001));
        }
        succeed(stop)
    };
    let mut snapshots = world.snapshots(until_stopped);
    snapshots.step(&world.state, world.start.after(10.0));
    // It is the only one, however long it takes.
    snapshots.step(&world.state, world.start.after(1000.0));
    assert!(snapshots.running.is_some());
    drop(snapshots);
    assert_eq!(checked(&world.state).snapshots, 0);
    assert!(world.state.is_empty());
}
