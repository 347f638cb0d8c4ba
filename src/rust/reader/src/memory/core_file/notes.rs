//! The notes of a core file: the process, its threads, and the files that it had mapped.
//!
//! A note consists of three numbers of four bytes (the size of the owner's name, the size of the content, the type),
//! the name and the content, each padded to a multiple of four bytes.

use super::input::Input;
use super::processor::{STACK_POINTER, SYSTEM_CALL, SYSTEM_CALL_NOTE, THREAD_SIZE};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, filled, sort_by_key};
use profile_runtime::memory::{at, half_at};
use std::ops::Range;

/// The types of notes that are used.
const THREAD: u32 = 1;
const PROCESS: u32 = 3;
const AUXILIARY: u32 = 6;
const FILES: u32 = 0x4649_4c45;
/// The size of `struct elf_prpsinfo`.
const PROCESS_SIZE: usize = 136;
/// More than a process has: each thread has half a dozen notes.
const MOST_NOTES: usize = 1 << 20;
/// Larger than these notes are: Linux limits the list of files to 16 MB (`core_file_note_size_limit`).
const MOST_AUXILIARY: u64 = 4096;
const MOST_FILES: u64 = 64 << 20;

#[derive(Debug, Default)]
pub struct Notes {
    /// The ID of the process, which is that of its first thread.
    pub pid: Option<i32>,
    /// The signal that ended the process, or 0.
    pub signal: i16,
    /// Its threads. The kernel writes the thread first that caused the core file.
    threads: Vec<Thread>,
    /// The program and its arguments, shortened.
    pub short_command: Vec<u8>,
    /// What the kernel passed to the program's loader.
    pub auxiliary: Vec<u8>,
    pub mapped: Mapped,
}

/// The files that the process had mapped.
#[derive(Debug, Default)]
pub struct Mapped {
    /// In the order of their addresses.
    pub parts: Vec<MappedFile>,
    /// The paths of all parts.
    names: Vec<u8>,
}

/// A part of the address space that is a part of a file.
#[derive(Debug, Clone)]
pub struct MappedFile {
    pub addresses: Range<u64>,
    /// The offset in the file.
    pub offset: u64,
    name: Range<usize>,
}

impl Mapped {
    /// The address of the first file whose path ends with one of these texts; the first text takes precedence.
    pub fn start_of(&self, ends: &[&str]) -> Option<u64> {
        // The kernel marks the paths of files that were deleted or replaced.
        let ends_with = |path: &[u8], end: &str| {
            let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
            path.ends_with(end.as_bytes())
        };
        ends.iter().find_map(|end| {
            let mut starts = self.parts.iter().filter(|part| part.offset == 0);
            let found = starts.find(|part| {
                let path = self.names.get(part.name.clone());
                path.is_some_and(|path| ends_with(path, end))
            });
            found.map(|part| part.addresses.start)
        })
    }
}

impl Notes {
    /// Reads the notes in these ranges of the file.
    pub fn read(input: &Input, ranges: &[Range<u64>]) -> Result<Notes> {
        let mut notes = Notes::default();
        let mut count = 0;
        for range in ranges {
            if !input.has(range.start, range.end - range.start) {
                return Err(input.cut_off(range.start, "the notes about the process"));
            }
            let mut from = range.start;
            while range.end - from >= 12 && count < MOST_NOTES {
                count += 1;
                let head = input.array::<12>(from).unwrap_or_default();
                let [name, size, kind] = [0, 4, 8].map(|offset| half_at(&head, offset));
                let [padded, padded_size] =
                    [name, size].map(|size| u64::from(size).next_multiple_of(4));
                let start = from + 12 + padded;
                let end = start + u64::from(size);
                if end > range.end {
                    return Err(input.damaged(from, "The note is longer than its segment."));
                }
                let owner = input.array::<4>(from + 12).unwrap_or_default();
                if name >= 4 && owner == *b"CORE" {
                    notes.add(input, kind, start..end)?;
                }
                if Some(kind) == SYSTEM_CALL_NOTE && name >= 4 && owner == *b"LINU" {
                    // It follows the note about the thread.
                    let thread = notes.threads.last_mut();
                    if let (Some(thread), Some(content)) = (thread, input.array(start)) {
                        thread.system_call = system_call(i32::from_le_bytes(content).into());
                    }
                }
                from = (start + padded_size).min(range.end);
            }
        }
        if let Some(first) = notes.threads.first() {
            notes.signal = first.signal;
            notes.pid = notes.pid.or(Some(first.id));
        }
        Ok(notes)
    }

    /// The number of the system call in which R's thread was: the one with the closest stack pointer below an address on
    /// R's stack, or the first thread of the process.
    pub fn system_call(&self, stack: &Range<u64>, address: Option<u64>) -> Option<i64> {
        let inner = stack.start..address.unwrap_or(0).saturating_add(1);
        let on_stack = self.threads.iter();
        let on_stack = on_stack.filter(|thread| inner.contains(&thread.stack_pointer));
        let of_r = on_stack.max_by_key(|thread| thread.stack_pointer);
        let is_first = |thread: &&Thread| Some(thread.id) == self.pid;
        let of_r = of_r.or_else(|| self.threads.iter().find(is_first));
        of_r.and_then(|thread| thread.system_call)
    }

    fn add(&mut self, input: &Input, kind: u32, content: Range<u64>) -> Result<()> {
        let size = content.end - content.start;
        match kind {
            THREAD => {
                if let Some(content) = input.array::<THREAD_SIZE>(content.start) {
                    self.threads.try_push(Thread::parse(&content))?;
                }
            }
            PROCESS if self.pid.is_none() => {
                if let Some(content) = input.array::<PROCESS_SIZE>(content.start) {
                    self.pid = Some(half_at(&content, 24) as i32);
                    let command = content.get(56..).unwrap_or_default();
                    let length = command.iter().position(|&byte| byte == 0);
                    let command = command.get(..length.unwrap_or(command.len()));
                    self.short_command.try_extend(command.unwrap_or_default())?;
                }
            }
            AUXILIARY if size <= MOST_AUXILIARY => {
                self.auxiliary = filled(size as usize, 0)?;
                input.read(content.start, &mut self.auxiliary);
            }
            FILES if size <= MOST_FILES => {
                let mut bytes = filled(size as usize, 0)?;
                input.read(content.start, &mut bytes);
                self.mapped = Mapped::read(bytes, || {
                    input.damaged(content.start, "The list of mapped files is damaged.")
                })?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// A thread, from the start of `struct elf_prstatus`.
#[derive(Debug)]
struct Thread {
    id: i32,
    signal: i16,
    stack_pointer: u64,
    system_call: Option<i64>,
}

impl Thread {
    fn parse(content: &[u8; THREAD_SIZE]) -> Thread {
        let number = SYSTEM_CALL.map(|offset| at(content, offset) as i64);
        Thread {
            id: half_at(content, 32) as i32,
            signal: at(content, 12) as i16,
            stack_pointer: at(content, STACK_POINTER),
            system_call: number.and_then(system_call),
        }
    }
}

/// The number of a system call, which is -1 if there is none.
fn system_call(number: i64) -> Option<i64> {
    (number >= 0).then_some(number)
}

impl Mapped {
    /// The content of a note: the number of parts and the size of a page; for each part its start, its end and its
    /// offset in pages; and the paths, each of which ends with a zero.
    fn read(bytes: Vec<u8>, damaged: impl Fn() -> profile_core::error::Error) -> Result<Mapped> {
        const HEAD: usize = 16;
        const PART: usize = 24;
        let (count, page) = (at(&bytes, 0), at(&bytes, 8));
        let names_at = usize::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(PART)?.checked_add(HEAD))
            .filter(|&names_at| names_at <= bytes.len());
        let names_at = names_at.ok_or_else(&damaged)?;
        let mut parts = Vec::new();
        let mut name = names_at;
        let numbers = bytes.get(HEAD..names_at).unwrap_or_default();
        for part in numbers.chunks_exact(PART) {
            let rest = bytes.get(name..).unwrap_or_default();
            let length = rest.iter().position(|&byte| byte == 0);
            let end = name + length.ok_or_else(&damaged)?;
            let offset = at(part, 16).checked_mul(page).ok_or_else(&damaged)?;
            let addresses = at(part, 0)..at(part, 8);
            if addresses.is_empty() || offset.checked_add(addresses.end).is_none() {
                return Err(damaged());
            }
            parts.try_push(MappedFile {
                addresses,
                offset,
                name: name..end,
            })?;
            name = end + 1;
        }
        sort_by_key(&mut parts, |part| part.addresses.start)?;
        Ok(Mapped {
            parts,
            names: bytes,
        })
    }
}
