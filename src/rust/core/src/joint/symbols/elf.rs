//! An ELF file: its sections, its symbols, and which file it is.
//!
//! Of the format only what the joint profiler can meet: 64 bits, little-endian. See
//! the System V ABI, chapters 4 and 5, and `elf(5)`. Sections are read when they are
//! asked for: a library of a gigabyte has a few kilobytes of symbols. They are not
//! mapped into memory, since a file that is cut meanwhile would end the process.

use super::files::Files;
use super::names;
use super::ranges::Ranges;
use crate::error::Result;
use crate::limits::memory::TryGrow;
use flate2::read::ZlibDecoder;
use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const HEADER: usize = 64;
const SECTION: usize = 64;
const SEGMENT: usize = 56;
const SYMBOL: usize = 24;
const COMPRESSION: usize = 24;

/// Of sections: what they are.
const SYMTAB: u32 = 2;
const NOTE: u32 = 7;
const NOBITS: u32 = 8;
const DYNSYM: u32 = 11;
/// Of sections: they are compressed, and how.
const COMPRESSED: u64 = 0x800;
const ZLIB: u32 = 1;
/// Of segments: they are loaded, and are code.
const LOAD: u32 = 1;
const EXECUTABLE: u32 = 1;
/// Of symbols: they are functions, or choose one of several when they are loaded.
const FUNC: u8 = 2;
const IFUNC: u8 = 10;
/// Of notes.
const BUILD_ID: u32 = 3;

/// Zlib cannot make more of a byte.
const MOST_INFLATED: u64 = 1032;
/// No section of debug information in 32 bits is larger.
const LARGEST: u64 = u32::MAX as u64;

pub struct Elf<'f> {
    pub path: PathBuf,
    file: File,
    length: u64,
    header: &'f [u8],
    sections: Vec<Section>,
    names: &'f [u8],
    files: &'f Files,
}

#[derive(Debug, Clone, Copy, Default)]
struct Section {
    name: u32,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
}

impl<'f> Elf<'f> {
    /// Nothing, if there is no such file or it is none of ELF.
    pub fn open(path: &Path, files: &'f Files) -> Result<Option<Elf<'f>>> {
        // To open a pipe might take for ever.
        if !fs::metadata(path).is_ok_and(|about| about.is_file()) {
            return Ok(None);
        }
        let Ok(file) = File::open(path) else {
            return Ok(None);
        };
        let length = file.metadata().map_or(0, |about| about.len());
        let mut elf = Elf {
            path: PathBuf::from(path),
            file,
            length,
            header: &[],
            sections: Vec::new(),
            names: &[],
            files,
        };
        let Some(header) = elf.read(0, HEADER as u64)? else {
            return Ok(None);
        };
        // 64 bits, little-endian.
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return Ok(None);
        }
        elf.header = header;
        elf.read_sections()?;
        Ok(Some(elf))
    }

    /// A file without sections is a file of which nothing is known.
    fn read_sections(&mut self) -> Result<()> {
        let start = u64_at(self.header, 40).unwrap_or(0);
        let size = u16_at(self.header, 58).unwrap_or(0);
        if start == 0 || usize::from(size) != SECTION {
            return Ok(());
        }
        let Some(first) = self.read(start, SECTION as u64)? else {
            return Ok(());
        };
        let first = Section::parse(first).unwrap_or_default();
        // Counts that do not fit are in the first section, which is none.
        let count = match u16_at(self.header, 60) {
            None | Some(0) => first.size,
            Some(count) => u64::from(count),
        };
        let names = match u16_at(self.header, 62) {
            None | Some(0xffff) => first.link,
            Some(index) => u32::from(index),
        };
        let table = match count.checked_mul(SECTION as u64) {
            Some(length) => self.read(start, length)?,
            None => None,
        };
        let Some(table) = table else { return Ok(()) };
        let sections = table.chunks_exact(SECTION);
        self.sections.try_extend_from(
            sections.map(|row| Section::parse(row).unwrap_or_default()),
            "the sections of a file",
        )?;
        if let Some(names) = self.sections.get(names as usize).copied() {
            self.names = self.content(names)?.unwrap_or_default();
        }
        Ok(())
    }

    /// A part of the file; nothing where the file is shorter or cannot be read.
    fn read(&self, offset: u64, size: u64) -> Result<Option<&'f [u8]>> {
        let whole = offset
            .checked_add(size)
            .is_some_and(|end| end <= self.length);
        if !whole || size > LARGEST {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        bytes.try_fill(size as usize, 0u8, "a file of code")?;
        if self.file.read_exact_at(&mut bytes, offset).is_err() {
            return Ok(None);
        }
        Ok(Some(self.files.keep(bytes)))
    }

    fn find(&self, name: &str) -> Option<Section> {
        let named = |section: &&Section| string_at(self.names, section.name) == name.as_bytes();
        self.sections.iter().find(named).copied()
    }

    pub fn has(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|section| section.kind != NOBITS)
    }

    pub fn section(&self, name: &str) -> Result<Option<&'f [u8]>> {
        match self.find(name) {
            Some(section) => self.content(section),
            None => Ok(None),
        }
    }

    /// With its address, before the bias is added.
    pub fn section_at(&self, name: &str) -> Result<Option<(u64, &'f [u8])>> {
        let Some(section) = self.find(name) else {
            return Ok(None);
        };
        let content = self.content(section)?;
        Ok(content.map(|content| (section.address, content)))
    }

    /// Inflated, where it is compressed. Zstandard is not read.
    fn content(&self, section: Section) -> Result<Option<&'f [u8]>> {
        if section.kind == NOBITS {
            return Ok(None);
        }
        let Some(bytes) = self.read(section.offset, section.size)? else {
            return Ok(None);
        };
        if section.flags & COMPRESSED == 0 {
            return Ok(Some(bytes));
        }
        let (Some(ZLIB), Some(size), Some(packed)) =
            (u32_at(bytes, 0), u64_at(bytes, 8), bytes.get(COMPRESSION..))
        else {
            return Ok(None);
        };
        if size > LARGEST || size > packed.len() as u64 * MOST_INFLATED {
            return Ok(None);
        }
        let mut inflated = Vec::new();
        inflated.try_fill(size as usize, 0u8, "debug information")?;
        if ZlibDecoder::new(packed).read_exact(&mut inflated).is_err() {
            return Ok(None);
        }
        Ok(Some(self.files.keep(inflated)))
    }

    /// Empty, if the file has none.
    pub fn build_id(&self) -> Result<&'f [u8]> {
        for section in self.sections.iter().filter(|section| section.kind == NOTE) {
            let notes = self.content(*section)?;
            if let Some(id) = notes.and_then(build_id) {
                return Ok(id);
            }
        }
        Ok(&[])
    }

    /// Whether loading this file puts what is at `offset` to `address` before the
    /// bias is added, and as code.
    pub fn has_code_at(&self, offset: u64, address: u64) -> Result<bool> {
        let start = u64_at(self.header, 32).unwrap_or(0);
        let size = u16_at(self.header, 54).unwrap_or(0);
        let count = u16_at(self.header, 56).unwrap_or(0);
        if usize::from(size) != SEGMENT {
            return Ok(false);
        }
        let table = self.read(start, u64::from(count) * SEGMENT as u64)?;
        let found = table.unwrap_or_default().chunks_exact(SEGMENT).any(|row| {
            let kind = u32_at(row, 0) == Some(LOAD);
            let code = u32_at(row, 4).is_some_and(|flags| flags & EXECUTABLE != 0);
            let (Some(from), Some(to), Some(size)) =
                (u64_at(row, 8), u64_at(row, 16), u64_at(row, 40))
            else {
                return false;
            };
            // Memory is mapped by pages, so it may begin somewhat earlier.
            let moved_equally = to.wrapping_sub(from) == address.wrapping_sub(offset);
            kind && code && moved_equally && address < to.saturating_add(size)
        });
        Ok(found)
    }

    /// The name of a file with debug information, and its checksum.
    pub fn debug_link(&self) -> Result<Option<(&'f OsStr, u32)>> {
        let link = self.section(".gnu_debuglink")?.unwrap_or_default();
        let name = string_at(link, 0);
        // The checksum follows at the next multiple of four.
        let checksum = u32_at(link, (name.len() + 4) & !3);
        Ok(match checksum {
            Some(checksum) if !name.is_empty() && !name.contains(&b'/') => {
                Some((OsStr::from_bytes(name), checksum))
            }
            _ => None,
        })
    }

    /// The file with what several files of debug information share, and its build id.
    pub fn shared_link(&self) -> Result<Option<(&'f Path, &'f [u8])>> {
        let link = self.section(".gnu_debugaltlink")?.unwrap_or_default();
        let name = string_at(link, 0);
        let id = link.get(name.len() + 1..).unwrap_or_default();
        let known = !name.is_empty() && !id.is_empty();
        Ok(known.then(|| (Path::new(OsStr::from_bytes(name)), id)))
    }

    /// All functions, or those alone that others may call.
    pub fn functions(&self, all: bool) -> Result<Option<Functions<'f>>> {
        let kind = if all { SYMTAB } else { DYNSYM };
        let Some(table) = self.sections.iter().find(|section| section.kind == kind) else {
            return Ok(None);
        };
        let Some(names) = self.sections.get(table.link as usize) else {
            return Ok(None);
        };
        let (Some(table), Some(names)) = (self.content(*table)?, self.content(*names)?) else {
            return Ok(None);
        };
        let mut ranges = Vec::new();
        for function in table.chunks_exact(SYMBOL).filter_map(Function::parse) {
            let (range, function) = function;
            ranges.try_push((range, function), "symbols")?;
        }
        Ok(Some(Functions {
            ranges: Ranges::new(ranges)?,
            names,
        }))
    }
}

impl Section {
    fn parse(row: &[u8]) -> Option<Section> {
        Some(Section {
            name: u32_at(row, 0)?,
            kind: u32_at(row, 4)?,
            flags: u64_at(row, 8)?,
            address: u64_at(row, 16)?,
            offset: u64_at(row, 24)?,
            size: u64_at(row, 32)?,
            link: u32_at(row, 40)?,
        })
    }
}

/// The functions of a table of symbols.
pub struct Functions<'f> {
    ranges: Ranges<Function>,
    names: &'f [u8],
}

#[derive(Debug, Clone, Copy)]
struct Function {
    name: u32,
    local: bool,
}

impl Function {
    fn parse(row: &[u8]) -> Option<(std::ops::Range<u64>, Function)> {
        let kind = *row.get(4)?;
        let section = u16_at(row, 6)?;
        let start = u64_at(row, 8)?;
        let end = start.checked_add(u64_at(row, 16)?)?;
        let function = Function {
            name: u32_at(row, 0)?,
            local: kind >> 4 == 0,
        };
        let is_function = matches!(kind & 15, FUNC | IFUNC) && section != 0 && start < end;
        is_function.then_some((start..end, function))
    }
}

impl Functions<'_> {
    /// The name of the function that an address is in. Of several names the one
    /// that others may call, with the fewest underscores in front (`write`, not
    /// `__write`), then the shortest.
    pub fn at(&self, address: u64) -> Option<String> {
        let best = self
            .ranges
            .containing(address)
            .map(|(start, function)| {
                let name = string_at(self.names, function.name);
                (start, function.local, unversioned(name))
            })
            .filter(|(.., name)| !name.is_empty())
            .min_by_key(|(start, local, name)| {
                let underscores = name.iter().take_while(|byte| **byte == b'_').count();
                (Reverse(*start), *local, underscores, name.len(), *name)
            })?;
        names::text(best.2)
    }
}

/// Symbols may come with a version of their library, which is no part of the name:
/// `memcpy@@GLIBC_2.14`.
fn unversioned(name: &[u8]) -> &[u8] {
    match name.iter().position(|byte| *byte == b'@') {
        Some(end) => &name[..end],
        None => name,
    }
}

/// Of the notes of a file: sizes of name and content, a kind, the name, the content,
/// both filled up to a multiple of four.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let name_size = u32_at(notes, 0)? as usize;
        let size = u32_at(notes, 4)? as usize;
        let kind = u32_at(notes, 8)?;
        let content = 12 + name_size.checked_next_multiple_of(4)?;
        let end = content.checked_add(size)?;
        if kind == BUILD_ID && notes.get(12..12 + name_size) == Some(b"GNU\0") {
            return notes.get(content..end).filter(|id| !id.is_empty());
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

/// Up to the next zero; empty where there is none.
fn string_at(bytes: &[u8], start: u32) -> &[u8] {
    let rest = bytes.get(start as usize..).unwrap_or_default();
    match memchr::memchr(0, rest) {
        Some(end) => &rest[..end],
        None => &[],
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}
