//! The file into which all processes of a recording count: the recorded one and, if it is asked for, its forks. The file is
//! mapped into their memory, so what a process has counted is there however it ends.
//!
//! | part      | content                                                                                     |
//! |-----------|---------------------------------------------------------------------------------------------|
//! | head      | the numbers of a [`Head`]                                                                   |
//! | processes | [`MOST_PROCESSES`] times the numbers of a [`Process`]                                       |
//! | slots     | [`MOST_SLOTS`] times the numbers of a [`Slot`]: what a process has counted for a stack      |
//! | texts     | the stacks and the reasons of slots, one after the other                                    |

mod read;

pub use read::{Counted, Counter, Read};

use profile_core::error::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::parent_id;
use std::path::Path;
use std::process;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

const MOST_PROCESSES: u64 = 1 << 12;
const MOST_SLOTS: u64 = 1 << 18;
const SIGNATURE: u64 = u64::from_le_bytes(*b"R allocs");

/// The numbers of a stack.
pub const VALUES: usize = 9;

#[repr(C)]
#[derive(Debug, Default)]
struct Head {
    signature: AtomicU64,
    /// The numbers of processes and of slots, and the size of the texts.
    processes: AtomicU64,
    slots: AtomicU64,
    bytes: AtomicU64,
    /// Vectors that could not be recorded.
    lost: AtomicU64,
    /// 1 when the recording has ended.
    has_ended: AtomicU64,
}

/// A process that counts. The first one has begun the recording.
#[repr(C)]
#[derive(Debug, Default)]
struct Process {
    pid: AtomicU64,
    parent: AtomicU64,
    /// When it was added, in nanoseconds since 1970.
    date: AtomicU64,
    /// See [`Peak`].
    bytes: AtomicU64,
    at: AtomicU64,
    reached: AtomicU64,
    number: AtomicU64,
    /// About how much time it took to record, in nanoseconds.
    time: AtomicU64,
}

#[repr(C)]
#[derive(Debug, Default)]
struct Slot {
    process: AtomicU64,
    /// See [`text_at`]; 0 if there is none.
    stack: AtomicU64,
    reason: AtomicU64,
    /// See [`GROWS`] and [`IS_COMPLETE`].
    flags: AtomicU64,
    /// The number of the process's peak when the values were set.
    peak: AtomicU64,
    values: [AtomicU64; VALUES],
}

/// When a process had the most bytes in vectors that it had allocated and not freed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Peak {
    pub bytes: u64,
    /// When that was, in nanoseconds since 1970.
    pub at: u64,
    /// The most bytes right after a garbage collection.
    pub reached: u64,
    /// It is higher by one than that of the last peak.
    pub number: u64,
}

/// Vectors become larger and larger.
const GROWS: u64 = 1;
/// The process has ended the recording, after a garbage collection.
const IS_COMPLETE: u64 = 2;

const HEAD: usize = 4096;
const PROCESS: usize = size_of::<Process>();
const SLOTS: usize = HEAD + MOST_PROCESSES as usize * PROCESS;
const SLOT: usize = size_of::<Slot>();
const TEXTS: usize = SLOTS + MOST_SLOTS as usize * SLOT;
const HAS_ENDED: usize = std::mem::offset_of!(Head, has_ended);

const _: () = assert!(size_of::<Head>() <= HEAD && SLOT == 8 * (5 + VALUES));

/// The file of a recording, for processes that count.
#[derive(Debug)]
pub struct Counts {
    file: File,
    map: NonNull<u8>,
}

// SAFETY: the mapping is not bound to a thread.
unsafe impl Send for Counts {}

/// The number of a process, and of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessId(u32);
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotId(u32);

impl Counts {
    /// Creates the file, which only this user can read.
    pub fn create(path: &Path) -> Result<Counts> {
        let failed = |source| Error::Write {
            path: path.to_path_buf(),
            source,
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(path).map_err(failed)?;
        file.set_len(TEXTS as u64).map_err(failed)?;
        allocate(&file, 0, HEAD).map_err(failed)?;
        // SAFETY: a new mapping, of a file that nobody makes shorter.
        let map = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let (at, fd) = (std::ptr::null_mut(), file.as_raw_fd());
            libc::mmap(at, TEXTS, access, libc::MAP_SHARED, fd, 0)
        };
        let map = NonNull::new(map.cast()).filter(|_| map != libc::MAP_FAILED);
        let map = map.ok_or_else(|| failed(io::Error::last_os_error()))?;
        let counts = Counts { file, map };
        counts.head().signature.store(SIGNATURE, Ordering::Release);
        Ok(counts)
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping begins with it, its blocks are allocated, and all its fields are atomic.
        unsafe { self.map.cast().as_ref() }
    }

    fn process(&self, id: ProcessId) -> &Process {
        // SAFETY: `add_process()` has given the number, so it is within the mapping and its blocks are allocated. All fields
        // are atomic.
        unsafe {
            self.map
                .add(HEAD)
                .cast::<Process>()
                .add(id.0 as usize)
                .as_ref()
        }
    }

    fn slot(&self, id: SlotId) -> &Slot {
        // SAFETY: as above, by `add()`.
        unsafe {
            self.map
                .add(SLOTS)
                .cast::<Slot>()
                .add(id.0 as usize)
                .as_ref()
        }
    }

    /// Adds this process. `None` if there is no room.
    pub fn add_process(&self, date: u64) -> Option<ProcessId> {
        let number = next(&self.head().processes, MOST_PROCESSES)?;
        // Without a block of the disk, writing to the mapping would end the process.
        allocate(&self.file, HEAD + number as usize * PROCESS, PROCESS).ok()?;
        let id = ProcessId(number);
        let process = self.process(id);
        process.date.store(date, Ordering::Relaxed);
        process.parent.store(parent_id().into(), Ordering::Relaxed);
        process.pid.store(process::id().into(), Ordering::Release);
        Some(id)
    }

    /// Adds a slot for a stack of a process. `None` if there is no room.
    pub fn add(&self, process: ProcessId, stack: &[u8]) -> Option<SlotId> {
        let stack = self.append(stack)?;
        let number = next(&self.head().slots, MOST_SLOTS)?;
        allocate(&self.file, SLOTS + number as usize * SLOT, SLOT).ok()?;
        let id = SlotId(number);
        let slot = self.slot(id);
        slot.process.store(process.0.into(), Ordering::Relaxed);
        slot.stack.store(stack, Ordering::Release);
        Some(id)
    }

    /// Sets the numbers of a slot, when its process has had its peak of this number.
    pub fn set(&self, id: SlotId, values: [u64; VALUES], grows: bool, peak: u64) {
        let slot = self.slot(id);
        for (number, value) in slot.values.iter().zip(values) {
            number.store(value, Ordering::Relaxed);
        }
        slot.flags
            .store(if grows { GROWS } else { 0 }, Ordering::Relaxed);
        slot.peak.store(peak, Ordering::Relaxed);
    }

    /// Sets the peak of a process.
    pub fn set_peak(&self, id: ProcessId, peak: Peak) {
        let process = self.process(id);
        process.bytes.store(peak.bytes, Ordering::Relaxed);
        process.at.store(peak.at, Ordering::Relaxed);
        process.reached.store(peak.reached, Ordering::Relaxed);
        process.number.store(peak.number, Ordering::Relaxed);
    }

    /// Sets about how much time it took to record, in nanoseconds.
    pub fn set_time(&self, id: ProcessId, time: u64) {
        self.process(id).time.store(time, Ordering::Relaxed);
    }

    /// Sets why the vectors of a slot were copied.
    pub fn explain(&self, id: SlotId, reason: &str) {
        if let Some(reason) = self.append(reason.as_bytes()) {
            self.slot(id).reason.store(reason, Ordering::Release);
        }
    }

    /// The values of this slot do not change any more.
    pub fn complete(&self, id: SlotId) {
        self.slot(id).flags.fetch_or(IS_COMPLETE, Ordering::Relaxed);
    }

    pub fn lose(&self) {
        self.head().lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether another process has read the file, or the recorded one has ended the recording.
    pub fn has_ended(&self) -> bool {
        self.head().has_ended.load(Ordering::Acquire) != 0
    }

    fn append(&self, text: &[u8]) -> Option<u64> {
        let length = u64::try_from(text.len()).ok()?;
        if length > MOST_TEXT {
            return None;
        }
        let offset = self.head().bytes.fetch_add(length, Ordering::AcqRel);
        let at = (TEXTS as u64).checked_add(offset)?;
        self.file.write_all_at(text, at).ok()?;
        Some(text_at(offset, length))
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        // SAFETY: this mapping is not used any more.
        unsafe { libc::munmap(self.map.as_ptr().cast(), TEXTS) };
    }
}

/// Takes the next number below this maximum.
fn next(count: &AtomicU64, most: u64) -> Option<u32> {
    let number = count.fetch_add(1, Ordering::AcqRel);
    if number < most {
        return u32::try_from(number).ok();
    }
    count.fetch_sub(1, Ordering::AcqRel);
    None
}

/// Lets the file system allocate a part of a file.
fn allocate(file: &File, offset: usize, size: usize) -> io::Result<()> {
    // SAFETY: an open file.
    let failed = unsafe {
        libc::posix_fallocate(file.as_raw_fd(), offset as libc::off_t, size as libc::off_t)
    };
    match failed {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// The bits for the length of a text, of which at least one is set.
const LENGTH_BITS: u32 = 24;
const MOST_TEXT: u64 = (1 << LENGTH_BITS) - 1;

/// The position and the length of a text as one number, so that a process that ends leaves both or none.
fn text_at(offset: u64, length: u64) -> u64 {
    offset << LENGTH_BITS | length
}

#[cfg(test)]
mod tests;
