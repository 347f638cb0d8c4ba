//! The entries of R's table of addresses: replaced while a recording runs, and restored afterwards.

use super::module::{Module, address_of};
use profile_core::error::{Error, Result};
use profile_core::limits::memory::TryGrow;
use profile_core::message;
use std::ffi::{c_int, c_void};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// The entries for one function.
#[derive(Debug)]
pub struct Replaced {
    entries: Vec<Entry>,
    /// The function in their place.
    hook: u64,
    /// The function that R would call.
    pub original: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    address: u64,
    /// What it contained, which may be code of the loader that looks up the function at the first call.
    value: u64,
}

impl Replaced {
    /// Finds the entries for a function. Nothing is changed yet.
    pub fn find(module: &Module, function: &str, hook: u64) -> Result<Replaced> {
        let mut entries = Vec::new();
        let mut original = 0;
        for address in module.entries(function) {
            let value = entry(address).load(Ordering::Acquire);
            original = if module.code.contains(&value) {
                address_of(function)
            } else {
                value
            };
            entries.try_push(Entry { address, value })?;
        }
        if original == 0 {
            return Err(Error::Unsupported(message!(
                "R's library does not call `{function}()` through a table of addresses."
            )));
        }
        Ok(Replaced {
            entries,
            hook,
            original,
        })
    }

    /// Puts the hook into the entries.
    pub fn replace(&self) -> Result<()> {
        for one in &self.entries {
            if !write(one.address, one.value, self.hook) {
                self.restore();
                return Err(Error::Unsupported(message!(
                    "The system does not permit to change R's table of addresses."
                )));
            }
        }
        Ok(())
    }

    /// Restores the entries that still contain the hook: somebody else may have replaced them, too.
    pub fn restore(&self) {
        for one in &self.entries {
            write(one.address, self.hook, one.value);
        }
    }

    /// Whether all entries contain the hook.
    pub fn is_there(&self) -> bool {
        let mut values = self
            .entries
            .iter()
            .map(|one| entry(one.address).load(Ordering::Acquire));
        values.all(|value| value == self.hook)
    }
}

/// An entry of the table.
fn entry(address: u64) -> &'static AtomicU64 {
    // SAFETY: an aligned word of a module of R, which is never unloaded.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }
}

/// Writes a value if the entry contains the expected one. Returns `false` if the memory cannot be changed.
fn write(address: u64, expected: u64, value: u64) -> bool {
    let Some(protection) = protection_of(address) else {
        return false;
    };
    let is_protected = protection & libc::PROT_WRITE == 0;
    if is_protected && !protect(address, protection | libc::PROT_WRITE) {
        return false;
    }
    let order = (Ordering::AcqRel, Ordering::Acquire);
    // Fails if somebody else has written there.
    let _ = entry(address).compare_exchange(expected, value, order.0, order.1);
    !is_protected || protect(address, protection)
}

fn protect(address: u64, protection: c_int) -> bool {
    // SAFETY: it has no preconditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Some(page) = u64::try_from(size).ok().filter(|size| *size > 0) else {
        return false;
    };
    let start = address / page * page;
    // SAFETY: a page of R's variables, which remains readable.
    unsafe { libc::mprotect(start as *mut c_void, page as usize, protection) == 0 }
}

/// How the memory at an address is protected: "start-end rw-p ..." of `/proc/self/maps`.
fn protection_of(address: u64) -> Option<c_int> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (addresses, rest) = line.split_once(' ')?;
        let (start, end) = addresses.split_once('-')?;
        let of = |text| u64::from_str_radix(text, 16).ok();
        if !(of(start)?..of(end)?).contains(&address) {
            return None;
        }
        let flags = [libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC];
        let are_set = rest.bytes().zip(*b"rwx").zip(flags);
        Some(
            are_set
                .filter(|((is, set), _)| is == set)
                .map(|(_, flag)| flag)
                .sum(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of memory, which is read-only afterwards.
    fn page(words: [u64; 2]) -> u64 {
        // SAFETY: a new mapping, which is not removed.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let writable = libc::PROT_READ | libc::PROT_WRITE;
            let page = libc::mmap(std::ptr::null_mut(), 4096, writable, flags, -1, 0);
            assert_ne!(page, libc::MAP_FAILED);
            page.cast::<[u64; 2]>().write(words);
            libc::mprotect(page, 4096, libc::PROT_READ);
            page as u64
        }
    }

    #[test]
    fn read_only_entries_are_replaced_and_restored() {
        let page = page([10, 20]);
        let replaced = Replaced {
            entries: vec![
                Entry {
                    address: page,
                    value: 10,
                },
                Entry {
                    address: page + 8,
                    value: 20,
                },
            ],
            hook: 30,
            original: 10,
        };
        let values = || [page, page + 8].map(|address| entry(address).load(Ordering::Relaxed));
        replaced.replace().unwrap();
        assert!(replaced.is_there());
        assert_eq!(values(), [30, 30]);
        assert_eq!(protection_of(page), Some(libc::PROT_READ));
        // Somebody else replaces one as well.
        assert!(write(page, 30, 40));
        assert!(!replaced.is_there());
        replaced.restore();
        assert_eq!(values(), [40, 20]);
        assert_eq!(protection_of(page), Some(libc::PROT_READ));
    }

    #[test]
    fn memory_that_does_not_exist_is_not_written() {
        assert!(!write(8, 0, 1));
    }
}
