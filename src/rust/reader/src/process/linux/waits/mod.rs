//! What a thread waits for: the system call that it is in, and what its file descriptors refer to.
//!
//! - [`call`]: the system call and its arguments;
//! - [`descriptors`]: what a file descriptor is; [`sockets`]: the other end of a socket.
//!
//! Nothing is stopped, and all is read after the fact: where the thread has gone on meanwhile, nothing or the next wait is
//! found. The kernel calls a thread that waits for a processor running, so that this is no wait here.

mod call;
mod descriptors;
mod sockets;
#[cfg(test)]
mod tests;

use super::folder::file_of;
use super::memory::ProcessMemory;
use super::proc::{Process, Status};
use crate::recorded::states::State;
use crate::recorded::waits::{Wait, WaitKind};
use call::{Call, Waiting};
use descriptors::{Descriptor, descriptor};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryText};
use profile_core::message;
use profile_runtime::memory::Memory;
use std::fs;
use std::io;

/// The most file descriptors of one call that are looked up.
const MOST_DESCRIPTORS: usize = 64;
/// Programs that run others, and how many of them are looked through.
const SHELLS: [&str; 5] = ["sh", "dash", "bash", "zsh", "busybox"];
const MOST_SHELLS: usize = 3;
/// The most names of one wait.
const MOST_NAMES: usize = 3;

/// What a thread waits for; `None` if it runs or has ended.
pub fn look(pid: i32, thread: i32) -> Result<Option<Wait>> {
    let text = match fs::read_to_string(file_of(pid, &message!("task/{thread}/syscall"))) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(Some(Wait::of(WaitKind::Unknown)));
        }
        Err(_) => return Ok(None),
    };
    match Call::parse(&text) {
        None => Ok(None),
        // Outside of a call, it waits only for a page that is read from a file.
        Some(Call { number, .. }) if number < 0 => {
            let is_reading = state_of(pid, thread) == Some(State::WaitsForDevice);
            Ok(is_reading.then(|| Wait::of(WaitKind::PageFault)))
        }
        Some(call) => of_call(pid, &call).map(Some),
    }
}

fn state_of(pid: i32, thread: i32) -> Option<State> {
    let bytes = fs::read(file_of(pid, &message!("task/{thread}/stat"))).ok()?;
    Status::parse(&bytes).map(|status| status.state)
}

fn of_call(pid: i32, call: &Call) -> Result<Wait> {
    match call.waiting() {
        Waiting::Sleep => Ok(Wait::of(WaitKind::Sleep)),
        Waiting::Futex => Ok(Wait::of(WaitKind::Lock)),
        Waiting::Other => Ok(Wait::of(WaitKind::Unknown)),
        Waiting::Child(child) => of_child(child),
        Waiting::Descriptor(number) => of_descriptors(pid, &[number], WaitKind::Unknown),
        Waiting::FileLock(number) => {
            let wait = of_descriptors(pid, &[number], WaitKind::Lock)?;
            Ok(Wait {
                kind: WaitKind::Lock,
                name: wait.name,
            })
        }
        // Without descriptors, these calls only sleep.
        Waiting::Poll { address, count } => {
            let numbers = polled(pid, address, count)?;
            of_descriptors(pid, &numbers, WaitKind::Sleep)
        }
        Waiting::Select { sets, count } => {
            let numbers = selected(pid, sets, count)?;
            of_descriptors(pid, &numbers, WaitKind::Sleep)
        }
        Waiting::Epoll(number) => {
            let about = fs::read_to_string(file_of(pid, &message!("fdinfo/{number}")));
            let numbers = descriptors::watched(&about.unwrap_or_default(), MOST_DESCRIPTORS)?;
            of_descriptors(pid, &numbers, WaitKind::Unknown)
        }
    }
}

/// A child process, by its program; any child, if it is not known which. A shell that runs one program stands for it.
fn of_child(child: Option<i32>) -> Result<Wait> {
    let mut process = child.and_then(|pid| Process::find(pid).ok());
    let mut name = None;
    for _ in 0..MOST_SHELLS {
        let Some(current) = process else {
            break;
        };
        name = current.program()?;
        let is_shell = name.as_deref().is_some_and(|name| SHELLS.contains(&name));
        process = match current.children()?.as_slice() {
            [only] if is_shell => Process::find(*only).ok(),
            _ => None,
        };
    }
    Ok(Wait {
        kind: WaitKind::Child,
        name,
    })
}

/// The wait for any of these descriptors, `none` if there are none. What comes first in the list of kinds decides: a call
/// that waits for a server also watches a pipe by which it can be woken.
fn of_descriptors(pid: i32, numbers: &[i32], none: WaitKind) -> Result<Wait> {
    let mut wait = Wait::of(none);
    let mut names: Vec<String> = Vec::new();
    let mut best = usize::MAX;
    for &number in numbers.iter().take(MOST_DESCRIPTORS) {
        let Some((kind, name)) = named(pid, number)? else {
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
        if let Some(name) = name.filter(|_| rank == best && is_new && names.len() < MOST_NAMES) {
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

const RANK: [WaitKind; 4] = [
    WaitKind::Network,
    WaitKind::File,
    WaitKind::Pipe,
    WaitKind::Unknown,
];

/// The kind of a descriptor, and its name; `None` if it is not open any more, or is the process's own clock or alarm.
fn named(pid: i32, number: i32) -> Result<Option<(WaitKind, Option<String>)>> {
    let link = fs::read_link(file_of(pid, &message!("fd/{number}")));
    let Ok(link) = link else {
        return Ok(None);
    };
    Ok(match descriptor(&link)? {
        Descriptor::Socket(inode) => Some(sockets::other_end(pid, inode)?),
        Descriptor::Pipe => Some((WaitKind::Pipe, None)),
        Descriptor::File(path) => Some((WaitKind::File, Some(path))),
        Descriptor::Own => None,
        Descriptor::Other => Some((WaitKind::Unknown, None)),
    })
}

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
