//! Modules: which code is where in memory, at the time of each tick.
//!
//! A library may be loaded, unloaded and loaded again elsewhere, or another one in
//! its place, between two ticks. So each address is looked up when it is seen, with
//! `_dl_find_object()`, and a new module is recorded with its name, so that it still has
//! one when it is unloaded before the end of the run. All memory is allocated before the
//! run.

use super::unwind_tables::UnwindTables;
use libc::{Elf64_Ehdr, Elf64_Phdr, PT_GNU_EH_FRAME, PT_LOAD, PT_NOTE};
use profile_core::error::{Error, Result};
use profile_core::joint::{self, Role};
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

/// More libraries than a process has; stacks end at a frame in a further one.
const MOST_MODULES: usize = 4096;
const NAME_BYTES: usize = 1 << 20;
const LONGEST_NAME: usize = 4096;
/// The headers of a module stand at its start, and in practice on its first page.
const PAGE: u64 = 4096;

/// `struct dl_find_object` of glibc's `dlfcn.h`.
#[repr(C)]
struct DlFindObject {
    flags: u64,
    map_start: *const u8,
    map_end: *const u8,
    link_map: *const LinkMap,
    eh_frame: *const u8,
    reserved: [u64; 7],
}

/// The public start of `struct link_map` of glibc's `link.h`.
#[repr(C)]
struct LinkMap {
    bias: u64,
    name: *const c_char,
}

type FindObject = unsafe extern "C" fn(*const c_void, *mut DlFindObject) -> c_int;

pub struct Modules {
    find: FindObject,
    entries: Vec<Entry>,
    names: Vec<u8>,
    /// The one that the last address was in.
    last: usize,
}

struct Entry {
    map: Range<u64>,
    link_map: *const LinkMap,
    image: Image,
    name: Range<usize>,
    build_id: Range<usize>,
    /// The first bytes of the build id. They are compared whenever an address is found
    /// here, since another library may have been loaded to the same place.
    id_start: u64,
    tables: Option<UnwindTables>,
}

impl Modules {
    pub fn new() -> Result<Modules> {
        let mut modules = Modules {
            find: find_object()?,
            entries: Vec::new(),
            names: Vec::new(),
            last: 0,
        };
        let full = |_| Error::Memory("the list of modules");
        modules
            .entries
            .try_reserve_exact(MOST_MODULES)
            .map_err(full)?;
        modules.names.try_reserve_exact(NAME_BYTES).map_err(full)?;
        Ok(modules)
    }

    /// The module that an address is in now.
    pub fn at(&mut self, address: u64) -> Option<usize> {
        let mut found = DlFindObject {
            flags: 0,
            map_start: std::ptr::null(),
            map_end: std::ptr::null(),
            link_map: std::ptr::null(),
            eh_frame: std::ptr::null(),
            reserved: [0; 7],
        };
        // SAFETY: glibc's own function, which only fills `found`.
        if unsafe { (self.find)(address as *const c_void, &mut found) } != 0 {
            return None;
        }
        // SAFETY: the loader says that this module is there, and the interrupted
        // thread has a frame in it, so that it stays.
        let is_here = |entry: &Entry| unsafe { entry.is(&found) };
        if self.entries.get(self.last).is_some_and(is_here) {
            return Some(self.last);
        }
        self.last = match self.entries.iter().position(is_here) {
            Some(row) => row,
            // SAFETY: as above.
            None => unsafe { self.add(&found) }?,
        };
        Some(self.last)
    }

    pub fn tables(&self, row: usize) -> Option<&UnwindTables> {
        self.entries.get(row)?.tables.as_ref()
    }

    /// # Safety
    /// The loader has just found this module, and it stays.
    unsafe fn add(&mut self, found: &DlFindObject) -> Option<usize> {
        if self.entries.len() == self.entries.capacity() {
            return None;
        }
        let map = found.map_start as u64..found.map_end as u64;
        // SAFETY: as promised.
        let image = unsafe { Image::read(&map) }.unwrap_or_default();
        // SAFETY: as promised; the name is a string as long as the module is there.
        let name = unsafe {
            match found.link_map.as_ref() {
                Some(link) if !link.name.is_null() => CStr::from_ptr(link.name).to_bytes(),
                _ => b"",
            }
        };
        // SAFETY: inside the module, by its headers.
        let build_id = unsafe { bytes(&image.build_id) };
        let name = self.store(name);
        let build_id = self.store(build_id);
        // SAFETY: as promised.
        let tables = unsafe { UnwindTables::new(&image.unwind, image.unwind_end) };
        self.entries.push(Entry {
            // SAFETY: as promised.
            id_start: unsafe { image.id_start() },
            map,
            link_map: found.link_map,
            image,
            name,
            build_id,
            tables,
        });
        Some(self.entries.len() - 1)
    }

    /// Stores some bytes, if they fit.
    fn store(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.names.len();
        if bytes.len() <= LONGEST_NAME.min(self.names.capacity() - start) {
            self.names.extend_from_slice(bytes);
        }
        start..self.names.len()
    }

    /// All modules of the recording. `evaluator` is an address inside R's evaluator.
    pub fn seen(&self, evaluator: u64) -> Result<Vec<joint::Module>> {
        let mut all = Vec::new();
        all.try_reserve_exact(self.entries.len())
            .map_err(|_| Error::Memory("the list of modules"))?;
        let stored = |range: &Range<usize>| self.names.get(range.clone()).unwrap_or_default();
        let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
        for entry in &self.entries {
            let name = stored(&entry.name);
            let build_id = stored(&entry.build_id);
            // The loader has no name for the program itself.
            let mut path = match name {
                b"" => std::fs::read_link("/proc/self/exe").unwrap_or_default(),
                _ => OsStr::from_bytes(name).into(),
            };
            if build_id.is_empty() && !is_mapped(&entry.image.code, &maps) {
                // Another file may have replaced it, which could not be detected.
                path.as_mut_os_string().push(DELETED);
            }
            let role = if entry.map.contains(&evaluator) {
                Role::Evaluator
            } else if name.is_empty() {
                Role::Program
            } else {
                Role::Library
            };
            all.push(joint::Module {
                path: path.to_string_lossy().into_owned(),
                role,
                bias: entry.image.bias,
                code: entry.image.code.clone(),
                offset: entry.image.offset,
                build_id: build_id.to_vec(),
            });
        }
        Ok(all)
    }
}

impl Entry {
    /// # Safety
    /// The loader has just found this module, and it stays.
    unsafe fn is(&self, found: &DlFindObject) -> bool {
        self.map.start == found.map_start as u64
            && self.map.end == found.map_end as u64
            && self.link_map == found.link_map
            // SAFETY: inside the module, which had such headers when it was added; one
            // of the same extent has mapped the same addresses.
            && self.id_start == unsafe { self.image.id_start() }
    }
}

/// A module, as its headers describe it.
#[derive(Debug, Clone, Default)]
struct Image {
    bias: u64,
    code: Range<u64>,
    offset: u64,
    /// `.eh_frame_hdr`, and the end of the segment that it is in.
    unwind: Range<u64>,
    unwind_end: u64,
    build_id: Range<u64>,
}

impl Image {
    /// # Safety
    /// `map` is a module that is mapped and stays.
    unsafe fn read(map: &Range<u64>) -> Option<Image> {
        // SAFETY: a module has its first page mapped, and the ELF header fits.
        let header = unsafe { (map.start as *const Elf64_Ehdr).read_unaligned() };
        let size = size_of::<Elf64_Phdr>() as u64;
        let end = header
            .e_phoff
            .checked_add(size * u64::from(header.e_phnum))?;
        if header.e_ident[..4] != *b"\x7fELF" || u64::from(header.e_phentsize) != size || end > PAGE
        {
            return None;
        }
        let segments = (0..u64::from(header.e_phnum)).map(|i| {
            let at = map.start + header.e_phoff + i * size;
            // SAFETY: on the first page, as was checked.
            unsafe { (at as *const Elf64_Phdr).read_unaligned() }
        });
        let first = segments.clone().find(|s| s.p_type == PT_LOAD)?;
        let bias = map.start.wrapping_sub(first.p_vaddr / PAGE * PAGE);
        let place = |s: &Elf64_Phdr| {
            let start = bias.wrapping_add(s.p_vaddr);
            let end = start.checked_add(s.p_memsz)?;
            (map.start <= start && end <= map.end).then_some(start..end)
        };
        let loaded = |range: &Range<u64>| {
            segments
                .clone()
                .filter(|s| s.p_type == PT_LOAD && s.p_flags & libc::PF_R != 0)
                .filter_map(|s| place(&s))
                .find(|s| s.start <= range.start && range.end <= s.end)
        };
        let mut image = Image {
            bias,
            ..Image::default()
        };
        for segment in segments.clone() {
            let Some(range) = place(&segment) else {
                continue;
            };
            match segment.p_type {
                PT_LOAD if segment.p_flags & libc::PF_X != 0 && image.code.is_empty() => {
                    let before = range.start % PAGE;
                    image.code = range.start - before..range.end;
                    image.offset = segment.p_offset.saturating_sub(before);
                }
                PT_GNU_EH_FRAME => {
                    if let Some(segment) = loaded(&range) {
                        image.unwind = range;
                        image.unwind_end = segment.end;
                    }
                }
                PT_NOTE if image.build_id.is_empty() && loaded(&range).is_some() => {
                    // SAFETY: in a segment that can be read.
                    image.build_id = unsafe { build_id(range) }.unwrap_or_default();
                }
                _ => {}
            }
        }
        Some(image)
    }

    /// # Safety
    /// The module is mapped.
    unsafe fn id_start(&self) -> u64 {
        if self.build_id.end - self.build_id.start < size_of::<u64>() as u64 {
            return 0;
        }
        // SAFETY: inside the build id.
        unsafe { (self.build_id.start as *const u64).read_unaligned() }
    }
}

/// Linux appends this to the path of a mapped file that was deleted.
const DELETED: &str = " (deleted)";

/// Whether code is mapped, by `/proc/self/maps`, from a file that still has its name:
/// "start-end r-xp offset device inode path".
fn is_mapped(code: &Range<u64>, maps: &[u8]) -> bool {
    let start = format!("{:x}-", code.start);
    maps.split(|&byte| byte == b'\n')
        .any(|line| line.starts_with(start.as_bytes()) && !line.ends_with(DELETED.as_bytes()))
}

/// # Safety
/// The range is mapped and stays.
unsafe fn bytes<'a>(range: &Range<u64>) -> &'a [u8] {
    if range.is_empty() {
        return b"";
    }
    // SAFETY: as promised.
    unsafe {
        std::slice::from_raw_parts(range.start as *const u8, (range.end - range.start) as usize)
    }
}

/// Where the build id is among the notes of a module: a note is three numbers of four
/// bytes (length of the name, length of the content, type), name and content, both
/// filled up to four bytes.
///
/// # Safety
/// The range is mapped and stays.
unsafe fn build_id(notes: Range<u64>) -> Option<Range<u64>> {
    const GNU_BUILD_ID: u32 = 3;
    // SAFETY: as promised.
    let notes_bytes = unsafe { bytes(&notes) };
    let mut at = 0;
    loop {
        let note = notes_bytes.get(at..)?;
        let number = |i: usize| {
            let four = note.get(i * 4..i * 4 + 4)?;
            Some(u32::from_ne_bytes(four.try_into().ok()?))
        };
        let (name, content, kind) = (number(0)? as usize, number(1)? as usize, number(2)?);
        let start = 12 + name.next_multiple_of(4);
        let end = start.checked_add(content)?;
        if end > note.len() {
            return None;
        }
        if kind == GNU_BUILD_ID && note.get(12..12 + name) == Some(b"GNU\0") {
            let base = notes.start + at as u64;
            return Some(base + start as u64..base + end as u64);
        }
        at += end.next_multiple_of(4);
    }
}

fn find_object() -> Result<FindObject> {
    // SAFETY: asks the loader for a name.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
    if address.is_null() {
        return Err(Error::Unsupported(
            "Native code is profiled with glibc 2.35 or later, and this one is older; \
             `Rprof()` profiles R code here."
                .to_owned(),
        ));
    }
    // SAFETY: the type that glibc's `dlfcn.h` gives it.
    Ok(unsafe { std::mem::transmute::<*mut c_void, FindObject>(address) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn modules_are_told_as_the_system_lists_them() {
        let mut modules = Modules::new().unwrap();
        let addresses = [
            libc::qsort as *const () as u64,
            find_object as *const () as u64,
        ];
        for address in addresses {
            modules.at(address).unwrap();
        }
        assert_eq!(modules.at(8), None);
        let seen = modules.seen(0).unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        for (module, address) in seen.iter().zip(addresses) {
            assert!(module.code.contains(&address));
            // "start-end r-xp offset device inode path"
            let line = maps
                .lines()
                .find(|line| line.starts_with(&format!("{:x}-", module.code.start)))
                .unwrap();
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words[1], "r-xp");
            assert_eq!(u64::from_str_radix(words[2], 16), Ok(module.offset));
            // Some folders are links.
            let path = std::fs::canonicalize(&module.path).unwrap();
            assert_eq!(Path::new(words[5]), path);
        }
        assert_eq!(seen[0].role, Role::Library);
        assert_eq!(seen[1].role, Role::Program);
    }

    #[test]
    fn a_build_id_is_that_of_the_file() {
        let mut modules = Modules::new().unwrap();
        modules.at(libc::qsort as *const () as u64).unwrap();
        let seen = modules.seen(0).unwrap();
        let file = std::fs::read(&seen[0].path).unwrap();
        assert_eq!(seen[0].build_id.len(), 20);
        let id = seen[0].build_id.as_slice();
        assert!(file.windows(20).any(|bytes| bytes == id));
    }
}
