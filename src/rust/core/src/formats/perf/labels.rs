//! The labels of a sample: its command, process, thread, processor and time.

use super::block::Block;
use crate::error::Result;
use crate::formats::problems::ProblemKind;
use crate::formats::text_file::File;
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::{Label, StringId};

/// The keys and the unit of labels.
#[derive(Clone, Copy)]
struct Keys {
    comm: StringId,
    pid: StringId,
    tid: StringId,
    cpu: StringId,
    time: StringId,
    nanoseconds: StringId,
}

#[derive(Default)]
pub struct Labels {
    keys: Option<Keys>,
    /// The first and the last time.
    times: Option<(i64, i64)>,
}

impl Labels {
    /// The time from the first to the last sample.
    pub fn duration(&self) -> Option<i64> {
        self.times.and_then(|(first, last)| last.checked_sub(first))
    }

    fn keys(&mut self, file: &mut File) -> Result<Keys> {
        if let Some(keys) = self.keys {
            return Ok(keys);
        }
        let mut key = |name| file.profile.strings.intern(name);
        let keys = Keys {
            comm: key("comm")?,
            pid: key("pid")?,
            tid: key("tid")?,
            cpu: key("cpu")?,
            time: key("time")?,
            nanoseconds: key("nanoseconds")?,
        };
        Ok(*self.keys.insert(keys))
    }

    /// Adds the labels of the sample in this row.
    pub fn add(&mut self, row: usize, block: &Block, file: &mut File) -> Result<()> {
        let keys = self.keys(file)?;
        let mut add = |key, str, num, unit| {
            let label = Label {
                str,
                num,
                unit,
                ..Label::new(row, key)
            };
            file.profile.labels.try_push(label)
        };
        if block.comm.is_some() {
            add(keys.comm, block.comm, None, None)?;
        }
        for (key, number) in [
            (keys.pid, block.pid),
            (keys.tid, block.tid),
            (keys.cpu, block.cpu),
        ] {
            if let Some(number) = number.and_then(|n| i64::try_from(n).ok()) {
                add(key, None, Some(number), None)?;
            }
        }
        let Some(time) = block.time else {
            return Ok(());
        };
        let Ok(time) = i64::try_from(time) else {
            file.note(ProblemKind::OddTime, message!("{time}").as_bytes());
            return Ok(());
        };
        add(keys.time, None, Some(time), Some(keys.nanoseconds))?;
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
        Ok(())
    }
}
