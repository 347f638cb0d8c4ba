//! How much memory this process and its R use, from a few variables. This is cheap enough for the agent to look at all
//! the time, while R runs.

use crate::heap::counts::{Allocated, Counts, InUse, Usage};
use crate::heap::lists::Lists;
use crate::process::{Process, ProcessMemory};
use crate::running_r::{MOST_TO_OPEN, RunningR};
use profile_core::error::Result;
use profile_runtime::heap::Layout;
use profile_runtime::memory::{Limited, Memory};
use std::process;

/// How often to try to find R's counts. An attempt fails if R collects garbage meanwhile.
const TRIES: u32 = 3;

pub struct Gauge {
    memory: ProcessMemory,
    counts: Counts,
    lists: Lists,
}

impl Gauge {
    /// Finds R's counts in this process. Only R's thread may call this; `allocate` is passed to [`Counts::find()`].
    /// `None` if they are not found.
    pub fn find(mut allocate: impl FnMut(u32) -> Result<Allocated>) -> Result<Option<Gauge>> {
        let pid = i32::try_from(process::id()).unwrap_or(0);
        let mut memory = ProcessMemory::new(pid);
        let process = Process::find(pid)?;
        let mut limited = Limited::new(memory.clone(), MOST_TO_OPEN);
        let r = RunningR::open(&mut limited, &process.mappings()?, &process.named()?)?;
        let Some(lists) = Lists::find(&mut memory, &r.variables, Layout::ALL)? else {
            return Ok(None);
        };
        for _ in 0..TRIES {
            let counts = Counts::find(&mut memory, &r.variables, &mut allocate)?;
            if let Some(counts) = counts {
                memory.keep_at_hand(&r.variables)?;
                return Ok(Some(Gauge {
                    memory,
                    counts,
                    lists,
                }));
            }
        }
        Ok(None)
    }

    /// What R uses now; `None` if this cannot be read.
    pub fn look(&mut self) -> Option<Usage> {
        let InUse {
            objects,
            large,
            small,
        } = self.counts.read(&mut self.memory)?;
        let data = large.saturating_add(small);
        let layout = self.lists.layout;
        let cells = objects.saturating_mul(layout.cell());
        let used = cells.saturating_add(data);
        let mut size = large;
        for class in 0..layout.classes {
            let class = self.lists.class(&mut self.memory, class).ok()?;
            size = size.saturating_add(class.bytes_without_large_data());
        }
        Some(Usage {
            objects,
            data,
            used,
            free: size.saturating_sub(used),
        })
    }
}

/// The memory of this process that is in RAM, in bytes.
pub fn resident() -> Option<u64> {
    let pid = i32::try_from(process::id()).ok()?;
    Process::find(pid).ok()?.resident()
}
