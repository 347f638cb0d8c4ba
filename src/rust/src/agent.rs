//! The interface of the agent for R: reads its settings and returns its status.

use crate::arena::{Arena, RObject};
use crate::argument::Sexp;
use crate::guard::stop;
use crate::options::option;
use crate::to_r;
use extendr_api::Robj;
use profile_agent::chunks::Timing;
use profile_agent::handle::{self, Settings, Status};
use profile_agent::http::direct::Endpoint;
use profile_agent::http::url::Url;
use profile_agent::http::{Target, Way};
use profile_agent::relay;
use profile_agent::sink::To;
use profile_agent::source::Source;
use profile_agent::system::{Log, is_profiled};
use profile_core::error::{Error, Result};
use profile_core::formats::{self, Input, otlp};
use profile_core::io::input::Origin;
use profile_core::limits::memory::{TryGrow, copied, owned};
use profile_core::message;
use profile_reader::settings::Clock;
use profile_reader::source::KIND;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Reads the settings from a list: `method`, "reader" (or "auto", the same here) or "rprof"; `interval` and `every` in
/// seconds; `clock`, "cpu" or "wall"; `keys` and `values` of the resource attributes; `queue` in bytes; `kind`, "http",
/// "relay", "folder" or "function". For HTTP: `url`, `headers` (bytes), `timeout` and `backoff` in seconds, and `limit`,
/// the maximum size of a response in bytes. For a relay: `shown`, the URL without secrets; `path`, its folder; `head`,
/// `command` and `environment` (bytes); and `timeout`, `backoff` and `limit`. For a folder: `path`, and `name`, the
/// prefix of file names.
pub fn settings(list: &Robj) -> Result<Settings> {
    let mut resource = Vec::new();
    let keys = option(list, "keys")?.elements()?;
    for (key, value) in keys.iter().zip(option(list, "values")?.elements()?) {
        let text = |text: &Sexp| owned(text.text()?.unwrap_or_default());
        resource.try_push((text(key)?, text(value)?))?;
    }
    let text = |name| Ok::<_, Error>(option(list, name)?.text()?.unwrap_or_default());
    let to = match text("kind")? {
        "http" => To::Http(target(
            list,
            Way::Direct(Endpoint {
                url: Url::parse(text("url")?)?,
                headers: bytes(list, "headers")?,
            }),
        )?),
        "relay" => To::Http(target(
            list,
            Way::Relay(relay::Settings {
                folder: PathBuf::from(option(list, "path")?.file()?.path),
                head: bytes(list, "head")?,
                shown: owned(text("shown")?)?,
                command: bytes(list, "command")?,
                environment: bytes(list, "environment")?,
            }),
        )?),
        "folder" => {
            let folder = option(list, "path")?.file()?;
            To::Folder(PathBuf::from(folder.path), owned(text("name")?)?)
        }
        _ => To::R,
    };
    Ok(Settings {
        source: match text("method")? {
            "rprof" => Source::Rprof(Arc::new(Log::create()?)),
            _ => Source::Reader,
        },
        timing: Timing {
            interval: duration(list, "interval")?,
            every: duration(list, "every")?,
            clock: match text("clock")? {
                "wall" => Clock::Wall,
                _ => Clock::Cpu,
            },
        },
        to,
        resource,
        queue: number(list, "queue")? as usize,
    })
}

fn target(list: &Robj, way: Way) -> Result<Target> {
    Ok(Target {
        way,
        timeout: duration(list, "timeout")?,
        first: duration(list, "backoff")?,
        most: number(list, "limit")? as usize,
    })
}

fn bytes(list: &Robj, name: &str) -> Result<Vec<u8>> {
    copied(option(list, name)?.bytes()?)
}

fn number(list: &Robj, name: &str) -> Result<f64> {
    let value = option(list, name)?.doubles()?.first().copied();
    let missing = || Error::Unsupported(message!("No option `{name}`."));
    value.ok_or_else(missing)
}

fn duration(list: &Robj, name: &str) -> Result<Duration> {
    let seconds = number(list, name)?;
    // An infinite number becomes a duration longer than any program runs.
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(1 << 30)))
}

/// The status of the agent as a list; NULL if there is no agent.
pub fn status(arena: Arena<'_>, status: Option<Status>) -> Result<RObject<'_>> {
    let Some(status) = status else {
        return Ok(RObject::null());
    };
    let counts = &status.counts;
    let number = |count: u64| arena.number(count as f64);
    let (error, error_time) = match &counts.last_error {
        Some((why, time)) => (arena.text(why)?, *time),
        None => (RObject::null(), f64::NAN),
    };
    arena.list(&[
        ("running", arena.flag(status.is_running)?),
        ("taken", number(counts.taken)?),
        ("sent", number(counts.sent)?),
        ("queued", number(status.samples)?),
        ("open", number(counts.open)?),
        ("dropped", number(counts.dropped())?),
        ("dropped_full", number(counts.full)?),
        ("dropped_refused", number(counts.refused)?),
        ("dropped_lost", number(counts.lost)?),
        ("unread", number(counts.unread)?),
        ("cut", number(counts.cut)?),
        ("paused", arena.number(counts.paused.as_secs_f64())?),
        ("rejected", number(counts.rejected)?),
        ("chunks_sent", number(counts.chunks_sent)?),
        ("chunks_queued", number(status.chunks as u64)?),
        ("bytes_queued", number(status.bytes as u64)?),
        ("cpu_time", arena.number(counts.cpu as f64 / 1e9)?),
        (
            "last_sent",
            arena.number(counts.last_sent.unwrap_or(f64::NAN))?,
        ),
        ("last_error", error),
        ("last_error_time", arena.number(error_time)?),
    ])
}

/// Who uses R's profiler, as `list(path, user)`: the file to which it should write for the agent, or NULL; and
/// "agent", "other" or "nobody".
pub fn rprof(arena: Arena<'_>) -> Result<RObject<'_>> {
    let log = handle::log();
    let path = match &log {
        Some(log) => arena.text(&log.path())?,
        None => RObject::null(),
    };
    let user = match log {
        Some(log) if log.is_written() => "agent",
        _ if is_profiled() => "other",
        _ => "nobody",
    };
    arena.list(&[("path", path), ("user", arena.text(user)?)])
}

/// The oldest chunk as `list(number, tables)`; NULL if there is none.
pub fn chunk(arena: Arena<'_>, lazy: bool) -> Result<RObject<'_>> {
    let Some(chunk) = handle::front() else {
        return Ok(RObject::null());
    };
    let origin = Origin {
        name: message!("a chunk of the agent"),
        stored: chunk.bytes.len() as u64,
        ..Origin::default()
    };
    let input = Input::Bytes(&chunk.bytes);
    let (mut profile, problems) = formats::read(input, Some(&otlp::FORMAT), origin, &stop)?;
    // The same kind as the sources that `profile_process()` records.
    for source in &mut profile.sources {
        source.kind = KIND;
    }
    let tables = to_r::tables(arena, &profile, &problems, "2.0", lazy, &stop)?;
    arena.list(&[
        ("number", arena.number(chunk.number as f64)?),
        ("tables", tables),
    ])
}
