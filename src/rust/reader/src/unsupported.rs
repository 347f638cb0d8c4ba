//! The place of `live.rs` on systems where no process can be looked into: this is refused. Core files can be read.

use crate::heap::counts::{Allocated, Usage};
use crate::heap::resident::{Malloc, Pool};
use crate::heap::snapshot::Snapshot;
use crate::recorded::dump::{Dump, of_core_file};
use crate::recorded::memory::{End, OfAlone, Peak, PeakSoFar};
use crate::recorded::result::{Listed, Members, Recorded};
use crate::recorded::settings::{Settings, Wanted};
use crate::stack::innermost::{Known, Seen};
use profile_core::error::{Error, Result};
use profile_core::limits::cancel::Stop;
use profile_core::message;
use profile_runtime::LIVE_PLATFORMS;
use std::path::Path;

pub fn refused<T>() -> Result<T> {
    Err(Error::Unsupported(message!(
        "The memory of processes can be looked into only on {LIVE_PLATFORMS}."
    )))
}

pub fn list() -> Result<Vec<Listed>> {
    refused()
}

pub fn members(_: i32, _: &[i32]) -> Result<Members> {
    refused()
}

pub fn record(_: &Wanted, _: &Settings, _: Stop) -> Result<Recorded> {
    refused()
}

pub fn dump(_: i32, _: Stop) -> Result<Dump> {
    refused()
}

pub fn dump_core(path: &Path, shown: &str) -> Result<Dump> {
    of_core_file(path, shown, |_| None)
}

pub fn own_positions(_: &mut Seen) -> Result<Known> {
    refused()
}

pub fn own_delay() -> Result<[Option<u64>; 2]> {
    Ok([None, None])
}

pub fn own_heap(_: Option<u64>, _: Option<u64>, _: Vec<Pool>) -> Result<Snapshot> {
    refused()
}

pub fn own_size() -> Result<u64> {
    refused()
}

pub fn heap_of(_: i32, _: &Malloc, _: Stop) -> Result<Snapshot> {
    refused()
}

pub fn heap_of_image(_: Stop) -> Result<Snapshot> {
    refused()
}

pub fn check_own_heap() -> Result<()> {
    refused()
}

pub fn resident() -> Option<u64> {
    None
}

/// The type has no values.
pub enum Gauge {}

impl Gauge {
    pub fn find(_: impl FnMut(u32) -> Result<Allocated>) -> Result<Option<Gauge>> {
        refused()
    }

    pub fn look(&mut self) -> Option<Usage> {
        match *self {}
    }
}

/// The type has no values.
pub enum Lookout {}

impl Lookout {
    pub fn start(_: i32) -> Result<Lookout> {
        refused()
    }

    pub fn is_here(&self) -> bool {
        match *self {}
    }

    pub fn end(self) -> Result<Looked> {
        match self {}
    }
}

/// The type has no values.
pub enum Looked {}

impl Looked {
    pub fn result(self, _: Option<End>) -> Result<OfAlone> {
        match self {}
    }
}

/// The type has no values.
pub enum PeakWatch {}

impl PeakWatch {
    pub fn start(_: i32) -> Result<PeakWatch> {
        refused()
    }

    pub fn is_here(&self) -> bool {
        match *self {}
    }

    pub fn so_far(&self) -> PeakSoFar {
        match *self {}
    }

    pub fn end(self) -> Result<Peak> {
        match self {}
    }
}

pub fn memory_left() -> Option<u64> {
    None
}

pub fn count_forks() -> u64 {
    0
}

pub fn forked(_: u64) -> Result<Option<Vec<i32>>> {
    Ok(None)
}

pub fn needs_permission() -> bool {
    false
}

pub fn permit_process(_: i32) {}
