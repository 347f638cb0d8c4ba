//! Makes chunks of the output of R's own profiler.
//!
//! R's thread starts `Rprof()`, which writes a line at each tick. The agent's thread reads complete lines, frees
//! their memory, and lets the core parse them. Any other call of `Rprof()` ends the agent's profile; only R's thread
//! can start it again.

use crate::chunks::{GAP, Timing};
use crate::queue::Queue;
use crate::sink::Encoder;
use crate::source::Recorder;
use crate::system::{self, Alarm, Log};
use profile_core::analysis::label_frames::take_labels;
use profile_core::error::{Error, Result};
use profile_core::formats::rprof::Follower;
use profile_core::limits::memory::{TryGrow, filled};
use profile_core::message;
use profile_core::model::{Period, Profile, Values};
use profile_reader::source::own_source;
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const WHAT: &str = "the lines of R's profiler";
/// The longest time between two reads of the file. A line can have up to 10 kB.
const LOOK: Duration = Duration::from_secs(1);
/// The number of bytes that are read at once.
const PIECE: usize = 64 << 10;
/// The count of each sample. Its other value is the interval, as the time of the event.
const COUNT: (&str, &str) = ("samples", "count");

pub struct Rprof<'a> {
    log: Arc<Log>,
    timing: Timing,
    queue: &'a Queue,
    encoder: &'a Encoder,
    /// The file was read, and is freed, up to this offset.
    offset: u64,
    /// The start of a line that is not complete yet.
    text: Vec<u8>,
    follower: Follower,
    /// The number of samples of this chunk that the queue has counted.
    counted: usize,
    begin: (Instant, SystemTime),
    /// Whether R has opened the file.
    has_begun: bool,
    /// The time of the last tick, on two clocks: the second one also runs while the system is suspended.
    last: (Instant, Duration),
}

impl<'a> Rprof<'a> {
    pub fn open(
        timing: Timing,
        queue: &'a Queue,
        encoder: &'a Encoder,
        log: Arc<Log>,
    ) -> Rprof<'a> {
        let now = Instant::now();
        Rprof {
            log,
            timing,
            queue,
            encoder,
            offset: 0,
            text: Vec::new(),
            follower: Follower::default(),
            counted: 0,
            begin: (now, SystemTime::now()),
            has_begun: false,
            last: (now, system::boot_time()),
        }
    }

    /// Reads what R has written.
    fn drain(&mut self) -> Result<()> {
        let mut room = filled(PIECE, 0, WHAT)?;
        let before = self.offset;
        loop {
            let read = self.log.read(self.offset, &mut room);
            let count = read.map_err(|error| failed(&error))?;
            if count == 0 {
                break;
            }
            self.offset += count as u64;
            self.text
                .try_extend(room.get(..count).unwrap_or_default(), WHAT)?;
            self.take_lines()?;
        }
        match self.offset > before {
            true => self.log.free(self.offset).map_err(|error| failed(&error)),
            false => Ok(()),
        }
    }

    fn take_lines(&mut self) -> Result<()> {
        loop {
            let followed = self.follower.take(&self.text)?;
            self.text.drain(..followed.bytes);
            self.count(self.follower.samples());
            if !followed.is_end {
                return Ok(());
            }
            // R's profiler was restarted.
            self.cut(Instant::now())?;
        }
    }

    fn count(&mut self, samples: usize) {
        for _ in self.counted..samples {
            self.queue.took(false);
        }
        self.counted = self.counted.max(samples);
    }

    /// Ends the current chunk and starts a new one.
    fn cut(&mut self, end: Instant) -> Result<()> {
        if !self.follower.is_empty() {
            let mut profile = self.follower.part()?;
            self.count(profile.samples.len());
            let complete = self.complete(&mut profile, end);
            self.queue
                .add(complete.and_then(|()| self.encoder.encode(&profile)));
        }
        self.start();
        Ok(())
    }

    fn start(&mut self) {
        self.counted = 0;
        self.begin = (Instant::now(), SystemTime::now());
    }

    /// Adds the source and the times, in the same form as the reader does.
    fn complete(&self, profile: &mut Profile, end: Instant) -> Result<()> {
        take_labels(profile, &|| false)?;
        let (begin, since) = self.begin;
        let event = self.timing.event;
        let types = [COUNT, (event.name(), "nanoseconds")];
        // R may have rounded the interval.
        let period = profile
            .sources
            .first()
            .and_then(|source| source.period.as_ref());
        let period = period.and_then(Period::nanoseconds);
        let period = period.unwrap_or(self.timing.interval.as_nanos() as f64);
        let pid = i32::try_from(process::id()).unwrap_or(0);
        let mut source = own_source(pid, event, period, &types, profile)?;
        let since = since.duration_since(UNIX_EPOCH).ok();
        source.timestamp = since.map(|since| since.as_secs_f64());
        let duration = end.saturating_duration_since(begin).as_nanos();
        source.duration = i64::try_from(duration).ok();
        if let Some(only) = profile.sources.first_mut() {
            *only = source;
        }
        let mut times = Values::absent(event.name(), "nanoseconds", 0)?;
        times.column.try_fill(profile.samples.len(), period, WHAT)?;
        profile.values.try_push(times, WHAT)
    }
}

fn failed(error: &std::io::Error) -> Error {
    Error::Process(message!("The lines of `Rprof()` cannot be read: {error}."))
}

impl Recorder for Rprof<'_> {
    fn pause(&self) -> Duration {
        self.timing.every.min(LOOK)
    }

    fn alarm(&self) -> Option<&Alarm> {
        None
    }

    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn tick(&mut self) -> Result<()> {
        let (now, boot) = (Instant::now(), system::boot_time());
        let (last, last_boot) = std::mem::replace(&mut self.last, (now, boot));
        let is_written = self.log.is_written();
        self.has_begun |= is_written;
        self.drain()?;
        if self.has_begun && !is_written {
            self.queue.paused(now.saturating_duration_since(last));
        }
        // Ticks may be slightly early or late.
        let is_time =
            now.saturating_duration_since(self.begin.0) + self.pause() / 2 >= self.timing.every;
        if boot.saturating_sub(last_boot) > GAP + self.pause() {
            self.cut(last)?;
        } else if is_time && !self.follower.is_pending() {
            self.cut(now)?;
        }
        Ok(())
    }

    fn recover(&mut self, error: Error) -> Result<()> {
        self.queue.add(Err(error));
        self.text = Vec::new();
        self.start();
        self.follower.skip()
    }

    fn finish(&mut self) -> Result<()> {
        self.drain()?;
        self.cut(Instant::now())
    }
}

impl Drop for Rprof<'_> {
    fn drop(&mut self) {
        self.log.seal();
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;
    use crate::queue::Counts;
    use crate::sink::To;
    use profile_core::formats::{self, Input, otlp};
    use profile_core::io::input::Origin;
    use profile_reader::recorder::Event;
    use std::fs::OpenOptions;
    use std::io::Write;

    const HEADER: &str = "line profiling: sample.interval=20000\n";

    /// The number of chunks, and the counts after a check of their sum.
    fn counts(queue: &Queue) -> (usize, Counts) {
        let (counts, chunks, waiting, _) = queue.all();
        let sum = counts.sent + waiting + counts.open + counts.dropped();
        assert_eq!(counts.taken, sum);
        (chunks, counts)
    }

    fn sum(profile: &Profile, name: &str, unit: &str) -> f64 {
        profile.value(name, unit).unwrap().column.iter().sum()
    }

    #[test]
    fn each_line_is_a_sample_of_one_chunk() {
        let log = Arc::new(Log::create().unwrap());
        let queue = Queue::new(1 << 20);
        let encoder = Encoder::new(&To::R, Vec::new());
        let timing = Timing {
            interval: Duration::from_millis(10),
            every: Duration::from_secs(3600),
            event: Event::Wall,
        };
        let mut rprof = Rprof::open(timing, &queue, &encoder, Arc::clone(&log));
        rprof.tick().unwrap();
        let mut r = OpenOptions::new().append(true).open(log.path()).unwrap();
        let mut write = |text: &str| {
            r.write_all(text.as_bytes()).unwrap();
            rprof.tick().unwrap();
            let (chunks, counts) = counts(&queue);
            (chunks, counts.taken, counts.open)
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
        assert_eq!(counts(&queue).1.paused, Duration::ZERO);
        drop(r);
        rprof.tick().unwrap();
        assert!(counts(&queue).1.paused > Duration::ZERO);
        rprof.finish().unwrap();
        assert_eq!(counts(&queue).0, 2);
        drop(rprof);
        let mut late = OpenOptions::new().append(true).open(log.path()).unwrap();
        assert!(late.write_all(b"\"f\" \n").is_err());

        for samples in [3.0, 2.0] {
            let chunk = queue.front().unwrap();
            let input = Input::Bytes(&chunk.bytes);
            let read = formats::read(input, Some(&otlp::FORMAT), Origin::default(), &|| false);
            let (profile, problems) = read.unwrap();
            assert!(problems.is_empty());
            assert_eq!(sum(&profile, "samples", "count"), samples);
            // The interval that R reports, not the one that was requested.
            assert_eq!(sum(&profile, "wall", "nanoseconds"), samples * 2e7);
            assert!(profile.value("cpu", "nanoseconds").is_none());
            let source = profile.sources.first().unwrap();
            assert!(source.duration.unwrap() > 0 && source.timestamp.unwrap() > 1e9);
            assert_eq!(source.default_type.as_deref(), Some("wall"));
            queue.sent(chunk.number, 0);
        }
        assert_eq!(counts(&queue).1.sent, 5);
    }
}
