//! The memory of this process: that of R's thread, which stands still in the hook, is read as it is.

use profile_reader::process::ProcessMemory;
use profile_runtime::memory::Memory;
use std::process;

/// For addresses that may be invalid.
pub fn own_memory() -> ProcessMemory {
    ProcessMemory::new(i32::try_from(process::id()).unwrap_or(0))
}

/// What R's records, variables and objects refer to. It can be read without checks, since R does so, too.
#[derive(Debug, Clone, Copy)]
pub struct OwnMemory(());

impl OwnMemory {
    /// # Safety
    /// This is the thread that runs R, which is in the hook; and only addresses are read that R itself refers to.
    pub unsafe fn new() -> OwnMemory {
        OwnMemory(())
    }
}

impl Memory for OwnMemory {
    #[inline]
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        if address == 0 {
            return false;
        }
        // SAFETY: by the contract of `new()`.
        unsafe {
            std::ptr::copy_nonoverlapping(address as *const u8, into.as_mut_ptr(), into.len());
        }
        true
    }
}
