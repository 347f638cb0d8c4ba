//! Modules: the program and the libraries that are loaded at each tick.
//!
//! Between two ticks a library may be unloaded, and the same or another one loaded. Therefore each
//! address is looked up at its tick ([`Loader`]), and the name of a new module is recorded at once, in case it is unloaded
//! before the end of the run. All memory is allocated before the run.

use super::loader::{LinkMap, Loaded, Loader, MOST_MODULES};
use super::memory::page_size;
use profile_core::error::{Error, Result};
use profile_core::joint::{self, Role};
use profile_unwind::image::{HEAD, build_id, extent};
use profile_unwind::{Image, UnwindTables};
use std::ffi::{CStr, OsStr};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

const NAME_BYTES: usize = 1 << 20;
const LONGEST_NAME: usize = 4096;

pub struct Modules {
    loader: Loader,
    entries: Vec<Entry>,
    names: Vec<u8>,
    /// The index of the module that contained the last address.
    last: usize,
    /// The size of a page of memory.
    page: u64,
}

struct Entry {
    map: Range<u64>,
    link_map: *const LinkMap,
    image: Image,
    name: Range<usize>,
    build_id: Range<usize>,
    /// The address range of the build id.
    id: Range<u64>,
    /// The first bytes of the build id. They are compared at each lookup, since another library may
    /// have been loaded at the same addresses.
    id_start: u64,
    tables: Option<UnwindTables<'static>>,
}

impl profile_unwind::Modules for Modules {
    fn at(&mut self, address: u64) -> Option<usize> {
        let found = self.loader.find(address)?;
        // SAFETY: the loader has found this module, and it stays loaded, because the interrupted
        // thread has a frame in it.
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

    fn tables(&self, row: usize) -> Option<&UnwindTables<'_>> {
        self.entries.get(row)?.tables.as_ref()
    }

    fn code(&mut self, row: usize, address: u64) -> Option<u64> {
        let code = &self.entries.get(row)?.image.code;
        let end = address.checked_add(size_of::<u64>() as u64)?;
        if address < code.start || end > code.end {
            return None;
        }
        // SAFETY: inside the code of a module, which stays loaded, because the interrupted thread has a frame in it.
        Some(unsafe { (address as *const u64).read_unaligned() })
    }
}

impl Modules {
    pub fn new() -> Result<Modules> {
        let mut modules = Modules {
            loader: Loader::new()?,
            entries: Vec::new(),
            names: Vec::new(),
            last: 0,
            page: page_size(),
        };
        let full = |_| Error::Memory;
        modules
            .entries
            .try_reserve_exact(MOST_MODULES)
            .map_err(full)?;
        modules.names.try_reserve_exact(NAME_BYTES).map_err(full)?;
        Ok(modules)
    }

    /// Adds a module.
    ///
    /// # Safety
    /// The loader has just found this module, and it stays loaded.
    unsafe fn add(&mut self, found: &Loaded) -> Option<usize> {
        if self.entries.len() == self.entries.capacity() {
            return None;
        }
        let map = found.map.clone();
        // SAFETY: by the contract of this function.
        let head = unsafe { bytes(&(map.start..map.start + HEAD)) };
        // If there are gaps between the parts of the program, glibc reports those until the end of its code only.
        let all = extent(map.start, head).unwrap_or(map.clone());
        let image = Image::read(&all, head, self.page).unwrap_or_default();
        // SAFETY: by the contract of this function; the name is a string as long as the module is
        // loaded.
        let name = unsafe {
            match found.link_map.as_ref() {
                Some(link) if !link.name.is_null() => CStr::from_ptr(link.name).to_bytes(),
                _ => b"",
            }
        };
        let id = image.notes.iter().find_map(|notes| {
            // SAFETY: inside the module, in a segment that can be read, by its headers.
            build_id(notes.start, unsafe { bytes(notes) })
        });
        let id = id.unwrap_or_default();
        let name = self.store(name);
        // SAFETY: inside the notes.
        let build_id = self.store(unsafe { bytes(&id) });
        // SAFETY: inside the module, in a segment that can be read, by its headers.
        let sections = unsafe { bytes(&(image.unwind.start..image.unwind_end)) };
        let tables = UnwindTables::new(&image.unwind, sections);
        self.entries.push(Entry {
            // SAFETY: by the contract of this function.
            id_start: unsafe { start_of(&id) },
            id,
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
        all.try_reserve_exact(self.entries.len())?;
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
                // The file may have been replaced, which cannot be detected without a build id.
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
                file: None,
            });
        }
        Ok(all)
    }
}

impl Entry {
    /// Whether the module that the loader has found is the one of this entry.
    ///
    /// # Safety
    /// The loader has just found this module, and it stays loaded.
    unsafe fn is(&self, found: &Loaded) -> bool {
        self.map == found.map
            && self.link_map == found.link_map
            // SAFETY: inside the module: a module with the same extent is mapped at the same
            // addresses as the one whose headers were read.
            && self.id_start == unsafe { start_of(&self.id) }
    }
}

/// The first bytes of a build id, 0 if there are too few.
///
/// # Safety
/// The module that contains it is mapped.
unsafe fn start_of(id: &Range<u64>) -> u64 {
    // SAFETY: by the contract of this function.
    let bytes = unsafe { bytes(id) };
    let first = bytes.first_chunk();
    first.map_or(0, |first| u64::from_ne_bytes(*first))
}

/// The bytes in a range of memory.
///
/// # Safety
/// The range is mapped and stays mapped.
unsafe fn bytes<'a>(range: &Range<u64>) -> &'a [u8] {
    if range.is_empty() {
        return b"";
    }
    // SAFETY: by the contract of this function.
    unsafe {
        std::slice::from_raw_parts(range.start as *const u8, (range.end - range.start) as usize)
    }
}

/// Linux appends this to the path of a mapped file that was deleted.
const DELETED: &str = " (deleted)";

/// Whether `/proc/self/maps` lists this code as mapped from a file that was not deleted: "start-end
/// r-xp offset device inode path".
fn is_mapped(code: &Range<u64>, maps: &[u8]) -> bool {
    let start = format!("{:x}-", code.start);
    maps.split(|&byte| byte == b'\n')
        .any(|line| line.starts_with(start.as_bytes()) && !line.ends_with(DELETED.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile_unwind::Modules as _;
    use std::path::Path;

    #[test]
    fn modules_agree_with_the_list_of_the_system() {
        let mut modules = Modules::new().unwrap();
        let addresses = [
            libc::qsort as *const () as u64,
            is_mapped as *const () as u64,
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
            // Some directories are symbolic links.
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
