//! For how long the processes of a cgroup were kept from processors because the group had used the time that it may use. The
//! kernel counts this for the whole group.

use super::{field, folders};
use profile_core::error::Result;
use std::fs;
use std::path::PathBuf;

const FILE: &str = "cpu.stat";

#[derive(Debug)]
pub struct Throttling {
    /// Of the group, and of those in which it is: each may have a limit.
    folders: Vec<PathBuf>,
    /// The name of the number, and how many nanoseconds its unit has.
    name: &'static str,
    unit: u64,
}

impl Throttling {
    /// `None` if no group can be seen.
    pub fn of(pid: i32) -> Result<Option<Throttling>> {
        for (controller, name, unit) in [("cpu", "throttled_time", 1), ("", "throttled_usec", 1000)]
        {
            let folders = folders(pid, controller, FILE)?;
            if !folders.is_empty() {
                return Ok(Some(Throttling {
                    folders,
                    name,
                    unit,
                }));
            }
        }
        Ok(None)
    }

    /// The time so far, in nanoseconds; `None` if no group has a limit that the kernel counts for.
    pub fn time(&self) -> Option<u64> {
        let texts = self
            .folders
            .iter()
            .map(|folder| fs::read_to_string(folder.join(FILE)));
        let times = texts.filter_map(|text| field(&text.ok()?, self.name));
        let sum = times.reduce(u64::saturating_add)?;
        Some(sum.saturating_mul(self.unit))
    }
}
