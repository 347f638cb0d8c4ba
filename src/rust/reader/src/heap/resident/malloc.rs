//! What the C library says about `malloc()` in this process.

use super::split::ARENA;
use super::{Divided, Glibc, Malloc};
use crate::process::ProcessMemory;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::text::decode;
use profile_runtime::memory::{Memory, at};
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ops::Range;

/// The figures of the allocator that this process uses.
pub fn figures() -> Result<Malloc> {
    let malloc = Symbol::find(c"malloc");
    let library = Symbol::find(c"gnu_get_libc_version");
    if malloc.file.is_null() || malloc.module != library.module {
        return Ok(Malloc::Other(malloc.name()?));
    }
    let figures = Symbol::find(c"mallinfo2");
    if figures.address.is_null() || figures.module != library.module {
        return Ok(Malloc::Other(owned("glibc before 2.33")?));
    }
    // SAFETY: the C library defines a function of this name and type since version 2.33.
    let figures = unsafe {
        let function: extern "C" fn() -> libc::mallinfo2 = std::mem::transmute(figures.address);
        function()
    };
    Ok(Malloc::Glibc(Glibc {
        used: figures.uordblks as u64,
        free: figures.fordblks as u64,
        arenas: Vec::new(),
    }))
}

/// A function, and the module that defines it, of all that are loaded the first one.
struct Symbol {
    address: *mut c_void,
    module: *const c_void,
    file: *const libc::c_char,
}

impl Symbol {
    fn find(name: &CStr) -> Symbol {
        // SAFETY: only looks up a symbol.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        let mut about = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: dladdr() accepts any address and fills the struct if it succeeds; zeros are a valid value.
        let about = unsafe {
            if !address.is_null() {
                libc::dladdr(address, about.as_mut_ptr());
            }
            about.assume_init()
        };
        Symbol {
            address,
            module: about.dli_fbase,
            file: about.dli_fname,
        }
    }

    /// The name of the file, such as `libjemalloc.so.2`.
    fn name(&self) -> Result<String> {
        if self.file.is_null() {
            return owned("unknown");
        }
        // SAFETY: the loader's name of a module, which stays loaded.
        let path = unsafe { CStr::from_ptr(self.file) };
        let path = decode(path.to_bytes())?.text;
        owned(path.rsplit('/').next().unwrap_or_default())
    }
}

/// Finds the memory of glibc's arenas in a process: it begins with a `heap_info`, see `malloc/arena.c`.
pub fn find_arenas(pid: i32, divided: &mut Divided) -> Result<()> {
    let Malloc::Glibc(glibc) = &mut divided.malloc else {
        return Ok(());
    };
    let mut memory = ProcessMemory::new(pid);
    let mut arenas: Vec<Range<u64>> = Vec::new();
    for region in &divided.regions {
        if !region.is_plain() || !region.may_read || !region.may_write || region.is_shared {
            continue;
        }
        let start = region.addresses.start.checked_next_multiple_of(ARENA);
        let mut address = start.unwrap_or(u64::MAX);
        while address < region.addresses.end {
            if is_arena(&mut memory, address) {
                let arena = address..address.saturating_add(ARENA);
                match arenas.last_mut().filter(|last| last.end == arena.start) {
                    Some(last) => last.end = arena.end,
                    None => arenas.try_push(arena)?,
                }
            }
            address = address.saturating_add(ARENA);
        }
    }
    glibc.arenas = arenas;
    Ok(())
}

/// Whether there is a `heap_info` of an arena: the address of the arena, which is in its first heap, the heap before
/// this one, and how much of this one is in use and has been mapped.
fn is_arena(memory: &mut ProcessMemory, address: u64) -> bool {
    let mut bytes = [0; 32];
    if !memory.read(address, &mut bytes) {
        return false;
    }
    let [arena, previous, size, mapped] = [0, 8, 16, 24].map(|offset| at(&bytes, offset));
    let first = arena & !(ARENA - 1);
    let is_first = first == address && previous == 0;
    let is_later = first != address && previous != 0 && previous % ARENA == 0;
    let is_size = |size: u64| size > 0 && size <= ARENA && size % 4096 == 0;
    let starts = 32..128;
    (is_first || is_later)
        && starts.contains(&(arena - first))
        && is_size(size)
        && is_size(mapped)
        && size <= mapped
}
