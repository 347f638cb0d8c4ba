use super::*;
use crate::testing::{
    DATE, Folder, beginning, checked, encoder, next_profile, seconds, spooled, sum,
};
use profile_reader::recorded::settings::Clock;
use profile_reader::recorded::waits::WaitNames;
use std::fs::{File, OpenOptions};
use std::io::Write;

const HEADER: &str = "line profiling: sample.interval=20000\n";

/// The agent's thread and R, which writes to the log.
struct World {
    log: Arc<Log>,
    state: State,
    folder: Folder,
    encoder: Encoder,
    start: Now,
}

impl World {
    fn new() -> World {
        let (state, folder) = spooled(1 << 20);
        World {
            log: Arc::new(Log::create().unwrap()),
            state,
            folder,
            encoder: encoder(),
            start: beginning(),
        }
    }

    fn rprof(&self, every: f64) -> Rprof<'_> {
        let timing = Timing {
            interval: Duration::from_millis(10),
            every: seconds(every),
            clock: Clock::Wall,
            names: WaitNames::None,
            positions: false,
        };
        let log = Arc::clone(&self.log);
        Rprof::open(timing, &self.state, &self.encoder, log, self.start)
    }

    /// Opens the log as R does.
    fn r(&self) -> File {
        let mut options = OpenOptions::new();
        options.append(true).open(self.log.path()).unwrap()
    }

    /// The numbers of chunks, of samples, and of samples in the open chunk.
    fn counts(&self) -> (u64, u64, u64) {
        let counts = checked(&self.state);
        (counts.waiting.chunks, counts.taken, counts.open)
    }

    fn next(&self) -> Profile {
        next_profile(&self.state, &self.folder, self.start).unwrap()
    }
}

/// The samples of a chunk: names with files and lines.
fn frames(profile: &Profile) -> Vec<String> {
    let frame = |&location: &_| {
        let function = profile.function_of(location).unwrap();
        let [name, file] = [function.name, function.filename].map(|s| profile.strings.get(s));
        let line = profile.locations.get(location).line_for_r();
        format!("{name}:{file}:{line}")
    };
    let stacks = profile.samples.stack.iter();
    let frames = stacks.flat_map(|&stack| profile.stacks.get(stack).to_vec().unwrap());
    frames.collect::<Vec<_>>().iter().map(frame).collect()
}

/// When a chunk began, after the start, and how long it lasted.
fn times(profile: &Profile) -> (f64, f64) {
    let source = &profile.sources[0];
    let begin = source.timestamp.unwrap() - DATE as f64;
    (begin, source.duration.unwrap() as f64 / 1e9)
}

#[test]
fn each_line_is_a_sample_of_one_chunk() {
    let world = World::new();
    let mut rprof = world.rprof(3600.0);
    rprof.prepare().unwrap();
    rprof.tick(world.start).unwrap();
    let mut r = world.r();
    let mut time = 0.0;
    let mut write = |text: &str| {
        time += 1.0;
        r.write_all(text.as_bytes()).unwrap();
        rprof.tick(world.start.after(time)).unwrap();
        world.counts()
    };
    let lines = "#File 1: a.R\n1#1 \"f\" \n1#1 \"f\" \n1#2 ";
    assert_eq!(write(&[HEADER, lines].concat()), (0, 2, 2));
    assert_eq!(write("\"g\" \n"), (0, 3, 3));
    // R's profiler is restarted.
    assert_eq!(write(HEADER), (1, 3, 0));
    assert_eq!(write("\"h\" \n"), (1, 4, 1));
    // A line that is longer than what is read at once.
    let long = ["\"", &"x".repeat(3 * PIECE), "\" \n"].concat();
    assert_eq!(write(&long), (1, 5, 2));
    // Two restarts at once, the first one without samples.
    assert_eq!(write(&[HEADER, HEADER, "\"i\" \n"].concat()), (2, 6, 1));
    rprof.finish(world.start.after(8.0)).unwrap();
    assert_eq!(world.counts(), (3, 6, 0));
    drop((rprof, r));
    assert!(world.r().write_all(b"\"f\" \n").is_err());

    for (samples, begin, duration) in [(3.0, 0.0, 3.0), (2.0, 3.0, 3.0), (1.0, 6.0, 2.0)] {
        let profile = world.next();
        assert_eq!(sum(&profile, "samples"), samples);
        // The interval that R reports, not the one that was requested.
        assert_eq!(sum(&profile, "wall"), samples * 2e7);
        assert!(profile.value("cpu", "nanoseconds").is_none());
        assert_eq!(times(&profile), (begin, duration));
        assert_eq!(profile.sources[0].default_type.as_deref(), Some("wall"));
    }
    assert_eq!(checked(&world.state).moves.sent, 6);
}

#[test]
fn the_interval_is_the_requested_one_if_r_reports_none() {
    let world = World::new();
    let mut rprof = world.rprof(3600.0);
    world.r().write_all(b"\"f\" \n\"f\" \n").unwrap();
    rprof.finish(world.start).unwrap();
    assert_eq!(sum(&world.next(), "wall"), 2e7);
}

#[test]
fn chunks_are_as_long_as_requested_and_know_all_files() {
    let world = World::new();
    let mut rprof = world.rprof(5.0);
    assert_eq!(rprof.pause(0.5), Duration::from_secs(1));
    assert_eq!(World::new().rprof(0.2).pause(0.5), seconds(0.2));
    let mut r = world.r();
    let header = [HEADER, "#File 1: a.R\n"].concat();
    r.write_all(header.as_bytes()).unwrap();
    for second in 1..=12 {
        r.write_all(format!("1#{second} \"f\" \n").as_bytes())
            .unwrap();
        if second == 6 {
            r.write_all(b"#File 2: b.R\n").unwrap();
        }
        // Ticks are slightly early.
        rprof
            .tick(world.start.after(f64::from(second) - 0.125))
            .unwrap();
    }
    assert_eq!(world.counts(), (2, 12, 2));
    r.write_all(b"2#99 \"g\" \n").unwrap();
    rprof.finish(world.start.after(12.5)).unwrap();
    let lines = |lines: &[i32]| {
        lines
            .iter()
            .map(|line| format!("f:a.R:{line}"))
            .collect::<Vec<_>>()
    };
    let (one, two, three) = (world.next(), world.next(), world.next());
    assert_eq!(frames(&one), lines(&[1, 2, 3, 4, 5]));
    assert_eq!(frames(&two), lines(&[6, 7, 8, 9, 10]));
    let mut last = lines(&[11, 12]);
    last.push("g:b.R:99".into());
    assert_eq!(frames(&three), last);
    assert_eq!(
        [&one, &two, &three].map(times),
        [(0.0, 4.875), (4.875, 5.0), (9.875, 2.625)]
    );
    assert_eq!(checked(&world.state).paused, Duration::ZERO);
}

#[test]
fn a_name_is_not_divided_between_two_chunks() {
    let world = World::new();
    let mut rprof = world.rprof(1.0);
    let mut r = world.r();
    r.write_all([HEADER, "\"f\" \n\"g\n"].concat().as_bytes())
        .unwrap();
    rprof.tick(world.start.after(1.0)).unwrap();
    assert_eq!(world.counts(), (0, 1, 1));
    r.write_all(b"h\" \n").unwrap();
    rprof.tick(world.start.after(2.0)).unwrap();
    assert_eq!(world.counts(), (1, 2, 0));
    assert_eq!(frames(&world.next()), ["f::0", "g\nh::0"]);
    // A chunk whose only line is incomplete has no samples, and is not sent.
    r.write_all(b"\"i\n").unwrap();
    rprof.finish(world.start.after(3.0)).unwrap();
    assert_eq!(world.counts(), (0, 2, 0));
}

#[test]
fn a_gap_ends_a_chunk() {
    let world = World::new();
    let mut rprof = world.rprof(100.0);
    let mut r = world.r();
    r.write_all([HEADER, "\"f\" \n"].concat().as_bytes())
        .unwrap();
    let mut now = world.start.after(1.0);
    rprof.tick(now).unwrap();
    // Late, but no gap.
    now = now.after(3.0);
    rprof.tick(now).unwrap();
    assert_eq!(world.counts(), (0, 1, 1));
    r.write_all(b"\"f\" \n").unwrap();
    now = now.after_suspend(3.001);
    rprof.tick(now).unwrap();
    assert_eq!(world.counts(), (1, 2, 0));
    let profile = world.next();
    assert_eq!(
        (sum(&profile, "samples"), times(&profile)),
        (2.0, (0.0, 4.0))
    );
    r.write_all(b"\"f\" \n").unwrap();
    rprof.finish(now.after(0.5)).unwrap();
    let (begin, duration) = times(&world.next());
    assert!((begin - 7.001).abs() < 1e-6);
    assert_eq!(duration, 0.5);
}

#[test]
fn the_time_in_which_others_use_the_profiler_is_counted() {
    let world = World::new();
    let mut rprof = world.rprof(100.0);
    let paused = || checked(&world.state).paused.as_secs_f64();
    // R has not started it yet.
    rprof.tick(world.start.after(1.0)).unwrap();
    let r = world.r();
    rprof.tick(world.start.after(2.0)).unwrap();
    assert_eq!(paused(), 0.0);
    (&r).write_all([HEADER, "\"f\" \n"].concat().as_bytes())
        .unwrap();
    drop(r);
    rprof.tick(world.start.after(2.5)).unwrap();
    assert_eq!(paused(), 0.5);
    // What was written before is read.
    assert_eq!(world.counts(), (0, 1, 1));
    rprof.tick(world.start.after(3.5)).unwrap();
    assert_eq!(paused(), 1.5);
    let _r = world.r();
    rprof.tick(world.start.after(4.5)).unwrap();
    assert_eq!(paused(), 1.5);
}

#[test]
fn the_memory_of_lines_is_freed() {
    let world = World::new();
    let mut rprof = world.rprof(100.0);
    let mut r = world.r();
    r.write_all(HEADER.as_bytes()).unwrap();
    let line = "\"f\" ".repeat(5000) + "\n";
    for tick in 1..=20 {
        r.write_all(line.as_bytes()).unwrap();
        rprof.tick(world.start.after(f64::from(tick))).unwrap();
        assert_eq!(world.counts(), (0, tick as u64, tick as u64));
    }
    // A freed part of a file consists of zeros.
    let size = HEADER.len() + 20 * line.len();
    let mut room = vec![1; size + 1];
    let mut offset = 0;
    while offset < size {
        offset += world.log.read(offset as u64, &mut room[offset..]).unwrap();
    }
    assert_eq!(room, [&vec![0; size][..], &[1]].concat());
}

#[test]
fn an_error_costs_the_open_chunk_only() {
    let world = World::new();
    let mut rprof = world.rprof(1.0);
    let mut r = world.r();
    let text = [HEADER, "#File 1: a.R\n1#1 \"f\" \n"].concat();
    r.write_all(text.as_bytes()).unwrap();
    rprof.tick(world.start.after(1.0)).unwrap();
    r.write_all(b"1#2 \"f\" \n1#3 ").unwrap();
    rprof.tick(world.start.after(1.25)).unwrap();
    assert_eq!(world.counts(), (1, 2, 1));
    let now = world.start.after(6.0);
    rprof.recover(Error::Process("a line".into()), now).unwrap();
    let counts = checked(&world.state);
    assert_eq!((counts.moves.lost, counts.open), (1, 0));
    // Files are still known; the rest of the line is lost.
    r.write_all(b"\"f\" \n1#4 \"f\" \n").unwrap();
    rprof.finish(now.after(0.5)).unwrap();
    assert_eq!(frames(&world.next()), ["f:a.R:1"]);
    let profile = world.next();
    assert_eq!(frames(&profile).last().unwrap(), "f:a.R:4");
    assert_eq!(times(&profile), (6.0, 0.5));
    checked(&world.state);
}
