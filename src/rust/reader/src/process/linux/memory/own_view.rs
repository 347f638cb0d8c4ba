//! The memory of this process, looked at while R does not run.

use super::super::caller;
use super::ProcessMemory;
use super::own::readable;
use crate::running_r::RunningR;
use crate::running_r::c_stack::stack_at;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::TryGrow;
use profile_core::message;
use profile_runtime::memory::{Memory, Piece, View};
use std::fs;
use std::marker::PhantomData;
use std::ops::Range;
use std::process;

/// The memory of this process. It may only be looked at while R does not run.
pub struct OwnView<'m> {
    pub pid: i32,
    memory: ProcessMemory,
    /// What can be read, in the order of addresses.
    readable: Vec<Range<u64>>,
    /// As long as R does not run, and only in this thread.
    still: PhantomData<(&'m (), *const ())>,
}

impl OwnView<'_> {
    /// Looks at the memory. What was seen does not outlive `look`, so R does not change it meanwhile: only the thread that
    /// runs R may look, and `look` calls no function of R.
    pub fn look<T>(r: &RunningR, look: impl for<'m> FnOnce(OwnView<'m>) -> Result<T>) -> Result<T> {
        let pid = libc::pid_t::try_from(process::id()).unwrap_or(0);
        let mut memory = ProcessMemory::new(pid);
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        if !runs_r(r, &mut memory, &maps) {
            return Err(Error::Unsupported(message!(
                "Only the thread that runs R can take a snapshot of its memory."
            )));
        }
        let mut parts: Vec<Range<u64>> = Vec::new();
        for part in maps.lines().filter_map(readable) {
            match parts.last_mut().filter(|last| last.end == part.start) {
                Some(last) => last.end = part.end,
                None => parts.try_push(part)?,
            }
        }
        look(OwnView {
            pid,
            memory,
            readable: parts,
            still: PhantomData,
        })
    }
}

/// Whether the calling thread runs R: R's records are on its stack. If there are none, it must be the first thread.
fn runs_r(r: &RunningR, memory: &mut ProcessMemory, maps: &str) -> bool {
    let Some(place) = r.whereabouts(memory) else {
        return u32::try_from(caller::id()) == Ok(process::id());
    };
    let local = 0_u8;
    let here = (&raw const local).addr() as u64;
    let stack = stack_at(maps.lines().filter_map(readable), here);
    stack.is_some_and(|stack| stack.contains(&place.address())) && place.address() > here
}

impl Memory for OwnView<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        self.memory.read(address, into)
    }

    fn read_pieces(&mut self, pieces: &[Piece], into: &mut [u8]) -> usize {
        self.memory.read_pieces(pieces, into)
    }
}

impl<'m> View<'m> for OwnView<'m> {
    fn view(&mut self, address: u64, size: usize) -> Option<&'m [u8]> {
        let after = self.readable.partition_point(|part| part.start <= address);
        let part = self.readable.get(after.checked_sub(1)?)?;
        if address.saturating_add(size as u64) > part.end || address % 8 != 0 {
            return None;
        }
        let start = std::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: this memory was mapped when the view was made, and can be read. Objects of R belong to its heap, which
        // only R's thread changes, and this is R's thread, see `look()`.
        Some(unsafe { std::slice::from_raw_parts(start, size) })
    }
}

/// Returns memory that was freed to the system.
pub fn release_memory() {
    // SAFETY: it has no preconditions.
    unsafe { libc::malloc_trim(0) };
}
