//! Reads the file of a recording when it has ended.

use super::{
    GROWS, HAS_ENDED, HEAD, Head, IS_COMPLETE, LENGTH_BITS, MOST, MOST_TEXT, SIGNATURE, SLOT,
    SLOTS_END, VALUES,
};
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryGrow, filled};
use profile_core::message;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What a process has counted for a stack.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    pub pid: u64,
    pub parent: u64,
    pub date: u64,
    stack: u64,
    reason: u64,
    pub grows: bool,
    pub is_complete: bool,
    pub values: [u64; VALUES],
}

/// The file of a recording, for the process that reads it.
pub struct Read {
    file: File,
    pub pid: u64,
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
        let [signature, count, _, lost, _, pid] = numbers(&head);
        if signature != SIGNATURE {
            return Err(Error::Unsupported(message!(
                "`{}` is not a recording of allocations.",
                path.display()
            )));
        }
        file.write_all_at(&1_u64.to_ne_bytes(), HAS_ENDED as u64)
            .map_err(failed)?;
        let mut bytes = filled(count.min(MOST) as usize * SLOT, 0)?;
        file.read_exact_at(&mut bytes, HEAD as u64)
            .map_err(failed)?;
        let mut slots = Vec::new();
        for slot in bytes.chunks_exact(SLOT) {
            let (about, values) = slot.split_at(SLOT - 8 * VALUES);
            let [pid, parent, date, stack, reason, flags] = numbers(about);
            slots.try_push(Counted {
                pid,
                parent,
                date,
                stack,
                reason,
                grows: flags & GROWS != 0,
                is_complete: flags & IS_COMPLETE != 0,
                values: numbers(values),
            })?;
        }
        Ok(Read {
            file,
            pid,
            slots,
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
        let read = self
            .file
            .read_exact_at(&mut text, SLOTS_END as u64 + offset);
        Ok((length > 0 && read.is_ok()).then_some(text))
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
