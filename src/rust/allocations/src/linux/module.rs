//! R's library in memory: where it is, and its dynamic section, which describes the table of addresses (`<elf.h>`).

use profile_core::error::{Error, Result};
use profile_core::message;
use profile_runtime::variables::ALLOCATE;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ops::Range;

/// Tags of the dynamic section.
const STRINGS: i64 = 5;
const SYMBOLS: i64 = 6;
const RELOCATIONS: i64 = 7;
const RELOCATIONS_SIZE: i64 = 8;
const CALLS_SIZE: i64 = 2;
const CALLS: i64 = 23;
/// The type of a relocation that fills an entry for calls, or for an address that code takes.
#[cfg(target_arch = "x86_64")]
const ENTRY: [u32; 2] = [7, 6];
#[cfg(target_arch = "aarch64")]
const ENTRY: [u32; 2] = [1026, 1025];

/// An entry of the dynamic section.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// `Elf64_Rela`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

/// `Elf64_Sym`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// A module that is loaded.
#[derive(Debug, Clone)]
pub struct Module {
    bias: u64,
    dynamic: u64,
    pub code: Range<u64>,
}

/// The address of a symbol; 0 if there is none.
pub fn address_of(name: &str) -> u64 {
    let Ok(name) = CString::new(name) else {
        return 0;
    };
    // SAFETY: only looks up a symbol.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as u64 }
}

impl Module {
    /// The module that contains R's allocator.
    pub fn of_r() -> Result<Module> {
        struct Search {
            address: u64,
            found: Option<Module>,
        }
        extern "C" fn visit(
            about: *mut libc::dl_phdr_info,
            _: libc::size_t,
            search: *mut c_void,
        ) -> c_int {
            // SAFETY: the loader passes a valid struct, and the second pointer is the one that was passed to it below.
            let (about, search) = unsafe { (&*about, &mut *search.cast::<Search>()) };
            // SAFETY: the headers of a module that is loaded.
            let headers = unsafe {
                std::slice::from_raw_parts(about.dlpi_phdr, usize::from(about.dlpi_phnum))
            };
            let mut module = Module {
                bias: about.dlpi_addr,
                dynamic: 0,
                code: 0..0,
            };
            for header in headers {
                let start = about.dlpi_addr.wrapping_add(header.p_vaddr);
                let addresses = start..start.wrapping_add(header.p_memsz);
                if header.p_type == libc::PT_DYNAMIC {
                    module.dynamic = start;
                } else if header.p_type == libc::PT_LOAD && addresses.contains(&search.address) {
                    module.code = addresses;
                }
            }
            if module.code.is_empty() || module.dynamic == 0 {
                return 0;
            }
            search.found = Some(module);
            1
        }
        let mut search = Search {
            address: address_of(ALLOCATE),
            found: None,
        };
        // SAFETY: the function only uses `search`, which exists until it returns.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
        search.found.ok_or_else(|| {
            Error::Unsupported(message!(
                "This R has no table of addresses whose entries could be replaced."
            ))
        })
    }

    /// The addresses of the entries of the table for a function of another module.
    pub fn entries(&self, function: &str) -> Vec<u64> {
        let about = self.about();
        let mut entries = Vec::new();
        for (start, size) in [
            (about.calls, about.calls_size),
            (about.relocations, about.relocations_size),
        ] {
            if start == 0 {
                continue;
            }
            let count = size as usize / size_of::<Relocation>();
            // SAFETY: the relocations of a module that is loaded, by its dynamic section.
            let all = unsafe { std::slice::from_raw_parts(start as *const Relocation, count) };
            for relocation in all {
                let symbol = relocation.info >> 32;
                let is_entry = ENTRY.contains(&(relocation.info as u32));
                if is_entry && about.has_name(symbol, function) && entries.try_reserve(1).is_ok() {
                    entries.extend([self.bias.wrapping_add(relocation.offset)]);
                }
            }
        }
        entries
    }

    fn about(&self) -> About {
        let mut about = About::default();
        let mut at = self.dynamic as *const Dynamic;
        loop {
            // SAFETY: the dynamic section of a module that is loaded, which ends with a tag of 0.
            let Dynamic { tag, value } = unsafe { at.read() };
            // glibc has replaced offsets by addresses.
            let address = if value < self.bias {
                value.wrapping_add(self.bias)
            } else {
                value
            };
            match tag {
                0 => return about,
                STRINGS => about.strings = address,
                SYMBOLS => about.symbols = address,
                RELOCATIONS => about.relocations = address,
                RELOCATIONS_SIZE => about.relocations_size = value,
                CALLS => about.calls = address,
                CALLS_SIZE => about.calls_size = value,
                _ => {}
            }
            // SAFETY: as above.
            at = unsafe { at.add(1) };
        }
    }
}

/// What the dynamic section says.
#[derive(Default)]
struct About {
    strings: u64,
    symbols: u64,
    relocations: u64,
    relocations_size: u64,
    calls: u64,
    calls_size: u64,
}

impl About {
    fn has_name(&self, symbol: u64, name: &str) -> bool {
        if self.symbols == 0 || self.strings == 0 {
            return false;
        }
        // SAFETY: a symbol of a relocation of this module, and its name, which is a string.
        unsafe {
            let symbol = (self.symbols as *const Symbol).add(symbol as usize).read();
            let found = CStr::from_ptr((self.strings + u64::from(symbol.name)) as *const _);
            found.to_bytes() == name.as_bytes()
        }
    }
}
