//! Core files: the memory of a process that crashed, or that `gcore` copied while it was running.
//!
//! A core file is an ELF file with a segment for each part of the address space, and notes about the process. The
//! same reader as for running processes reads R's stack from it; the only difference is where the memory comes from.
//! Neither debug symbols nor the R of that process are needed.
//!
//! The kernel leaves out what it could read from files again: the code and the constants of programs and libraries,
//! among them the symbols of R's variables. But these files may be missing, or have been replaced, where the core file
//! is read. So R's variables are found by their values ([`crate::running_r`]). Core files by `gcore` contain the symbols.
//!
//! - [`input`]: a file that is too large to be read into memory;
//! - [`elf`]: the header and the segments;
//! - [`notes`]: what is known about the process;
//! - [`memory`]: the memory of the process;
//! - [`arguments`]: the command line; [`auxiliary`]: what the kernel passed to the program's loader.
//!
//! The format is described by elf(5) and core(5); the contents of notes by `fs/binfmt_elf.c` of Linux. Everything in a
//! core file is checked, since it may be damaged, or crafted.

mod arguments;
mod auxiliary;
mod elf;
mod input;
mod memory;
mod notes;
// Systems other than Linux read core files of x86-64.
#[cfg_attr(
    all(target_os = "linux", target_arch = "aarch64"),
    path = "processor/aarch64.rs"
)]
#[cfg_attr(
    not(all(target_os = "linux", target_arch = "aarch64")),
    path = "processor/x86_64.rs"
)]
mod processor;

pub use memory::CoreMemory;

use crate::memory::symbols::Module;
use elf::Segments;
use input::Input;
use notes::{Mapped, Notes};
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryCollect, TryGrow, sort_by_key};
use profile_core::message;
use profile_runtime::memory::Mapping;
use profile_runtime::variables::{LIBRARY, NIL, PROGRAM};
use std::ops::Range;
use std::path::Path;

/// The core file of a process.
pub struct CoreFile {
    pub pid: i32,
    /// The name of the signal that ended the process.
    pub signal: Option<&'static str>,
    /// The parts of the address space, in the order of their addresses.
    pub mappings: Vec<Mapping>,
    pub memory: CoreMemory,
    notes: Notes,
}

impl CoreFile {
    /// `shown` is the path in messages.
    pub fn open(path: &Path, shown: &str) -> Result<CoreFile> {
        let input = Input::open(path, shown)?;
        let (segments, notes_at) = Segments::read(&input)?;
        let notes = Notes::read(&input, &notes_at)?;
        let Some(pid) = notes.pid else {
            return Err(input.damaged(0, "It contains no notes about the process."));
        };
        Ok(CoreFile {
            pid,
            signal: signal_name(notes.signal),
            mappings: mappings(&segments, &notes.mapped)?,
            memory: CoreMemory::new(input, segments),
            notes,
        })
    }

    /// The modules that have R's variables by their names, which is known even without symbols. The variables are in R's
    /// library, or, if R was built without one, in its program. A program that contains R's library may have copies of some
    /// variables.
    pub fn modules_of_r(&self) -> Result<Vec<u64>> {
        let library = self.notes.mapped.start_of(&[LIBRARY, PROGRAM]);
        let program = auxiliary::program(&self.notes.auxiliary);
        [program, library].into_iter().flatten().try_vec()
    }

    /// The program and its arguments, with blanks between them.
    pub fn command(&mut self) -> Result<String> {
        let line = arguments::command_line(&mut self.memory, &self.notes.auxiliary)?;
        crate::memory::command_line::text(
            line.unwrap_or(std::mem::take(&mut self.notes.short_command)),
        )
    }

    /// The number of the system call in which R's thread was, given R's stack and an address on it.
    pub fn system_call(&self, stack: &Range<u64>, address: Option<u64>) -> Option<i64> {
        self.notes.system_call(stack, address)
    }

    /// Adds the name of the core file to an error, and the reason if a part of the memory is missing.
    pub fn explained(&mut self, error: Error) -> Error {
        let Error::Process(why) = error else {
            return error;
        };
        let why = match self.memory.cut_off() {
            Some(why) => why,
            None if self.lacks_symbols() => message!(
                "{why} The core file does not contain the symbols of R's variables. Core files by `gcore` do, and those \
                 by Linux if bit 2 of /proc/PID/coredump_filter was set, see core(5)."
            ),
            None => why,
        };
        let shown = self.memory.shown();
        Error::Process(message!("Cannot look into the core file `{shown}`. {why}"))
    }

    /// Whether there is R, without symbols.
    fn lacks_symbols(&mut self) -> bool {
        let named = self.modules_of_r().unwrap_or_default();
        let mut memory = &mut self.memory;
        let mut has_symbols = |start: &u64| {
            let module = Module::at(&mut memory, *start).ok().flatten();
            module.is_some_and(|module| module.find(&mut memory, NIL).is_some())
        };
        !named.is_empty() && !named.iter().any(&mut has_symbols)
    }
}

/// The start of each mapped file, and all segments.
fn mappings(segments: &Segments, mapped: &Mapped) -> Result<Vec<Mapping>> {
    let mut mappings = Vec::new();
    let starts = mapped.parts.iter().filter(|part| part.offset == 0);
    for part in starts {
        mappings.try_push(Mapping {
            addresses: part.addresses.clone(),
            starts_file: true,
        })?;
    }
    // Without names of files, each segment may be the start of one.
    let starts_file = mappings.is_empty();
    for segment in segments.iter() {
        mappings.try_push(Mapping {
            addresses: segment.addresses.clone(),
            starts_file,
        })?;
    }
    sort_by_key(&mut mappings, |mapping| mapping.addresses.start)?;
    Ok(mappings)
}

/// The signals that end a process with a core file, with their numbers on x86-64 and aarch64, see signal(7).
fn signal_name(number: i16) -> Option<&'static str> {
    const SIGNALS: [(i16, &str); 10] = [
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (11, "SIGSEGV"),
        (24, "SIGXCPU"),
        (25, "SIGXFSZ"),
        (31, "SIGSYS"),
    ];
    let known = SIGNALS.iter().find(|known| known.0 == number);
    known.map(|known| known.1)
}
