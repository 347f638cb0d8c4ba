//! Entry points of the agent, and of the helper that sends its requests.

use crate::agent;
use crate::arena::RObject;
use crate::argument::argument;
use crate::options::option;
use crate::outcome::outcome;
use extendr_api::prelude::{Robj, extendr, extendr_module};
use profile_agent::handle;
use profile_agent::relay::lock::serve;
use profile_core::error::Error;
use profile_core::message;
use profile_reader::dump::dump;
use std::time::Duration;

// Starts the agent. `settings` is a list, see `agent::settings()`. With the method "auto", R's memory is read once, since
// the thread could not distinguish a failure of this from others. If that is not possible, the agent is not started, and
// the reason is returned; otherwise NULL.
#[extendr]
fn rust_agent_start(settings: &Robj) -> Robj {
    outcome(|arena| {
        if option(settings, "method")?.text()? == Some("auto") {
            match dump(std::process::id() as i32, &|| false) {
                Err(error @ (Error::Unsupported(_) | Error::Process(_))) => {
                    return arena.text(&message!("{error}"));
                }
                found => found.map(drop)?,
            }
        }
        handle::start(agent::settings(settings)?)?;
        Ok(RObject::null())
    })
}

// Returns the status of the agent, also after it was stopped; NULL if there was none in this process.
#[extendr]
fn rust_agent_status() -> Robj {
    outcome(|arena| agent::status(arena, handle::status()))
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
        agent::status(arena, handle::stop(timeout))
    })
}

// Returns the oldest chunk for a function of R, as `list(number, tables)`, or NULL.
#[extendr]
fn rust_agent_chunk(lazy: &Robj) -> Robj {
    outcome(|arena| agent::chunk(arena, argument(lazy).flag()?))
}

// Reports that the R function was called with the chunk of this number. `error` is its error, or NULL.
#[extendr]
fn rust_agent_given(number: &Robj, error: &Robj) -> Robj {
    outcome(|_| {
        let number = argument(number).doubles()?.first().copied();
        handle::given(number.unwrap_or(-1.0) as u64, argument(error).owned_text()?);
        Ok(RObject::null())
    })
}

// Drops the chunks that remain after the agent was stopped.
#[extendr]
fn rust_agent_clear() -> Robj {
    outcome(|_| {
        handle::clear();
        Ok(RObject::null())
    })
}

// Returns what the helper that sends requests of agents must do, see `serve()`. `folder` contains the requests.
#[extendr]
fn rust_relay(folder: &Robj, close: &Robj) -> Robj {
    outcome(|arena| {
        let folder = argument(folder).file()?;
        arena.text(serve(folder.path, argument(close).flag()?)?)
    })
}

extendr_module! {
    mod services;
    fn rust_agent_start;
    fn rust_agent_status;
    fn rust_agent_rprof;
    fn rust_agent_stop;
    fn rust_agent_chunk;
    fn rust_agent_given;
    fn rust_agent_clear;
    fn rust_relay;
}
