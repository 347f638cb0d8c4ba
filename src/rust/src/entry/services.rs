//! Entry points of the agent, and of the forwarder that sends its chunks, which has the
//! environment of this process.

use crate::agent;
use crate::arena::RObject;
use crate::argument::argument;
use crate::options::option;
use crate::outcome::outcome;
use extendr_api::prelude::{Robj, extendr, extendr_module};
use profile_core::error::Error;
use profile_core::limits::memory::{TryGrow, copied};
use profile_core::message;
use profile_reader::live::dump;
use std::time::Duration;

// Starts the agent. `settings` is a list, see `agent::start()`. R's memory is read once first, unless the method is
// "rprof", since the thread could not distinguish a failure of this from others. If that is not possible and the method
// is "auto", the agent is not started, and the reason is returned; otherwise NULL.
#[extendr]
fn rust_agent_start(settings: &Robj) -> Robj {
    outcome(|arena| {
        let method = option(settings, "method")?.text()?;
        if method != Some("rprof") {
            match dump(std::process::id() as i32, &|| false) {
                Err(error @ (Error::Unsupported(_) | Error::Process(_)))
                    if method == Some("auto") =>
                {
                    return arena.text(&message!("{error}"));
                }
                found => found.map(drop)?,
            }
        }
        agent::start(settings)?;
        Ok(RObject::null())
    })
}

// Returns the status of the agent, also after it was stopped; NULL if there was none in this process.
#[extendr]
fn rust_agent_status() -> Robj {
    outcome(agent::status)
}

// Returns who uses R's profiler, see `agent::rprof()`.
#[extendr]
fn rust_agent_rprof() -> Robj {
    outcome(agent::rprof)
}

// Stops the agent, which tries to send queued chunks for at most `seconds`, and returns its status.
#[extendr]
fn rust_agent_stop(seconds: &Robj) -> Robj {
    outcome(|arena| {
        let seconds = argument(seconds).doubles()?.first().copied();
        let timeout = Duration::try_from_secs_f64(seconds.unwrap_or(0.0)).unwrap_or_default();
        agent::stop_within(arena, timeout)
    })
}

// Returns the tables of the chunk in a file of the spool, for a function of R.
#[extendr]
fn rust_agent_chunk(path: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let file = argument(path).file()?;
        agent::chunk(arena, file.path, argument(lazy).flag()?)
    })
}

// Drops the chunks for a function of R that remain after the agent was stopped.
#[extendr]
fn rust_agent_clear() -> Robj {
    outcome(|_| {
        agent::clear();
        Ok(RObject::null())
    })
}

// Returns how the forwarder of a folder continues, see `agent::serve()`.
#[extendr]
fn rust_forwarder(folder: &Robj, is_last: &Robj) -> Robj {
    outcome(|arena| {
        let folder = argument(folder).file()?;
        arena.text(agent::serve(folder.path, argument(is_last).flag()?)?)
    })
}

// Returns the environment variables of this process as raw vectors `NAME=value`, sorted.
#[extendr]
fn rust_environment() -> Robj {
    outcome(|arena| {
        let mut variables = Vec::new();
        for (name, value) in std::env::vars_os() {
            let mut bytes = copied(name.as_encoded_bytes())?;
            bytes.try_push(b'=')?;
            bytes.try_extend(value.as_encoded_bytes())?;
            variables.try_push(bytes)?;
        }
        variables.sort_unstable();
        let mut list = Vec::new();
        for bytes in &variables {
            list.try_push(("", arena.bytes(bytes)?))?;
        }
        arena.list(&list)
    })
}

extendr_module! {
    mod services;
    fn rust_agent_start;
    fn rust_agent_status;
    fn rust_agent_rprof;
    fn rust_agent_stop;
    fn rust_agent_chunk;
    fn rust_agent_clear;
    fn rust_forwarder;
    fn rust_environment;
}
