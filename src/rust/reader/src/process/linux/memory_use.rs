//! How much memory a process uses, and how it ended.

use super::folder::file_of;
use super::proc::Process;
use crate::recorded::memory::End;
use std::fs;

/// Bytes of memory that a process has mapped and that is in RAM. What it shares with others is included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    pub resident: u64,
    /// The highest that it has ever been, since the process executed its program.
    pub highest: u64,
}

impl Process {
    /// `None` if it has ended.
    pub fn memory_use(&self) -> Option<MemoryUse> {
        let text = fs::read_to_string(file_of(self.pid, "status")).ok()?;
        Some(MemoryUse {
            resident: kibibytes(&text, "VmRSS:")?,
            highest: kibibytes(&text, "VmHWM:")?,
        })
    }

    /// Its share of the memory that is in RAM: what several processes share counts in equal parts for each, so sums are
    /// right. The kernel needs milliseconds for a gigabyte. `None` if it has ended, or this process may not know.
    pub fn proportional_memory(&self) -> Option<u64> {
        let text = fs::read_to_string(file_of(self.pid, "smaps_rollup")).ok()?;
        kibibytes(&text, "Pss:")
    }

    /// How it ended.
    pub fn end(&self) -> End {
        match self.exit_code() {
            // The kernel reports 0 to those that may not know.
            None | Some(0) => End::Unknown,
            Some(code) if code & 0x7f != 0 => End::Signal(code & 0x7f),
            Some(_) => End::Exited,
        }
    }
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = value.split_ascii_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::super::folder::{Entry, Scripted};
    use super::*;

    #[test]
    fn memory_is_that_of_the_system() {
        let system = Scripted::new("memory-use");
        let folder = system.add(&Entry {
            pid: 7,
            ..Entry::default()
        });
        let process = Process::find(7).unwrap();
        assert_eq!(
            (process.memory_use(), process.proportional_memory()),
            (None, None)
        );
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write(
            "status",
            "Name:\tR\nVmHWM:\t  2048 kB\nVmRSS:\t    1024 kB\n",
        );
        write(
            "smaps_rollup",
            "1000-2000 ---p 00000000 00:00 0 [rollup]\nRss: 1024 kB\nPss: 512 kB\nPss_Dirty: 9 kB\n",
        );
        let expected = MemoryUse {
            resident: 1 << 20,
            highest: 2 << 20,
        };
        assert_eq!(process.memory_use(), Some(expected));
        assert_eq!(process.proportional_memory(), Some(512 << 10));
        // A process that has ended has no memory any more.
        write("status", "Name:\tR\nState:\tZ (zombie)\n");
        assert_eq!(process.memory_use(), None);
    }

    #[test]
    fn the_end_is_known_as_long_as_nobody_has_asked_for_it() {
        let system = Scripted::new("memory-end");
        let folder = system.add(&Entry {
            pid: 7,
            started: 5,
            ..Entry::default()
        });
        let process = Process::find(7).unwrap();
        let end = |state: &str, started: u64, code: &str| {
            // Fields 4 to 21, 23 to 51, and what follows the exit code, which is nothing.
            let (before, after) = ("0 ".repeat(18), "0 ".repeat(29));
            let line = format!("7 (R) {state} {before}{started} {after}{code}");
            fs::write(folder.join("stat"), line).unwrap();
            process.end()
        };
        assert_eq!(end("Z", 5, "9"), End::Signal(9));
        assert_eq!(end("Z", 5, "139"), End::Signal(11));
        assert_eq!(end("Z", 5, "256"), End::Exited);
        assert_eq!(end("Z", 5, "0"), End::Unknown);
        assert_eq!(end("Z", 5, ""), End::Unknown);
        assert_eq!(end("R", 5, "9"), End::Unknown);
        assert_eq!(end("Z", 6, "9"), End::Unknown);
        system.remove(7);
        assert_eq!(process.end(), End::Unknown);
    }
}
