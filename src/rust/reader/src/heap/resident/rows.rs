//! The rows of a snapshot for memory that is not R's heap.

use super::regions::Region;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::message;
use std::collections::HashSet;

/// Resident memory that is not R's heap.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// What it is, and the name of a library or file.
    pub part: &'static str,
    pub name: Option<String>,
    /// The type of the memory.
    pub type_: String,
    pub bytes: u64,
}

/// What memory is. These are names of steps in paths, so they may only be changed with care.
pub const FREE: &str = "free in malloc";
pub const NATIVE: &str = "native memory";
pub const NATIVE_OR_FREE: &str = "native memory, used or free";
pub const POOL: &str = "pool of ";
pub const THREADS: &str = "stacks of threads";
pub const R_STACKS: &str = "R's stacks";
pub const LIBRARIES: &str = "libraries";
pub const FILES: &str = "mapped files";
pub const SHARED: &str = "shared memory";

/// Adds the rows of a region with a name.
pub fn add_named(
    rows: &mut Vec<Row>,
    region: &Region,
    libraries: &HashSet<&str>,
    bytes: u64,
) -> Result<()> {
    let name = &*region.name;
    let in_memory = ["/dev/shm/", "/memfd:", "/SYSV", "/dev/zero", "[anon_shmem:"];
    let row = if name == "[stack]" {
        row(R_STACKS, "stack")?
    } else if region.is_shared && in_memory.iter().any(|start| name.starts_with(start)) {
        named(SHARED, region.file(), "shared memory")?
    } else if libraries.contains(name) || name.starts_with('[') {
        let changed = region.anonymous.min(bytes);
        rows.try_push(Row {
            bytes: changed,
            ..named(LIBRARIES, region.file(), "data")?
        })?;
        let code = named(LIBRARIES, region.file(), "code")?;
        return rows.try_push(Row {
            bytes: bytes - changed,
            ..code
        });
    } else {
        named(FILES, region.file(), "file")?
    };
    rows.try_push(Row { bytes, ..row })
}

/// A row without a name and without bytes.
pub fn row(part: &'static str, type_: &str) -> Result<Row> {
    Ok(Row {
        part,
        name: None,
        type_: owned(type_)?,
        bytes: 0,
    })
}

pub fn named(part: &'static str, name: &str, type_: &str) -> Result<Row> {
    let name = match name {
        "" => message!("(no name)"),
        name => owned(name)?,
    };
    Ok(Row {
        name: Some(name),
        ..row(part, type_)?
    })
}

/// Adds up rows that differ only in their bytes.
pub fn merge(rows: &mut Vec<Row>) {
    rows.sort_unstable();
    rows.dedup_by(|row, before| {
        let is_same =
            (row.part, &row.name, &row.type_) == (before.part, &before.name, &before.type_);
        if is_same {
            before.bytes += row.bytes;
        }
        is_same
    });
}
