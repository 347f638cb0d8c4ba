//! What a thread waits for: the system call that it is in, and what its file descriptors refer to.
//!
//! - [`call`]: the system call and its arguments;
//! - [`descriptors`]: what a file descriptor is; [`sockets`]: the other end of a socket, and of [`own`] ones;
//! - [`ends`]: names of what is at the other end.
//!
//! Nothing is stopped, and all is read after the fact: where the thread has gone on meanwhile, nothing or the next wait is
//! found. The kernel calls a thread that waits for a processor running, so that this is no wait here.

#[cfg(test)]
mod blocked_tests;
mod call;
mod descriptors;
mod ends;
mod own;
mod sockets;
#[cfg(test)]
mod tests;

use super::folder::file_of;
use super::memory::ProcessMemory;
use super::proc::Status;
use crate::recorded::states::State;
use crate::recorded::waits::{Wait, WaitKind, WaitNames};
use call::{Call, Waiting};
use ends::Ends;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryText};
use profile_core::message;
use profile_runtime::memory::Memory;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// The most file descriptors of one call that are looked up.
const MOST_DESCRIPTORS: usize = 64;
/// The most names of one wait.
const MOST_NAMES: usize = 3;

/// Looks what a thread waits for.
#[derive(Debug)]
pub struct Waits {
    pid: i32,
    names: WaitNames,
    ends: Ends,
    is_refused: bool,
    /// The file with the system call of this thread. It remains open, since it is read often.
    file: Option<(i32, File)>,
    /// What was noticed last.
    noticed: Option<Noticed>,
}

#[derive(Debug)]
enum Noticed {
    Wait(WaitKind),
    Call(Call),
}

impl Waits {
    pub fn new(pid: i32, names: WaitNames) -> Waits {
        Waits {
            pid,
            names,
            ends: Ends::new(pid, names),
            is_refused: false,
            file: None,
            noticed: None,
        }
    }

    /// Whether the system does not permit to look.
    pub fn are_refused(&self) -> bool {
        self.is_refused
    }

    /// Which names waits have, and other processes that may be at the other end of a pipe or a socket, besides its
    /// children. Those have names that end in their IDs, see [`process_name()`](crate::recorded::waits::process_name).
    pub fn set_names(&mut self, names: WaitNames, others: &[i32]) -> Result<()> {
        self.names = names;
        self.ends.set_names(names, others)
    }

    /// What a thread waits for; `None` if it runs or has ended.
    #[cfg(test)]
    pub fn look(&mut self, thread: i32) -> Result<Option<Wait>> {
        Ok(if self.notice(thread) {
            Some(self.explain()?)
        } else {
            None
        })
    }

    /// Notices the system call that a thread is in. Returns whether it waits.
    pub fn notice(&mut self, thread: i32) -> bool {
        self.noticed = if self.is_refused {
            Some(Noticed::Wait(WaitKind::Unknown))
        } else {
            self.read(thread)
        };
        self.noticed.is_some()
    }

    fn read(&mut self, thread: i32) -> Option<Noticed> {
        let mut bytes = [0; 256];
        match self.read_file(thread, &mut bytes) {
            Ok(length) => {
                let text = std::str::from_utf8(bytes.get(..length)?).ok()?;
                let call = Call::parse(text)?;
                if call.number >= 0 {
                    return Some(Noticed::Call(call));
                }
                // Outside of a call, it waits only for a page that is read from a file.
                let is_reading = state_of(self.pid, thread) == Some(State::WaitsForDevice);
                is_reading.then_some(Noticed::Wait(WaitKind::PageFault))
            }
            Err(error) if is_refusal(&error) => {
                self.is_refused = true;
                Some(Noticed::Wait(WaitKind::Unknown))
            }
            Err(_) => None,
        }
    }

    fn read_file(&mut self, thread: i32, bytes: &mut [u8]) -> io::Result<usize> {
        if self.file.as_ref().is_none_or(|(of, _)| *of != thread) {
            let path = file_of(self.pid, &message!("task/{thread}/syscall"));
            self.file = Some((thread, File::open(path)?));
        }
        match &self.file {
            Some((_, file)) => file.read_at(bytes, 0),
            None => Ok(0),
        }
    }

    /// What the call that was noticed last waits for.
    pub fn explain(&mut self) -> Result<Wait> {
        match self.noticed.take() {
            Some(Noticed::Call(call)) => self.of_call(&call),
            Some(Noticed::Wait(kind)) => Ok(Wait::of(kind)),
            None => Ok(Wait::of(WaitKind::Unknown)),
        }
    }
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied)
}

fn state_of(pid: i32, thread: i32) -> Option<State> {
    let bytes = fs::read(file_of(pid, &message!("task/{thread}/stat"))).ok()?;
    Status::parse(&bytes).map(|status| status.state)
}

impl Waits {
    fn of_call(&mut self, call: &Call) -> Result<Wait> {
        let pid = self.pid;
        match call.waiting() {
            Waiting::Sleep => Ok(Wait::of(WaitKind::Sleep)),
            Waiting::Futex => Ok(Wait {
                is_for_threads: true,
                ..Wait::of(WaitKind::Lock)
            }),
            Waiting::Other => Ok(Wait::of(WaitKind::Unknown)),
            Waiting::Path => Ok(Wait::of(WaitKind::File)),
            Waiting::Child(child) => Ok(Wait {
                name: match child.filter(|_| self.names != WaitNames::None) {
                    Some(child) => self.ends.name_of(child)?,
                    None => None,
                },
                ..Wait::of(WaitKind::Child)
            }),
            Waiting::Descriptor(number) => self.of_descriptors(&[number], WaitKind::Unknown),
            Waiting::FileLock(number) => Ok(Wait {
                kind: WaitKind::Lock,
                ..self.of_descriptors(&[number], WaitKind::Lock)?
            }),
            // Without descriptors, these calls only sleep.
            Waiting::Poll { address, count } => {
                let numbers = polled(pid, address, count)?;
                self.of_descriptors(&numbers, WaitKind::Sleep)
            }
            Waiting::Select { sets, count } => {
                let numbers = selected(pid, sets, count)?;
                self.of_descriptors(&numbers, WaitKind::Sleep)
            }
            Waiting::Epoll(number) => {
                let about = fs::read_to_string(file_of(pid, &message!("fdinfo/{number}")));
                let numbers = descriptors::watched(&about.unwrap_or_default(), MOST_DESCRIPTORS)?;
                self.of_descriptors(&numbers, WaitKind::Unknown)
            }
        }
    }

    /// The wait for any of these descriptors, `none` if there are none. What comes first in the list of kinds decides: a
    /// call that waits for a server also watches a pipe by which it can be woken.
    fn of_descriptors(&mut self, numbers: &[i32], none: WaitKind) -> Result<Wait> {
        let mut wait = Wait::of(none);
        let mut names: Vec<String> = Vec::new();
        let mut best = usize::MAX;
        for &number in numbers.iter().take(MOST_DESCRIPTORS) {
            let Some((kind, name)) = self.ends.of(number)? else {
                continue;
            };
            let rank = RANK
                .iter()
                .position(|&other| other == kind)
                .unwrap_or(RANK.len());
            if rank < best {
                best = rank;
                names.clear();
                wait.kind = kind;
            }
            let is_new = name.as_ref().is_some_and(|name| !names.contains(name));
            if let Some(name) = name.filter(|_| rank == best && is_new && names.len() < MOST_NAMES)
            {
                names.try_push(name)?;
            }
        }
        if !names.is_empty() {
            let mut joined = String::new();
            for (at, name) in names.iter().enumerate() {
                joined.try_push_str(if at > 0 { ", " } else { "" })?;
                joined.try_push_str(name)?;
            }
            wait.name = Some(joined);
        }
        Ok(wait)
    }
}

const RANK: [WaitKind; 4] = [
    WaitKind::Network,
    WaitKind::File,
    WaitKind::Pipe,
    WaitKind::Unknown,
];

/// The descriptors of `poll()`: structs of an `int` and two `short`s.
fn polled(pid: i32, address: u64, count: u64) -> Result<Vec<i32>> {
    const SIZE: usize = 8;
    let mut bytes = [0; MOST_DESCRIPTORS * SIZE];
    let length = usize::try_from(count).unwrap_or(0).min(MOST_DESCRIPTORS) * SIZE;
    let mut numbers = Vec::new();
    let read = bytes.get_mut(..length).unwrap_or_default();
    if !ProcessMemory::new(pid).read(address, read) {
        return Ok(numbers);
    }
    for entry in read.chunks_exact(SIZE) {
        let number = entry
            .first_chunk()
            .map_or(-1, |&four| i32::from_ne_bytes(four));
        // A negative number is ignored by the kernel.
        if number >= 0 {
            numbers.try_push(number)?;
        }
    }
    Ok(numbers)
}

/// The descriptors in the sets of `select()`, which are bits.
fn selected(pid: i32, sets: [u64; 3], count: u64) -> Result<Vec<i32>> {
    const MOST: usize = 128;
    let mut numbers = Vec::new();
    let count = usize::try_from(count).unwrap_or(0).min(8 * MOST);
    for set in sets.into_iter().filter(|&set| set != 0) {
        let mut bytes = [0_u8; MOST];
        let read = bytes.get_mut(..count.div_ceil(64) * 8).unwrap_or_default();
        if !ProcessMemory::new(pid).read(set, read) {
            continue;
        }
        for number in 0..count {
            let byte = read.get(number / 8).copied().unwrap_or(0);
            if byte & (1 << (number % 8)) != 0 {
                numbers.try_push(number as i32)?;
            }
        }
    }
    Ok(numbers)
}
