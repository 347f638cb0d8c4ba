//! The images that were recorded on x86-64, and the parts of core files that differ there.

use super::core::Core;
use profile_runtime::contexts::Layout;

pub const FOLDER: &str = "tests/images";
pub const VERSIONS: &[(&str, Layout)] = &[
    ("4.2", Layout::R_4_2),
    ("4.5", Layout::R_4_4),
    ("4.6", Layout::R_4_4),
];
/// A version for each layout.
pub const DIFFERENT: &[&str] = &["4.2", "4.6"];
pub const LAST: &str = "4.6";

/// The number of the machine in core files.
pub const MACHINE: u16 = 62;
/// The number of `clock_nanosleep()`.
pub const SLEEP: i64 = 230;

impl Core {
    /// `struct elf_prstatus`, which contains the number of the system call and the stack pointer.
    pub fn add_thread(&mut self) {
        let mut bytes = self.thread(336);
        bytes[232..240].copy_from_slice(&self.system_call.to_le_bytes());
        bytes[264..272].copy_from_slice(&self.stack_pointer.to_le_bytes());
        self.note("CORE", 1, &bytes);
    }
}
