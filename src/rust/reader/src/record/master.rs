//! The process for which others work, if it records itself: a source without samples, and the CPU time that it had used
//! at each tick, from which the times of its own samples follow; and where it is at each tick.

use crate::process::{Process, ProcessMemory, Thread, Watched, cpu_time_of_process};
use crate::record::follow::{self, Followed};
use crate::record::role;
use crate::record::session::open_reader;
use crate::record::slot::Slot;
use crate::record::source::source;
use crate::record::stop_and_read::{Outcome, Which, read};
use crate::record::threads::ThreadWatch;
use crate::recorded::result::ClockReading;
use crate::recorded::scheduled::Schedule;
use crate::recorded::settings::Settings;
use crate::recorded::source::attribute;
use crate::recorded::states::Stops;
use crate::recorded::threads::about_threads;
use crate::stack::reader::StackReader;
use profile_core::analysis::parallel::Track;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_core::model::{PROCESS_ROLE, Profile, SourceId, ValueKind};
use std::time::{SystemTime, UNIX_EPOCH};

pub struct Master {
    process: Process,
    source: SourceId,
    /// Its stacks are not recorded; they show where it is. It also opens forks.
    reader: Option<StackReader<ProcessMemory>>,
    watched: Option<Watching>,
    readings: Vec<ClockReading>,
    threads: ThreadWatch,
}

/// The thread that runs R. It is never stopped.
struct Watching {
    thread: Thread,
    schedule: Schedule,
    slot: Slot,
}

impl Master {
    /// Adds it to the profile, as the first source.
    pub fn open(process: Process, settings: &Settings, profile: &mut Profile) -> Result<Master> {
        let mut source = source(&process, settings, profile)?;
        let role = attribute(PROCESS_ROLE, ValueKind::String, role::MASTER, profile)?;
        source.attributes.try_push(role)?;
        let source = profile.add_source(source)?;
        let mappings = process.mappings();
        let reader = mappings.and_then(|mappings| open_reader(&process, &mappings));
        let mut reader = reader.ok();
        let watched = match &mut reader {
            Some(reader) => watch(&process, reader)?,
            None => None,
        };
        Ok(Master {
            reader,
            watched,
            threads: ThreadWatch::start(&process, process.pid)?,
            process,
            source,
            readings: Vec::new(),
        })
    }

    pub fn pid(&self) -> i32 {
        self.process.pid
    }

    /// Its source in the profile.
    pub fn source_id(&self) -> SourceId {
        self.source
    }

    pub fn may_be_read(&self) -> bool {
        self.process.may_be_read()
    }

    /// A reader of a fork of this process.
    pub fn reader_of_fork(&self, fork: &Process) -> Result<Option<StackReader<ProcessMemory>>> {
        match &self.reader {
            Some(reader) => reader.of_fork(ProcessMemory::new(fork.pid)),
            None => Ok(None),
        }
    }

    pub fn has_ended(&self) -> bool {
        self.process.state().is_none()
    }

    /// Looks where it is, if it can be read, and counts ticks for it. It goes on meanwhile.
    pub fn look(&mut self, ticks: u32) -> Result<()> {
        let (Some(reader), Some(watched)) = (&mut self.reader, &mut self.watched) else {
            return Ok(());
        };
        let Watching {
            thread,
            schedule,
            slot,
        } = watched;
        let Some(mut activity) = thread.activity() else {
            return Ok(());
        };
        let follow = |r: &mut _, memory: &mut _| follow::follow(thread, r, memory);
        if activity.has_others && reader.locate(follow)? == Followed::Other {
            schedule.skip(thread.scheduled());
            match thread.activity() {
                Some(now) => activity = now,
                None => return Ok(()),
            }
        }
        let since = schedule.read(activity.scheduled);
        if slot.must_read(since) {
            let mut pauses = Vec::new();
            let outcome = read(
                thread,
                activity.state,
                Which::All,
                reader,
                None,
                &mut pauses,
            )?;
            if let Outcome::Stack { .. } = outcome {
                slot.see(reader.stack(), reader.texts());
            }
        }
        slot.end_look(activity.state, since);
        slot.count(ticks)
    }

    /// Where it was at each tick, if it could be read.
    pub fn take_track(&mut self) -> Result<Option<Track>> {
        let watched = self.watched.take();
        watched
            .map(|watched| watched.slot.into_track(false))
            .transpose()
    }

    /// Reads its clock. ClockReadings between which it has not run are left out.
    pub fn tick(&mut self) -> Result<()> {
        self.threads.look(self.process.pid)?;
        let date = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let date = date.and_then(|date| i64::try_from(date.as_nanos()).ok());
        let (Some(date), Some(cpu)) = (date, cpu_time_of_process(self.process.pid)) else {
            return Ok(());
        };
        let reading = ClockReading { date, cpu };
        match &mut self.readings[..] {
            [.., before, last] if before.cpu == cpu && last.cpu == cpu => *last = reading,
            _ => self.readings.try_push(reading)?,
        }
        Ok(())
    }

    /// Ends: adds the CPU time of its threads to its source, and returns the readings.
    pub fn finish(mut self, profile: &mut Profile) -> Result<Vec<ClockReading>> {
        self.threads.read(self.process.pid)?;
        let about = about_threads(&self.threads.end(true)?, profile)?;
        if let Some(source) = profile.sources.get_mut(self.source.row()) {
            source.attributes.try_extend_from(about.into_iter())?;
        }
        Ok(self.readings)
    }
}

fn watch(process: &Process, reader: &mut StackReader<ProcessMemory>) -> Result<Option<Watching>> {
    let open = |r: &mut _, memory: &mut _| follow::open(process, r, memory, Stops::Never);
    let Ok(thread) = reader.locate(open) else {
        return Ok(None);
    };
    let mut schedule = Schedule::default();
    schedule.skip(thread.scheduled());
    Ok(Some(Watching {
        thread,
        schedule,
        slot: Slot::new(None, 0)?,
    }))
}
