//! What looks into running processes. Systems where this is impossible have `unsupported.rs` in the place of this module.

pub use crate::heap::gauge::{Gauge, resident};
pub use crate::heap::peak::PeakWatch;
pub use crate::heap::snapshots::{check_own_heap, heap_of, heap_of_image, own_heap, own_size};
pub use crate::process::{count_forks, forked, memory_left, needs_permission, permit_process};
pub use crate::record::activity::list;
pub use crate::record::dump::dump;
pub use crate::record::family::members;
pub use crate::record::lookout::{Looked, Lookout};
pub use crate::record::own_delay::own_delay;
pub use crate::record::own_positions::own_positions;
pub use crate::record::recorder::record;

use crate::process::system_call_name;
use crate::recorded::dump::{Dump, of_core_file};
use profile_core::error::Result;
use std::path::Path;

/// Reads the stack of R in a core file of this system. `shown` is its path in messages.
pub fn dump_core(path: &Path, shown: &str) -> Result<Dump> {
    of_core_file(path, shown, system_call_name)
}
