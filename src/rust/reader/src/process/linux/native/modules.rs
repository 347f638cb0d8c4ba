//! The modules of another process: their addresses, from `/proc/PID/maps` and from their headers, and copies of their
//! unwind tables, which are read from the memory of the process. So it does not matter whether their files still
//! exist, or are accessible from this process.
//!
//! Libraries may be unloaded, and others loaded at the same addresses. While the process is stopped,
//! [`RemoteModules::verify`] checks whether the known modules are still at their addresses.

use super::super::memory::maps::{FileMapping, other_file, page_size};
use profile_core::error::Result;
use profile_core::joint::{Files, Module, Role};
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::message;
use profile_runtime::memory::{self, Memory, Piece};
use profile_unwind::image::{self, HEAD};
use profile_unwind::{Image, UnwindTables};
use std::fs::{self, File};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// More modules than a process has.
const MOST_MODULES: usize = 4096;
/// More than the size of the unwind tables of one module, and of all modules.
const LARGEST_TABLES: u64 = 64 << 20;
const ALL_TABLES: u64 = 512 << 20;
const MOST_NOTES: u64 = 1 << 16;
/// The number of bytes that identify a module.
const IDENTITY: usize = 16;
/// The loader's name for the code that the kernel adds to each process (vDSO).
const VDSO: &str = "linux-vdso.so.1";

pub struct RemoteModules<'f, M> {
    memory: M,
    pid: i32,
    /// The inode of the program.
    program: u64,
    /// Owns the copies.
    files: &'f Files,
    entries: Vec<Entry<'f>>,
    last: usize,
    /// The size of all tables.
    copied: u64,
    pieces: Vec<Piece>,
    identities: Vec<u8>,
}

struct Entry<'f> {
    map: Range<u64>,
    image: Image,
    path: String,
    inode: u64,
    /// The address and the contents of a part of its build id, or of its headers, that identifies it.
    identity_at: u64,
    identity: [u8; IDENTITY],
    build_id: Vec<u8>,
    /// Whether it is currently loaded.
    is_here: bool,
    tables: Tables<'f>,
    /// Its file, if it cannot be found at `path`.
    file: Option<File>,
}

enum Tables<'f> {
    Unread,
    Read(Option<UnwindTables<'f>>),
}

impl<M: Memory> profile_unwind::Modules for RemoteModules<'_, M> {
    fn at(&mut self, address: u64) -> Option<usize> {
        let has = |entry: &Entry| entry.is_here && entry.map.contains(&address);
        if !self.entries.get(self.last).is_some_and(has) {
            self.last = self.entries.iter().position(has)?;
        }
        // Without memory for the tables, the walk ends here.
        self.read_tables(self.last).ok()?;
        Some(self.last)
    }

    fn tables(&self, module: usize) -> Option<&UnwindTables<'_>> {
        match &self.entries.get(module)?.tables {
            Tables::Read(tables) => tables.as_ref(),
            Tables::Unread => None,
        }
    }

    fn code(&mut self, module: usize, address: u64) -> Option<u64> {
        let code = self.entries.get(module)?.image.code.clone();
        let is_inside = code.contains(&address) && address.saturating_add(8) <= code.end;
        is_inside.then(|| memory::word(&mut self.memory, address))?
    }
}

impl<'f, M: Memory> RemoteModules<'f, M> {
    pub fn new(memory: M, pid: i32, files: &'f Files) -> RemoteModules<'f, M> {
        let program = fs::metadata(message!("/proc/{pid}/exe"));
        RemoteModules {
            memory,
            pid,
            program: program.map_or(0, |about| about.ino()),
            files,
            entries: Vec::new(),
            last: 0,
            copied: 0,
            pieces: Vec::new(),
            identities: Vec::new(),
        }
    }

    /// Adds modules that were loaded since the last call.
    pub fn update(&mut self, parts: &[FileMapping]) -> Result<()> {
        for part in parts.iter().filter(|part| part.offset == 0) {
            let start = part.addresses.start;
            let is_known = |entry: &Entry| entry.is_here && entry.map.start == start;
            if !self.entries.iter().any(is_known) {
                self.add(part, parts)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, part: &FileMapping, parts: &[FileMapping]) -> Result<()> {
        let start = part.addresses.start;
        let mut head = [0; HEAD as usize];
        if !self.memory.read(start, &mut head) {
            return Ok(());
        }
        let Some(map) = image::extent(start, &head) else {
            return Ok(());
        };
        let Some(image) = Image::read(&map, &head, page_size()) else {
            return Ok(());
        };
        // A file may also be mapped just for reading, or twice, with different parts.
        let is_loaded = |other: &FileMapping| {
            other.is_code
                && other.inode == part.inode
                && other.path == part.path
                && other.addresses.contains(&image.code.start)
        };
        if !parts.iter().any(is_loaded) {
            return Ok(());
        }
        let mut id = 0..0;
        let mut build_id = Vec::new();
        for notes in image.notes.iter().filter(|notes| !notes.is_empty()) {
            let bytes = self.copy(notes, MOST_NOTES)?.unwrap_or_default();
            if let Some(found) = image::build_id(notes.start, &bytes) {
                let at = (found.start - notes.start) as usize..(found.end - notes.start) as usize;
                build_id.try_extend(bytes.get(at).unwrap_or_default())?;
                id = found;
                break;
            }
        }
        // Without a build id: the position of the section headers in the file, which depends on the size of the file.
        let identity_at = if build_id.len() >= IDENTITY {
            id.start
        } else {
            start.wrapping_add(40)
        };
        let mut identity = [0; IDENTITY];
        if !self.memory.read(identity_at, &mut identity) {
            return Ok(());
        }
        let path = match part.path.as_str() {
            "[vdso]" => VDSO,
            path => path,
        };
        // The same module may have been loaded at this address before.
        let is_same = |entry: &&mut Entry| {
            entry.map == map
                && entry.identity_at == identity_at
                && entry.identity == identity
                && entry.inode == part.inode
                && entry.path == path
        };
        if let Some(entry) = self.entries.iter_mut().find(is_same) {
            entry.is_here = true;
            return Ok(());
        }
        if self.entries.len() == MOST_MODULES {
            return Ok(());
        }
        let entry = Entry {
            map,
            image,
            path: owned(path)?,
            inode: part.inode,
            identity_at,
            identity,
            build_id,
            is_here: true,
            tables: Tables::Unread,
            file: None,
        };
        self.entries.try_push(entry)
    }

    /// Checks which modules were unloaded. Returns whether all are still loaded.
    pub fn verify(&mut self) -> Result<bool> {
        self.pieces.clear();
        for entry in self.entries.iter().filter(|entry| entry.is_here) {
            let piece = Piece {
                address: entry.identity_at,
                size: IDENTITY,
            };
            self.pieces.try_push(piece)?;
        }
        let size = self.pieces.len() * IDENTITY;
        self.identities.clear();
        self.identities.try_fill(size, 0)?;
        let read = self.memory.read_pieces(&self.pieces, &mut self.identities);
        let mut found = self.identities.chunks_exact(IDENTITY).enumerate();
        let mut is_same = true;
        for entry in self.entries.iter_mut().filter(|entry| entry.is_here) {
            entry.is_here = match found.next() {
                Some((number, identity)) if number < read => entry.identity == *identity,
                // Reading ended at a module that could not be read, so this one is read separately.
                _ => {
                    let mut identity = [0; IDENTITY];
                    self.memory.read(entry.identity_at, &mut identity) && entry.identity == identity
                }
            };
            is_same &= entry.is_here;
        }
        Ok(is_same)
    }

    fn read_tables(&mut self, module: usize) -> Result<()> {
        let Some(entry) = self.entries.get(module) else {
            return Ok(());
        };
        if let Tables::Read(_) = entry.tables {
            return Ok(());
        }
        let header = entry.image.unwind.clone();
        let range = header.start..entry.image.unwind_end;
        let left = LARGEST_TABLES.min(ALL_TABLES - self.copied);
        let bytes = if header.is_empty() {
            None
        } else {
            self.copy(&range, left)?
        };
        let Some(entry) = self.entries.get_mut(module) else {
            return Ok(());
        };
        // Another module may have been loaded there meanwhile.
        let mut identity = [0; IDENTITY];
        entry.is_here =
            self.memory.read(entry.identity_at, &mut identity) && entry.identity == identity;
        if !entry.is_here {
            return Ok(());
        }
        entry.tables = Tables::Read(bytes.and_then(|bytes| {
            self.copied += bytes.len() as u64;
            UnwindTables::new(&header, self.files.keep(bytes))
        }));
        // The process may end before the file is needed.
        entry.file = other_file(self.pid, &entry.path, entry.inode, &entry.image.code);
        Ok(())
    }

    /// A copy of the memory in a range, unless the range is larger than `most`.
    fn copy(&mut self, range: &Range<u64>, most: u64) -> Result<Option<Vec<u8>>> {
        let size = range.end.saturating_sub(range.start);
        if size > most {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        bytes.try_fill(size as usize, 0)?;
        Ok(self.memory.read(range.start, &mut bytes).then_some(bytes))
    }

    /// All modules that have been seen. `evaluator` is an address inside R's evaluator.
    pub fn seen(&self, evaluator: u64) -> Result<Vec<Module>> {
        let mut all = Vec::new();
        for entry in &self.entries {
            let role = if entry.map.contains(&evaluator) {
                Role::Evaluator
            } else if entry.inode == self.program && self.program != 0 {
                Role::Program
            } else {
                Role::Library
            };
            let mut build_id = Vec::new();
            build_id.try_extend(&entry.build_id)?;
            let file = entry.file.as_ref();
            let module = Module {
                path: owned(&entry.path)?,
                role,
                bias: entry.image.bias,
                code: entry.image.code.clone(),
                offset: entry.image.offset,
                build_id,
                file: file
                    .map(|file| PathBuf::from(message!("/proc/self/fd/{}", file.as_raw_fd()))),
            };
            all.try_push(module)?;
        }
        Ok(all)
    }
}
