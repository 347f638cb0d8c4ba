//! The place of `agent.rs` on systems where there is no agent.

use crate::arena::{Arena, RObject};
use extendr_api::Robj;
use profile_core::error::{Error, Result};
use profile_core::message;
use std::path::Path;
use std::time::Duration;

fn refused<T>() -> Result<T> {
    Err(Error::Unsupported(message!(
        "`Rprof()` can be the source of samples on Linux only, with 64 bits."
    )))
}

pub fn start(_: &Robj) -> Result<()> {
    refused()
}

pub fn status(_: Arena<'_>) -> Result<RObject<'_>> {
    Ok(RObject::null())
}

pub fn stop_within(arena: Arena<'_>, _: Duration) -> Result<RObject<'_>> {
    status(arena)
}

pub fn rprof(arena: Arena<'_>) -> Result<RObject<'_>> {
    arena.list(&[("path", RObject::null()), ("user", arena.text("nobody")?)])
}

pub fn chunk<'a>(_: Arena<'a>, _: &Path, _: bool) -> Result<RObject<'a>> {
    refused()
}

pub fn serve(_: &Path, _: bool) -> Result<&'static str> {
    refused()
}

pub fn clear() {}

pub fn abandon() -> bool {
    false
}
