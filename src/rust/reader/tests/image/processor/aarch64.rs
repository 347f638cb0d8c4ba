//! The image that was recorded on aarch64, and the parts of core files that differ there.

use super::core::Core;
use profile_runtime::contexts::Layout;

pub const FOLDER: &str = "tests/images/aarch64";
pub const VERSIONS: &[(&str, Layout)] = &[("4.5", Layout::R_4_4)];
/// A version for each layout.
pub const DIFFERENT: &[&str] = &[LAST];
pub const LAST: &str = "4.5";

/// The number of the machine in core files.
pub const MACHINE: u16 = 183;
/// The number of `clock_nanosleep()`.
pub const SLEEP: i64 = 115;

impl Core {
    /// `struct elf_prstatus`, and a note with the number of the system call.
    pub fn add_thread(&mut self) {
        let mut bytes = self.thread(392);
        bytes[360..368].copy_from_slice(&self.stack_pointer.to_le_bytes());
        self.note("CORE", 1, &bytes);
        let number = self.system_call as i32;
        self.note("LINUX", 0x404, &number.to_le_bytes());
    }
}
