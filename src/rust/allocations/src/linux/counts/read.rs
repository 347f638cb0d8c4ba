//! Reads the file of a recording when it has ended.

use super::{
    GROWS, HAS_ENDED, HEAD, Head, IS_COMPLETE, LENGTH_BITS, MOST_PROCESSES, MOST_SLOTS, MOST_TEXT,
    PROCESS, Peak, SIGNATURE, SLOT, SLOTS, TEXTS, VALUES,
};
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryCollect, filled};
use profile_core::message;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A process that has counted.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    pub pid: u64,
    pub parent: u64,
    pub date: u64,
    pub peak: Peak,
    /// About how much time it took to record, in nanoseconds.
    pub time: u64,
}

/// What a process has counted for a stack.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// The row of its process.
    pub process: usize,
    stack: u64,
    reason: u64,
    pub grows: bool,
    pub is_complete: bool,
    /// The number of the peak when the values were set.
    pub peak: u64,
    pub values: [u64; VALUES],
}

/// The file of a recording, for the process that reads it.
pub struct Read {
    file: File,
    /// The first one has begun the recording.
    pub processes: Vec<Counter>,
    pub slots: Vec<Counted>,
    pub lost: u64,
}

impl Read {
    /// Opens the file. Processes that still count into it end to do so.
    pub fn open(path: &Path) -> Result<Read> {
        let failed = |source| Error::Open {
            path: path.to_path_buf(),
            source,
        };
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(failed)?;
        let mut head = [0; size_of::<Head>()];
        file.read_exact_at(&mut head, 0).map_err(failed)?;
        let [signature, processes, slots, _, lost] = numbers(&head);
        if signature != SIGNATURE {
            return Err(Error::Unsupported(message!(
                "`{}` is not a recording of allocations.",
                path.display()
            )));
        }
        file.write_all_at(&1_u64.to_ne_bytes(), HAS_ENDED as u64)
            .map_err(failed)?;
        let rows = |start: usize, count: u64, size: usize| {
            let mut bytes = filled(count as usize * size, 0)?;
            file.read_exact_at(&mut bytes, start as u64)
                .map_err(failed)?;
            Ok::<_, Error>(bytes)
        };
        let processes = rows(HEAD, processes.min(MOST_PROCESSES), PROCESS)?;
        let slots = rows(SLOTS, slots.min(MOST_SLOTS), SLOT)?;
        Ok(Read {
            processes: processes.chunks_exact(PROCESS).map(counter).try_vec()?,
            slots: slots.chunks_exact(SLOT).map(counted).try_vec()?,
            file,
            lost,
        })
    }

    /// The stack of a slot, see [`super::record`]. `None` if its process has ended before it was written.
    pub fn stack(&self, slot: &Counted) -> Result<Option<Vec<u8>>> {
        self.text(slot.stack)
    }

    /// Why the vectors were copied.
    pub fn reason(&self, slot: &Counted) -> Result<Option<String>> {
        let text = self.text(slot.reason)?;
        Ok(text.and_then(|text| String::from_utf8(text).ok()))
    }

    fn text(&self, at: u64) -> Result<Option<Vec<u8>>> {
        let (offset, length) = (at >> LENGTH_BITS, at & MOST_TEXT);
        let mut text = filled(length as usize, 0)?;
        let read = self.file.read_exact_at(&mut text, TEXTS as u64 + offset);
        Ok((length > 0 && read.is_ok()).then_some(text))
    }
}

fn counter(row: &[u8]) -> Counter {
    let [pid, parent, date, bytes, at, reached, number, time] = numbers(row);
    Counter {
        pid,
        parent,
        date,
        peak: Peak {
            bytes,
            at,
            reached,
            number,
        },
        time,
    }
}

fn counted(row: &[u8]) -> Counted {
    let (about, values) = row.split_at(SLOT - 8 * VALUES);
    let [process, stack, reason, flags, peak] = numbers(about);
    Counted {
        process: process as usize,
        stack,
        reason,
        grows: flags & GROWS != 0,
        is_complete: flags & IS_COMPLETE != 0,
        peak,
        values: numbers(values),
    }
}

/// The first numbers of these bytes.
fn numbers<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
        *number = bytes.try_into().map_or(0, u64::from_ne_bytes);
    }
    numbers
}
