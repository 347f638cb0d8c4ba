//! The loader: which module contains an address, at the moment of a tick.
//!
//! glibc answers this itself since 2.35, by a function for unwinders that takes no lock. Before, its list of modules is
//! read, which it publishes for debuggers with a word that says whether the list is being changed
//! (`<link.h>`, `struct r_debug`). R's thread, which is interrupted by the tick, cannot change it meanwhile. Another
//! thread that unloads a library just then could end the process: no lock prevents it, since a handler must take none. R
//! and its packages load and unload libraries in R's thread.

use profile_core::error::{Error, Result};
use profile_unwind::image::{HEAD, extent};
use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;

/// More modules than a process has. A stack ends at a frame in any further module.
pub const MOST_MODULES: usize = 4096;

/// The public fields of `struct link_map` of glibc's `link.h`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LinkMap {
    bias: u64,
    pub name: *const c_char,
    dynamic: *const c_void,
    next: *const LinkMap,
    previous: *const LinkMap,
}

/// A module in memory.
pub struct Loaded {
    pub map: Range<u64>,
    pub link_map: *const LinkMap,
}

pub enum Loader {
    /// The function, and the start of the program.
    Function(FindObject, u64),
    List(List),
}

impl Loader {
    pub fn new() -> Result<Loader> {
        match find_object() {
            Some(find) => Ok(Loader::Function(find, start_of_program())),
            None => List::new().map(Loader::List),
        }
    }

    /// The module that contains an address. In a signal handler: it takes no lock and allocates nothing.
    pub fn find(&mut self, address: u64) -> Option<Loaded> {
        match self {
            Loader::Function(find, program) => ask(*find, *program, address),
            Loader::List(list) => list.find(address),
        }
    }
}

/// The address of the headers of the program. They are at its start, which is at a page.
fn start_of_program() -> u64 {
    // SAFETY: it has no preconditions.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) };
    headers / HEAD * HEAD
}

// ---- The function of glibc ------------------------------------------------------

/// `struct dl_find_object` of glibc's `dlfcn.h`.
#[repr(C)]
pub struct DlFindObject {
    flags: u64,
    map_start: *const u8,
    map_end: *const u8,
    link_map: *const LinkMap,
    eh_frame: *const u8,
    reserved: [u64; 7],
}

type FindObject = unsafe extern "C" fn(*const c_void, *mut DlFindObject) -> c_int;

fn find_object() -> Option<FindObject> {
    // SAFETY: only looks up a symbol.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
    if address.is_null() {
        return None;
    }
    // SAFETY: the type that glibc's `dlfcn.h` declares.
    Some(unsafe { std::mem::transmute::<*mut c_void, FindObject>(address) })
}

fn ask(find: FindObject, program: u64, address: u64) -> Option<Loaded> {
    let mut found = DlFindObject {
        flags: 0,
        map_start: std::ptr::null(),
        map_end: std::ptr::null(),
        link_map: std::ptr::null(),
        eh_frame: std::ptr::null(),
        reserved: [0; 7],
    };
    // SAFETY: glibc's own function, which only fills `found`.
    let is_found = unsafe { find(address as *const c_void, &mut found) } == 0;
    is_found.then(|| {
        let map = found.map_start as u64..found.map_end as u64;
        // SAFETY: the module that was found, which stays loaded; the program is the first one.
        let is_program = unsafe { found.link_map.as_ref() }.is_some_and(|l| l.previous.is_null());
        Loaded {
            map: if is_program {
                with_headers(map, program)
            } else {
                map
            },
            link_map: found.link_map,
        }
    })
}

/// The program from its headers on. The kernel loads its parts one by one, and there may be an unused page between them:
/// LLD leaves one if a part ends just before a page does. glibc then reports only the part with the code. The loader
/// itself maps libraries without such gaps.
fn with_headers(map: Range<u64>, program: u64) -> Range<u64> {
    program.min(map.start)..map.end
}

// ---- The list for debuggers -----------------------------------------------------

/// The first fields of `struct r_debug`.
#[repr(C)]
struct Debug {
    version: c_int,
    first: *const LinkMap,
    breakpoint: u64,
    state: c_int,
}

/// The state of a list that is not being changed: `RT_CONSISTENT`.
const CONSISTENT: c_int = 0;

/// The list, and what is known of its modules.
pub struct List {
    debug: *const Debug,
    /// In the order of the list. It is compared with the list at each lookup.
    known: Vec<Known>,
    /// The start of a module, while its headers are read.
    head: Vec<u8>,
    /// The start of the program.
    program: u64,
}

struct Known {
    link_map: *const LinkMap,
    bias: u64,
    dynamic: *const c_void,
    /// Empty if its headers cannot be read.
    map: Range<u64>,
}

impl List {
    fn new() -> Result<List> {
        // SAFETY: only looks up a symbol.
        let debug = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_r_debug".as_ptr()) };
        if debug.is_null() {
            return Err(Error::Unsupported(
                "The modules of this process are unknown: its C library has no list of them for debuggers."
                    .to_owned(),
            ));
        }
        let (mut known, mut head) = (Vec::new(), Vec::new());
        let full = |_| Error::Memory;
        known.try_reserve_exact(MOST_MODULES).map_err(full)?;
        head.try_reserve_exact(HEAD as usize).map_err(full)?;
        head.resize(HEAD as usize, 0);
        Ok(List {
            debug: debug.cast(),
            known,
            head,
            program: start_of_program(),
        })
    }

    fn find(&mut self, address: u64) -> Option<Loaded> {
        // SAFETY: the loader's own variable, which always exists. It may change between two reads.
        let debug = unsafe { self.debug.read_volatile() };
        if debug.state != CONSISTENT {
            return None;
        }
        let mut at = debug.first;
        for i in 0..MOST_MODULES {
            if at.is_null() {
                break;
            }
            // SAFETY: an element of the list, which is not being changed; see the top of this file.
            let link = unsafe { at.read_volatile() };
            let is_known = self.known.get(i).is_some_and(|known| {
                known.link_map == at && known.bias == link.bias && known.dynamic == link.dynamic
            });
            if !is_known {
                self.known.truncate(i);
                // The program may begin at another address than its bias, which is 0 if it is not relocatable.
                let start = if i == 0 { self.program } else { link.bias };
                let map = self.extent(start).unwrap_or(0..0);
                self.known.push(Known {
                    link_map: at,
                    bias: link.bias,
                    dynamic: link.dynamic,
                    map,
                });
            }
            let map = &self.known[i].map;
            if map.contains(&address) {
                return Some(Loaded {
                    map: map.clone(),
                    link_map: at,
                });
            }
            at = link.next;
        }
        None
    }

    /// The extent of the module that begins at an address. The kernel copies its start, so that an address at which
    /// nothing is mapped is no fault.
    fn extent(&mut self, start: u64) -> Option<Range<u64>> {
        let local = libc::iovec {
            iov_base: self.head.as_mut_ptr().cast(),
            iov_len: self.head.len(),
        };
        let remote = libc::iovec {
            iov_base: start as *mut c_void,
            iov_len: self.head.len(),
        };
        // SAFETY: the kernel writes to the buffer of `self` only, at most as much as it has.
        let count = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        let count = usize::try_from(count).ok()?;
        extent(start, self.head.get(..count)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    /// Addresses of code in the program and in libraries, and of none.
    fn addresses() -> Vec<u64> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut addresses = vec![0, 8, u64::MAX];
        for line in maps.lines().filter(|line| line.contains(" r-xp ")) {
            let (start, rest) = line.split_once('-').unwrap();
            let end = rest.split(' ').next().unwrap();
            let [start, end] = [start, end].map(|number| u64::from_str_radix(number, 16).unwrap());
            // The code of a part may begin in the middle of its first page.
            addresses.extend([(end - start) / 4 + start, start.midpoint(end)]);
        }
        addresses
    }

    fn same(list: &mut List, find: FindObject) -> usize {
        let mut found = 0;
        for address in addresses() {
            let expected = ask(find, start_of_program(), address);
            let actual = list.find(address);
            let parts = |loaded: &Loaded| (loaded.map.start, loaded.link_map);
            assert_eq!(
                actual.as_ref().map(parts),
                expected.as_ref().map(parts),
                "{address:#x}"
            );
            if let (Some(actual), Some(expected)) = (actual, expected) {
                // If there are gaps between the parts of a module, glibc's end is that of the code.
                assert!(actual.map.end >= expected.map.end);
                found += 1;
            }
        }
        found
    }

    #[test]
    fn a_program_with_a_gap_begins_with_its_headers() {
        let address = same as *const () as u64;
        let program = start_of_program();
        let loaded = Loader::new().unwrap().find(address).unwrap();
        assert_eq!(loaded.map.start, program);
        // What glibc would report if there were a gap before the code.
        let code = address..loaded.map.end;
        assert_eq!(with_headers(code, program), program..loaded.map.end);
    }

    #[test]
    fn the_list_and_the_function_of_the_system_agree() {
        // A system without the function has nothing to compare with.
        let Some(find) = find_object() else { return };
        let mut list = List::new().unwrap();
        assert!(same(&mut list, find) > 3);
        let before = list.known.len();
        // Also after libraries were loaded and unloaded.
        for name in [c"libutil.so.1", c"libanl.so.1", c"libresolv.so.2"] {
            // SAFETY: these libraries of glibc do nothing when they are loaded.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
            assert!(!handle.is_null(), "{name:?}");
            same(&mut list, find);
            assert!(list.known.len() >= before);
            // SAFETY: loaded above, and nothing refers to it.
            unsafe { libc::dlclose(handle) };
            same(&mut list, find);
        }
        // Nothing is found while the list changes.
        let address = same as *const () as u64;
        let loaded = list.find(address).unwrap();
        // SAFETY: the loader's own string.
        let name = unsafe { CStr::from_ptr((*loaded.link_map).name) };
        // The program has no name.
        assert!(name.is_empty());
        // SAFETY: the loader's own variable.
        let mut changing = unsafe { list.debug.read_volatile() };
        changing.state = 1;
        list.debug = &changing;
        assert!(list.find(address).is_none());
    }
}
