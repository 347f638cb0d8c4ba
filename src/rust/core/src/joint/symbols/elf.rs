//! Reads ELF files: their sections, symbols and build ids.
//!
//! The crate object parses the format (System V ABI, chapters 4 and 5). It reads through
//! [`Pieces`]: only the requested sections, since a library of a gigabyte may have only a few
//! kilobytes of symbols; and without mapping the file into memory, since a process ends if a file
//! that it has mapped is truncated. Only files that the joint profiler can encounter are supported:
//! 64 bits, little-endian.

use super::files::Files;
use super::names;
use super::ranges::Ranges;
use crate::error::{Error, Result};
use crate::limits::memory::TryGrow;
use flate2::read::ZlibDecoder;
use hmac_sha256::Hash;
use object::LittleEndian;
use object::elf::{self, FileHeader64, Rela64, SectionHeader64, Sym64};
use object::read::elf::{
    CompressionHeader, FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym,
};
use object::read::{self, ReadRef, StringTable};
use std::cell::Cell;
use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

type Header = FileHeader64<LittleEndian>;
type Section = SectionHeader64<LittleEndian>;
type Symbol = Sym64<LittleEndian>;
type Relocation = Rela64<LittleEndian>;
type Strings<'f> = StringTable<'f, &'f [u8]>;
const LE: LittleEndian = LittleEndian;

/// The code for which a file was compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processor {
    X86_64,
    Aarch64,
}

/// The maximum compression ratio of zlib.
const MOST_INFLATED: u64 = 1032;
/// The maximum size of a section that is read: the limit of debug information with 32-bit offsets.
const LARGEST: u64 = u32::MAX as u64;

pub struct Elf<'f> {
    pub path: PathBuf,
    input: Input,
    header: &'f Header,
    sections: SectionTable<'f, Header, &'f [u8]>,
    files: &'f Files,
}

impl<'f> Elf<'f> {
    /// `None` if the file does not exist or is not ELF.
    pub fn open(path: &Path, files: &'f Files) -> Result<Option<Elf<'f>>> {
        let Some(input) = Input::open(path) else {
            return Ok(None);
        };
        let Some(header) = input.ask(files, |data| Header::parse(data))? else {
            return Ok(None);
        };
        // Big-endian files have the same header.
        if header.endian().is_err() {
            return Ok(None);
        }
        let mut elf = Elf {
            path: PathBuf::from(path),
            input,
            header,
            sections: SectionTable::default(),
            files,
        };
        let all = elf.ask(|data| header.section_headers(LE, data))?;
        let names = elf.ask(|data| header.shstrndx(LE, data))?;
        let all = all.unwrap_or_default();
        let names = names.and_then(|index| all.get(index as usize));
        let names = elf.content(names)?.unwrap_or_default();
        elf.sections = SectionTable::new(all, strings(names));
        Ok(Some(elf))
    }

    /// Reads with the crate object; `None` if the file is damaged.
    fn ask<T>(&self, read: impl FnOnce(Pieces<'_, 'f>) -> read::Result<T>) -> Result<Option<T>> {
        self.input.ask(self.files, read)
    }

    fn find(&self, name: &str) -> Option<&'f Section> {
        let found = self.sections.section_by_name(LE, name.as_bytes());
        found.map(|(_, section)| section)
    }

    pub fn has(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|section| section.sh_type(LE) != elf::SHT_NOBITS)
    }

    pub fn section(&self, name: &str) -> Result<Option<&'f [u8]>> {
        self.content(self.find(name))
    }

    /// The content of a section, and its address without the bias.
    pub fn section_at(&self, name: &str) -> Result<Option<(u64, &'f [u8])>> {
        let section = self.find(name);
        let content = self.content(section)?;
        Ok(section.map(|section| section.sh_addr(LE)).zip(content))
    }

    /// The content of a section, decompressed if necessary. Zstandard is not supported.
    fn content(&self, section: Option<&Section>) -> Result<Option<&'f [u8]>> {
        let Some(section) = section.filter(|section| section.sh_type(LE) != elf::SHT_NOBITS) else {
            return Ok(None);
        };
        match self.ask(|data| section.compression(LE, data))? {
            None => Ok(None),
            Some(None) => self.ask(|data| section.data(LE, data)),
            Some(Some((header, offset, size))) => {
                let packed = self.ask(|data| Ok(data.read_bytes_at(offset, size).ok()))?;
                let size = header.ch_size(LE);
                match packed.flatten() {
                    Some(packed) if header.ch_type(LE) == elf::ELFCOMPRESS_ZLIB => {
                        self.inflated(packed, size)
                    }
                    _ => Ok(None),
                }
            }
        }
    }

    fn inflated(&self, packed: &[u8], size: u64) -> Result<Option<&'f [u8]>> {
        if size > LARGEST || size > packed.len() as u64 * MOST_INFLATED {
            return Ok(None);
        }
        let mut inflated = Vec::new();
        inflated.try_fill(size as usize, 0u8)?;
        let whole = ZlibDecoder::new(packed).read_exact(&mut inflated).is_ok();
        Ok(whole.then(|| self.files.keep(inflated)))
    }

    /// The hash of the file that OpenTelemetry defines as its deterministic build id, for files whose linker wrote
    /// none, or that were stripped of it: https://opentelemetry.io/docs/specs/otel/profiles/mappings/. It is the first
    /// half of the SHA-256 digest of the first and the last 4096 bytes of the file, which may overlap, and of its
    /// length. `None` if the file cannot be read.
    pub fn file_hash(&self) -> Result<Option<[u8; 16]>> {
        let length = self.input.length;
        let size = length.min(4096);
        let data = Pieces {
            input: &self.input,
            files: self.files,
        };
        let ends = [0, length - size].map(|offset| data.read_bytes_at(offset, size));
        match ends {
            [Ok(first), Ok(last)] => {
                let mut hash = Hash::new();
                for part in [first, last, &length.to_be_bytes()] {
                    hash.update(part);
                }
                Ok(hash.finalize().first_chunk().copied())
            }
            _ if self.input.out_of_memory.get() => Err(Error::Memory),
            _ => Ok(None),
        }
    }

    /// The build id; empty if the file has none.
    pub fn build_id(&self) -> Result<&'f [u8]> {
        for section in self.sections.iter() {
            let Some(Some(mut notes)) = self.ask(|data| section.notes(LE, data))? else {
                continue;
            };
            while let Ok(Some(note)) = notes.next() {
                let is_id =
                    note.name() == elf::ELF_NOTE_GNU && note.n_type(LE) == elf::NT_GNU_BUILD_ID;
                if is_id && !note.desc().is_empty() {
                    return Ok(note.desc());
                }
            }
        }
        Ok(&[])
    }

    /// Whether loading this file maps the content at `offset` to `address` (without the bias), as
    /// code.
    pub fn has_code_at(&self, offset: u64, address: u64) -> Result<bool> {
        let segments = self.ask(|data| self.header.program_headers(LE, data))?;
        Ok(segments.unwrap_or_default().iter().any(|segment| {
            let is_code =
                segment.p_type(LE) == elf::PT_LOAD && segment.p_flags(LE).contains(elf::PF_X);
            let (from, to) = (segment.p_offset(LE), segment.p_vaddr(LE));
            // Memory is mapped in pages, so the mapping may begin before the segment.
            let moved_equally = to.wrapping_sub(from) == address.wrapping_sub(offset);
            is_code && moved_equally && address < to.saturating_add(segment.p_memsz(LE))
        }))
    }

    /// The name of the separate file with debug information, and its checksum.
    pub fn debug_link(&self) -> Result<Option<(&'f OsStr, u32)>> {
        let link = self.section(".gnu_debuglink")?.unwrap_or_default();
        let name = strings(link).get(0).unwrap_or_default();
        // The checksum follows at the next multiple of four.
        let checksum = link.get((name.len() + 4) & !3..);
        let checksum = checksum.and_then(|rest| rest.first_chunk());
        let is_name = !name.is_empty() && !name.contains(&b'/');
        let name = is_name.then(|| OsStr::from_bytes(name));
        Ok(name.zip(checksum.map(|bytes| u32::from_le_bytes(*bytes))))
    }

    /// The file with shared debug information, and its build id.
    pub fn shared_link(&self) -> Result<Option<(&'f Path, &'f [u8])>> {
        let link = self.section(".gnu_debugaltlink")?.unwrap_or_default();
        let name = strings(link).get(0).unwrap_or_default();
        let id = link.get(name.len() + 1..).unwrap_or_default();
        let is_complete = !name.is_empty() && !id.is_empty();
        Ok(is_complete.then(|| (Path::new(OsStr::from_bytes(name)), id)))
    }

    /// The processor for which the file was compiled, if its stubs are known.
    pub fn processor(&self) -> Option<Processor> {
        match self.header.e_machine(LE) {
            elf::EM_X86_64 => Some(Processor::X86_64),
            elf::EM_AARCH64 => Some(Processor::Aarch64),
            _ => None,
        }
    }

    /// The slots of the global offset table that get the address of a function of another file.
    pub fn slots(&self) -> Result<Vec<Slot>> {
        let mut slots = Vec::new();
        for section in self.sections.iter() {
            if section.sh_type(LE) != elf::SHT_RELA {
                continue;
            }
            let symbols = self.sections.section(section.link(LE)).ok();
            let names = symbols.and_then(|table| self.sections.section(table.link(LE)).ok());
            let symbols = self.content(symbols)?.unwrap_or_default();
            let names = strings(self.content(names)?.unwrap_or_default());
            let symbols: &[Symbol] = whole(symbols);
            for relocation in whole::<Relocation>(self.content(Some(section))?.unwrap_or_default())
            {
                let kind = relocation.r_type(LE, false).0;
                if !SLOTS.contains(&kind) {
                    continue;
                }
                let symbol = symbols.get(relocation.r_sym(LE, false) as usize);
                let name = symbol.and_then(|symbol| names.get(symbol.st_name(LE)).ok());
                let name = name.and_then(|name| names::text(unversioned(name)));
                if let Some(name) = name.filter(|name| !name.is_empty()) {
                    let address = relocation.r_offset.get(LE);
                    slots.try_push(Slot { address, name })?;
                }
            }
        }
        Ok(slots)
    }

    /// All functions, or only those that are exported.
    pub fn functions(&self, all: bool) -> Result<Option<Functions<'f>>> {
        let kind = if all {
            elf::SHT_SYMTAB
        } else {
            elf::SHT_DYNSYM
        };
        let table = self
            .sections
            .iter()
            .find(|section| section.sh_type(LE) == kind);
        let names = table.and_then(|table| self.sections.section(table.link(LE)).ok());
        let (Some(table), Some(names)) = (self.content(table)?, self.content(names)?) else {
            return Ok(None);
        };
        let mut ranges = Vec::new();
        for function in whole(table).iter().filter_map(function) {
            ranges.try_push(function)?;
        }
        Ok(Some(Functions {
            ranges: Ranges::new(ranges)?,
            names: strings(names),
        }))
    }
}

/// The entries of a table. A truncated one may end inside an entry.
fn whole<T: object::pod::Pod>(table: &[u8]) -> &[T] {
    let count = table.len() / size_of::<T>();
    let entries = object::pod::slice_from_bytes::<T>(table, count);
    entries.map_or(&[][..], |(entries, _)| entries)
}

/// A slot of the global offset table, and the function whose address it gets.
pub struct Slot {
    pub address: u64,
    pub name: String,
}

/// The kinds of relocations that fill such slots: `R_X86_64_GLOB_DAT`, `R_X86_64_JUMP_SLOT`, `R_AARCH64_GLOB_DAT` and
/// `R_AARCH64_JUMP_SLOT`. Other processors have other numbers for them, but no stubs that are known here.
const SLOTS: [u32; 4] = [6, 7, 1025, 1026];

/// The functions of a symbol table.
pub struct Functions<'f> {
    ranges: Ranges<Function>,
    names: Strings<'f>,
}

#[derive(Debug, Clone, Copy)]
struct Function {
    name: u32,
    local: bool,
}

/// The addresses of a symbol, if it is a function that this file defines. Symbols of type IFUNC are
/// functions that select one of several implementations when the file is loaded.
fn function(symbol: &Symbol) -> Option<(Range<u64>, Function)> {
    let start = symbol.st_value(LE);
    let end = start.checked_add(symbol.st_size(LE))?;
    let is_function = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
    let is_defined = symbol.st_shndx(LE) != elf::SHN_UNDEF;
    let function = Function {
        name: symbol.st_name(LE),
        local: symbol.st_bind() == elf::STB_LOCAL,
    };
    (is_function && is_defined && start < end).then_some((start..end, function))
}

impl Functions<'_> {
    /// The name of the function that contains an address. If there are several names, global ones
    /// are preferred, then those with the fewest leading underscores (`write`, not `__write`), then
    /// the shortest.
    pub fn at(&self, address: u64) -> Option<String> {
        let best = self
            .ranges
            .containing(address)
            .map(|(start, function)| {
                let name = self.names.get(function.name).unwrap_or_default();
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

/// The name without the version of its library: `memcpy` for `memcpy@@GLIBC_2.14`.
fn unversioned(name: &[u8]) -> &[u8] {
    match name.iter().position(|byte| *byte == b'@') {
        Some(end) => &name[..end],
        None => name,
    }
}

fn strings(bytes: &[u8]) -> Strings<'_> {
    StringTable::new(bytes, 0, bytes.len() as u64)
}

/// An open regular file.
struct Input {
    file: File,
    length: u64,
    /// Whether reading failed due to a lack of memory, which the errors of the crate object cannot
    /// express.
    out_of_memory: Cell<bool>,
}

impl Input {
    fn open(path: &Path) -> Option<Input> {
        // Opening a pipe might block.
        fs::metadata(path).ok().filter(|about| about.is_file())?;
        let file = File::open(path).ok()?;
        let length = file.metadata().map_or(0, |about| about.len());
        Some(Input {
            file,
            length,
            out_of_memory: Cell::new(false),
        })
    }

    fn ask<'f, T>(
        &self,
        files: &'f Files,
        read: impl FnOnce(Pieces<'_, 'f>) -> read::Result<T>,
    ) -> Result<Option<T>> {
        let found = read(Pieces { input: self, files }).ok();
        if self.out_of_memory.get() {
            Err(Error::Memory)
        } else {
            Ok(found)
        }
    }
}

/// Reads pieces of a file on request, and keeps them.
#[derive(Clone, Copy)]
struct Pieces<'i, 'f> {
    input: &'i Input,
    files: &'f Files,
}

impl<'f> ReadRef<'f> for Pieces<'_, 'f> {
    fn len(self) -> std::result::Result<u64, ()> {
        Ok(self.input.length)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> std::result::Result<&'f [u8], ()> {
        let end = offset.checked_add(size).ok_or(())?;
        if end > self.input.length || size > LARGEST {
            return Err(());
        }
        let mut bytes = Vec::new();
        let filled = bytes.try_fill(size as usize, 0u8);
        filled.map_err(|_| self.input.out_of_memory.set(true))?;
        let read = self.input.file.read_exact_at(&mut bytes, offset);
        read.map_err(drop)?;
        Ok(self.files.keep(bytes))
    }

    fn read_bytes_at_until(
        self,
        range: Range<u64>,
        delimiter: u8,
    ) -> std::result::Result<&'f [u8], ()> {
        let size = range.end.checked_sub(range.start).ok_or(())?;
        let bytes = self.read_bytes_at(range.start, size)?;
        let end = memchr::memchr(delimiter, bytes).ok_or(())?;
        bytes.get(..end).ok_or(())
    }
}
