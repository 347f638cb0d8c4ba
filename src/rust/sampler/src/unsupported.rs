//! The sampler on systems that are not supported: starting it is an error.

use crate::{LineAt, Owner, Roots, Settings, State, WantedLine};
use profile_core::error::{Error, Result};
use profile_core::joint::{Distinct, Recording};
use profile_core::limits::memory::filled;
use profile_core::message;
use profile_core::model::titled::TITLED;
use profile_runtime::LIVE_PLATFORMS;
use profile_runtime::compiled::Creators;
use profile_runtime::digest::Digest;

/// A stopped run. It has no values, since no run can be started.
#[derive(Debug)]
pub enum Stopped {}

impl Stopped {
    pub fn recording(&self) -> Result<Recording<'_>> {
        match *self {}
    }
}

pub fn check(_: &Settings) -> Result<()> {
    Err(Error::Unsupported(message!(
        "Native code can be profiled only on {LIVE_PLATFORMS}; `Rprof()` profiles R code here."
    )))
}

pub fn block() {}

pub fn unblock() {}

pub fn set_titled(_: [u64; TITLED.len()]) {}

pub fn start(settings: &Settings) -> Result<()> {
    check(settings)
}

pub fn state() -> State {
    State::Off
}

pub fn stop() -> Option<Stopped> {
    None
}

pub fn abandon() {}

pub fn learn(_: [u64; 2]) -> Result<Option<Creators>> {
    Ok(None)
}

pub fn all_lines(_: Creators, _: u64, _: u64) -> Result<Option<Vec<LineAt>>> {
    Ok(None)
}

pub fn owners(_: &Distinct, _: &Roots) -> Result<Vec<Owner>> {
    Ok(Vec::new())
}

pub fn lines(_: &Distinct, _: Creators, _: u64, _: u64) -> Result<Option<Vec<(usize, i32)>>> {
    Ok(None)
}

pub fn find_codes(_: &[u64], _: u64, wanted: &[Digest]) -> Result<Vec<Option<usize>>> {
    filled(wanted.len(), None)
}

pub fn code_lines(
    _: Creators,
    _: u64,
    _: (u64, u64),
    _: &[WantedLine],
) -> Result<Option<Vec<(usize, i32)>>> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn starting_is_refused_with_the_platforms_that_are_supported() {
        let settings = Settings {
            file: Path::new("Rprof.out"),
            bytes: 1 << 20,
            native: true,
            positions: None,
            closures: 0,
            hooks: [0; 4],
            titled: [0; TITLED.len()],
            version: (4, 5),
        };
        let error = start(&settings).unwrap_err();
        assert_eq!(error.class(), "profile_error_unsupported");
        assert!(error.to_string().contains(LIVE_PLATFORMS), "{error}");
        assert_eq!(state(), State::Off);
    }
}
