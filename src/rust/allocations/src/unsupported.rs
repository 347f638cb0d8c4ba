//! Allocations on systems that are not supported: preparing is an error.

use crate::{Settings, Whose};
use profile_core::error::{Error, Result};
use profile_core::message;
use profile_core::model::Profile;
use profile_runtime::LIVE_PLATFORMS;
use std::path::Path;

/// What a recording has found. It has no values, since none can be started.
#[derive(Debug)]
pub struct Found {
    pub profile: Profile,
    pub lost: u64,
}

pub fn read(_: &Path, _: Whose) -> Result<Found> {
    Err(refused())
}

pub fn look() -> Result<()> {
    Err(refused())
}

pub fn prepare(_: Settings, _: &Path) -> Result<()> {
    Err(refused())
}

fn refused() -> Error {
    Error::Unsupported(message!(
        "Each allocation can be recorded with its line only on {LIVE_PLATFORMS}."
    ))
}

pub fn begin() -> Result<()> {
    Err(Error::Unsupported(message!("Nothing is prepared.")))
}

pub fn hooks() -> [u64; 4] {
    [0; 4]
}

pub fn mark(_: u64) {}

pub fn see_finalizer() {}

pub fn stop_adding() {}

pub fn is_on() -> bool {
    false
}

pub fn stop() {}

pub fn abandon() {}
