//! The process for which others work, if it records itself: a source without samples, and the CPU time that it had used
//! at each tick, from which the times of its own samples follow.

use crate::process::{Process, ProcessMemory, cpu_time_of_process};
use crate::record::role;
use crate::record::session::open_reader;
use crate::record::source::source;
use crate::record::threads::ThreadWatch;
use crate::recorded::result::ClockReading;
use crate::recorded::settings::Settings;
use crate::recorded::source::attribute;
use crate::recorded::threads::about_threads;
use crate::stack::reader::StackReader;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_core::model::{PROCESS_ROLE, Profile, SourceId, ValueKind};
use std::time::{SystemTime, UNIX_EPOCH};

pub struct Master {
    process: Process,
    source: SourceId,
    /// It is not used to record this process, but to open its forks.
    reader: Option<StackReader<ProcessMemory>>,
    readings: Vec<ClockReading>,
    threads: ThreadWatch,
}

impl Master {
    /// Adds it to the profile, as the first source.
    pub fn open(process: Process, settings: &Settings, profile: &mut Profile) -> Result<Master> {
        let mut source = source(&process, settings, profile)?;
        let role = attribute(PROCESS_ROLE, ValueKind::String, role::MASTER, profile)?;
        source.attributes.try_push(role)?;
        let source = profile.add_source(source)?;
        let mappings = process.mappings();
        Ok(Master {
            reader: mappings
                .and_then(|mappings| open_reader(&process, &mappings))
                .ok(),
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
