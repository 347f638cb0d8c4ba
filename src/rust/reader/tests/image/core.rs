//! Writes core files of recorded images, as Linux does: the header, a program header for each segment, notes about the
//! process, and the segments.

use super::processor::MACHINE;
use super::{Image, Stop};
use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub const PID: i32 = 1234;
pub const COMMAND: [&str; 3] = ["/usr/lib/R/bin/exec/R", "--no-echo", "--file=a long name.R"];
const PAGE: u64 = 4096;
const HEADER: u64 = 64;
const SEGMENT: u64 = 56;

/// What is written to a core file.
#[derive(Debug, Clone, Default)]
pub struct Core {
    pub segments: Vec<(u64, Vec<u8>)>,
    pub notes: Vec<u8>,
    pub signal: i16,
    pub system_call: i64,
    pub stack_pointer: u64,
    /// The numbers of the machine and of the kind of file in the header.
    pub machine: u16,
    pub kind: u16,
}

impl Core {
    /// The core file of a stop, with R's symbols, as `gcore` writes it.
    pub fn of(image: &Image, stop: &Stop) -> Core {
        let files = image.mappings.iter().filter(|mapping| mapping.starts_file);
        let files: Vec<_> = files
            .map(|mapping| (mapping.addresses.clone(), "/usr/lib/module.so"))
            .collect();
        let mut stack = image.mappings.last().unwrap().addresses.clone();
        let regions = image.regions(stop);
        // The stack may have grown since the mappings were recorded.
        let starts = regions.iter().map(|region| region.0);
        let starts = starts.filter(|start| stack.start - start.min(&stack.start) < 1 << 24);
        let first = starts.min().unwrap_or(stack.start);
        stack.start = stack.start.min(first);
        Core::new(regions, &files, &stack, &[])
    }

    /// `auxiliary` are additional entries of the auxiliary vector.
    pub fn new(
        regions: Vec<(u64, Vec<u8>)>,
        files: &[(Range<u64>, &str)],
        stack: &Range<u64>,
        auxiliary: &[[u64; 2]],
    ) -> Core {
        let mut core = Core {
            segments: regions,
            signal: 11,
            system_call: -1,
            machine: MACHINE,
            kind: 4,
            ..Core::default()
        };
        // The kernel writes the C stack as a whole. The arguments follow on another page.
        let stack = stack.start..stack.end + PAGE;
        let mut bytes = vec![0; (stack.end - stack.start) as usize];
        core.segments.retain(|(start, part)| {
            let is_stack = stack.contains(start);
            if is_stack {
                let at = (start - stack.start) as usize;
                bytes[at..at + part.len()].copy_from_slice(part);
            }
            !is_stack
        });
        let auxiliary = write_arguments(&stack, &mut bytes, auxiliary);
        core.segments.push((stack.start, bytes));
        core.add_thread();
        core.note("CORE", 3, &process());
        core.note("CORE", 6, &auxiliary);
        core.note("CORE", 0x4649_4c45, &list(files));
        core
    }

    pub fn note(&mut self, owner: &str, kind: u32, content: &[u8]) {
        for number in [owner.len() as u32 + 1, content.len() as u32, kind] {
            self.notes.extend(number.to_le_bytes());
        }
        self.notes.extend(owner.as_bytes());
        self.notes.push(0);
        self.notes.resize(self.notes.len().next_multiple_of(4), 0);
        self.notes.extend(content);
        self.notes.resize(self.notes.len().next_multiple_of(4), 0);
    }

    /// Changes the notes about the thread, which are the first ones.
    pub fn set_thread(&mut self, signal: i16, system_call: i64) {
        let before = std::mem::take(&mut self.notes);
        (self.signal, self.system_call) = (signal, system_call);
        self.add_thread();
        self.notes.extend(&before[self.notes.len()..]);
    }

    /// Adds a thread in this system call, whose stack pointer is given.
    pub fn add_other_thread(&mut self, stack_pointer: u64, system_call: i64) {
        let first = (self.stack_pointer, self.system_call);
        (self.stack_pointer, self.system_call) = (stack_pointer, system_call);
        self.add_thread();
        (self.stack_pointer, self.system_call) = first;
    }

    /// The start of `struct elf_prstatus`, which has this size.
    pub fn thread(&self, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        bytes[12..14].copy_from_slice(&self.signal.to_le_bytes());
        bytes[32..36].copy_from_slice(&PID.to_le_bytes());
        bytes
    }

    /// Where the segments begin in the file.
    pub fn offset(&self) -> u64 {
        let count = self.segments.len() as u64 + 1;
        (HEADER + SEGMENT * count + self.notes.len() as u64).next_multiple_of(PAGE)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let count = self.segments.len() as u64 + 1;
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(HEADER as usize, 0);
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(16, &self.kind.to_le_bytes());
        put(18, &self.machine.to_le_bytes());
        put(32, &HEADER.to_le_bytes());
        put(54, &(SEGMENT as u16).to_le_bytes());
        put(56, &(count as u16).to_le_bytes());
        let mut header = |kind: u32, offset: u64, address: u64, size: u64| {
            bytes.extend(kind.to_le_bytes());
            bytes.extend(6_u32.to_le_bytes());
            for word in [offset, address, 0, size, size, PAGE] {
                bytes.extend(word.to_le_bytes());
            }
        };
        header(4, HEADER + SEGMENT * count, 0, self.notes.len() as u64);
        let mut offset = self.offset();
        for (start, content) in &self.segments {
            header(1, offset, *start, content.len() as u64);
            offset += content.len() as u64;
        }
        bytes.extend(&self.notes);
        bytes.resize(self.offset() as usize, 0);
        for (_, content) in &self.segments {
            bytes.extend(content);
        }
        bytes
    }
}

/// `struct elf_prpsinfo`, which has room for the start of the command line only.
fn process() -> Vec<u8> {
    let mut bytes = vec![0; 136];
    bytes[24..28].copy_from_slice(&PID.to_le_bytes());
    bytes[56..60].copy_from_slice(b"R --");
    bytes
}

/// The list of mapped files.
fn list(files: &[(Range<u64>, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [files.len() as u64, PAGE] {
        bytes.extend(word.to_le_bytes());
    }
    for (range, _) in files {
        for word in [range.start, range.end, 0] {
            bytes.extend(word.to_le_bytes());
        }
    }
    for (_, path) in files {
        bytes.extend(path.as_bytes());
        bytes.push(0);
    }
    bytes
}

/// Writes the command line to the start of a stack. Returns the auxiliary vector.
fn write_arguments(stack: &Range<u64>, bytes: &mut [u8], more: &[[u64; 2]]) -> Vec<u8> {
    let random = stack.end - 0x200;
    let mut texts = Vec::new();
    let mut addresses = Vec::new();
    for text in COMMAND.iter().chain(&["HOME=/", "A=b"]) {
        addresses.push(random + 16 + texts.len() as u64);
        texts.extend(text.as_bytes());
        texts.push(0);
    }
    let mut auxiliary = vec![33_u64, 1, 16, 2];
    auxiliary.extend(more.as_flattened());
    auxiliary.extend([25, random, 0, 0]);
    let mut words = vec![COMMAND.len() as u64];
    words.extend(&addresses[..COMMAND.len()]);
    words.push(0);
    words.extend(&addresses[COMMAND.len()..]);
    words.push(0);
    words.extend(&auxiliary);
    let as_bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let vector: Vec<u8> = as_bytes(&words);
    let at = (random - stack.start) as usize;
    bytes[at - 16 - vector.len()..at - 16].copy_from_slice(&vector);
    bytes[at + 16..at + 16 + texts.len()].copy_from_slice(&texts);
    as_bytes(&auxiliary)
}

/// A folder that is removed at the end of a test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let name = format!("profile-core-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        File::create(&path).unwrap().write_all(bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
