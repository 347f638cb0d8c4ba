//! Allocations on systems that are not supported: preparing is an error.

use crate::Settings;
use profile_core::error::{Error, Result};
use profile_core::message;
use profile_core::model::Profile;
use profile_runtime::LIVE_PLATFORMS;

/// A stopped recording. It has no values, since none can be started.
#[derive(Debug)]
pub enum Stopped {}

impl Stopped {
    pub fn lost(&self) -> u64 {
        match *self {}
    }

    pub fn time(&self) -> u64 {
        match *self {}
    }

    pub fn profile(self) -> Result<Profile> {
        match self {}
    }
}

pub fn look() -> Result<()> {
    refuse()
}

pub fn prepare(_: Settings) -> Result<()> {
    refuse()
}

fn refuse() -> Result<()> {
    Err(Error::Unsupported(message!(
        "Each allocation can be recorded with its line only on {LIVE_PLATFORMS}."
    )))
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

pub fn stop() -> Option<Stopped> {
    None
}

pub fn abandon() {}
