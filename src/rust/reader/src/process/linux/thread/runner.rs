//! Finds the thread that runs R: the one whose stack contains R's innermost record. A program that embeds R, such as Java
//! or a server, may call it from any of its threads, and from another one each time.
//!
//! - The stack of the first thread has a name in the list of mappings.
//! - The C library keeps its data about each other thread at the top of the thread's stack. The kernel knows an address in
//!   these data: that of the list of robust mutexes.
//! - C libraries that do not create this list early (musl), and programs that switch between stacks of their own, are the
//!   reason for the last two ways: the kernel reports the stack pointer of threads that wait in a system call. If only one
//!   thread is left that does not, it is this one.
//!
//! No thread is stopped for this.

use super::super::caller;
use super::super::folder::file_of;
use super::super::memory::maps::mapping;
use crate::running_r::c_stack::stack_at;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_core::message;
use std::fs;
use std::mem::size_of;
use std::ops::Range;

/// The name of the stack of the first thread in the list of mappings.
const FIRST_STACK: &[u8] = b" [stack]";

/// A thread, and its stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runner {
    pub thread: i32,
    pub stack: Range<u64>,
}

/// Finds the thread of a process on whose stack an address is.
pub fn find(pid: i32, address: u64) -> Result<Option<Runner>> {
    find_with(pid, address, data_of, this_thread(pid))
}

/// The same. `data_of` returns an address in the data that the C library keeps about a thread. `except` is no such thread.
fn find_with(
    pid: i32,
    address: u64,
    data_of: impl Fn(i32) -> Option<u64>,
    except: Option<i32>,
) -> Result<Option<Runner>> {
    let maps = fs::read(file_of(pid, "maps")).unwrap_or_default();
    let mapped = || maps.split(|&byte| byte == b'\n').filter_map(mapping);
    let stack = stack_at(mapped().map(|mapping| mapping.addresses), address);
    let Some(mut stack) = stack else {
        return Ok(None);
    };
    let threads = threads(pid)?;
    let first = maps
        .split(|&byte| byte == b'\n')
        .find(|line| line.ends_with(FIRST_STACK));
    let first = first.and_then(mapping).map(|first| first.addresses);
    let is_first = first.is_some_and(|first| first.end == stack.end);
    let thread = match threads[..] {
        [only] => Some(only),
        _ if is_first => Some(pid),
        _ => {
            let owners = threads.iter().filter_map(|&id| Some((data_of(id)?, id)));
            let owner = owners
                .filter(|(data, _)| stack.contains(data) && *data > address)
                .min();
            match owner {
                Some((data, id)) => {
                    // Memory with other content may follow.
                    stack.end = data;
                    Some(id)
                }
                None => by_pointer(pid, &threads, &stack, address, except)?,
            }
        }
    };
    Ok(thread.map(|thread| Runner { thread, stack }))
}

/// The threads of a process.
pub fn threads(pid: i32) -> Result<Vec<i32>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir(file_of(pid, "task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        if let Some(id) = name.to_str().and_then(|name| name.parse().ok()) {
            threads.try_push(id)?;
        }
    }
    Ok(threads)
}

/// The calling thread, if it belongs to this process. It runs, but not R.
fn this_thread(pid: i32) -> Option<i32> {
    let is_own = u32::try_from(pid) == Ok(std::process::id());
    is_own.then(caller::id)
}

/// The address of a thread's list of robust mutexes, if it has one.
fn data_of(thread: i32) -> Option<u64> {
    let (mut head, mut size) = (0_u64, 0_usize);
    // SAFETY: the kernel writes an address and a size, which have these sizes on 64-bit systems.
    let result = unsafe {
        libc::syscall(
            libc::SYS_get_robust_list,
            thread,
            &raw mut head,
            &raw mut size,
        )
    };
    const { assert!(size_of::<usize>() == size_of::<u64>()) };
    (result == 0 && head != 0).then_some(head)
}

/// The thread with the closest stack pointer below an address, or the only one whose stack pointer is unknown.
fn by_pointer(
    pid: i32,
    threads: &[i32],
    stack: &Range<u64>,
    address: u64,
    except: Option<i32>,
) -> Result<Option<i32>> {
    let mut closest = None;
    let mut unknown = Vec::new();
    for &id in threads.iter().filter(|id| Some(**id) != except) {
        match in_call(pid, id).map(|call| call.stack_pointer) {
            Some(pointer) if stack.contains(&pointer) && pointer <= address => {
                closest = closest.max(Some((pointer, id)));
            }
            Some(_) => {}
            None => unknown.try_push(id)?,
        }
    }
    Ok(match (closest, &unknown[..]) {
        (Some((_, id)), _) => Some(id),
        (None, [only]) => Some(*only),
        (None, _) => None,
    })
}

/// What the kernel reports about a thread that waits.
#[derive(Debug, PartialEq, Eq)]
pub struct InCall {
    /// The number of its system call, or a negative number.
    pub number: i64,
    stack_pointer: u64,
}

/// `None` if the thread runs.
pub fn in_call(pid: i32, thread: i32) -> Option<InCall> {
    let file = file_of(pid, &message!("task/{thread}/syscall"));
    let text = fs::read_to_string(file).ok()?;
    // The number, arguments if it is a system call, the stack pointer and the program counter.
    let mut fields = text.split_ascii_whitespace();
    let number = fields.next()?.parse().ok()?;
    let pointer = fields.rev().nth(1)?.strip_prefix("0x")?;
    Some(InCall {
        number,
        stack_pointer: u64::from_str_radix(pointer, 16).ok()?,
    })
}

#[cfg(test)]
mod tests;
