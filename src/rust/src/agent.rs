//! The interface of the agent for R: reads its settings and returns its status.

use crate::arena::{Arena, RObject, allocate_vectors};
use crate::argument::Sexp;
use crate::guard::stop;
use crate::options::option;
use crate::to_r;
use extendr_api::Robj;
use profile_agent::counts::Counts;
use profile_agent::forward;
use profile_agent::handle;
pub use profile_agent::handle::{abandon, clear};
use profile_agent::recorder::Timing;
use profile_agent::run::{Job, Lease};
use profile_agent::schedule::When;
pub use profile_agent::serve::serve;
use profile_agent::sink::To;
use profile_agent::source::Source;
use profile_agent::spool::read;
use profile_agent::system::{Log, is_profiled};
use profile_core::error::{Error, Result};
use profile_core::formats::{self, Input, otlp};
use profile_core::io::input::Origin;
use profile_core::limits::memory::{TryGrow, copied, owned};
use profile_core::message;
use profile_core::model::heap::SNAPSHOT;
use profile_core::model::known_types::INUSE_SPACE;
use profile_reader::heap::counts::Allocated;
use profile_reader::live::{Gauge, check_own_heap};
use profile_reader::recorded::settings::Clock;
use profile_reader::recorded::source::KIND;
use profile_reader::recorded::waits::WaitNames;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Starts the agent, with settings from a list: `method`, "reader" (or "auto", the same here) or "rprof"; `interval` and
/// `every` in seconds; `clock`, "cpu" or "wall"; `waits`, "classes" or "names"; `keys` and `values` of the resource attributes; `kind`, "folder",
/// "function" or "forward"; and `path`, the folder, or the spool. For a folder: `name`, the prefix of file names. For a
/// spool: `limit`, its maximum size in bytes; and for a forwarder: `target`, `command` and `environment` (bytes). `memory`,
/// the seconds between two snapshots of R's heap, 0 for snapshots at each peak of the memory, or NULL. `lease`, two files:
/// the agent records as long as the first one exists, and removes the second one at the end; or NULL. `positions`: whether those
/// in byte code are recorded.
pub fn start(list: &Robj) -> Result<()> {
    handle::start(job(list)?)
}

fn job(list: &Robj) -> Result<Job> {
    let mut resource = Vec::new();
    let keys = option(list, "keys")?.elements()?;
    for (key, value) in keys.iter().zip(option(list, "values")?.elements()?) {
        let text = |text: &Sexp| owned(text.text()?.unwrap_or_default());
        resource.try_push((text(key)?, text(value)?))?;
    }
    let text = |name| Ok::<_, Error>(option(list, name)?.text()?.unwrap_or_default());
    let path = PathBuf::from(option(list, "path")?.file()?.path);
    let limit = || Ok::<_, Error>(number(list, "limit")? as usize);
    let to = match text("kind")? {
        "folder" => To::Folder(path, owned(text("name")?)?),
        "function" => To::Spool(path, limit()?, None),
        _ => {
            let settings = forward::Settings {
                target: bytes(list, "target")?,
                command: bytes(list, "command")?,
                environment: bytes(list, "environment")?,
            };
            To::Spool(path, limit()?, Some(settings))
        }
    };
    let memory = match option(list, "memory")?.doubles()? {
        [] => None,
        // At the peaks, see `agent_memory()`.
        [0.0] => Some(When::AtPeaks),
        _ => Some(When::Every(duration(list, "memory")?)),
    };
    if memory.is_some() {
        check_own_heap()?;
    }
    Ok(Job {
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
            names: match text("waits")? {
                "names" => WaitNames::Short,
                _ => WaitNames::None,
            },
            positions: option(list, "positions")?.flag()?,
        },
        to,
        resource,
        memory,
        gauge: find_gauge()?,
        lease: lease(list)?,
    })
}

fn lease(list: &Robj) -> Result<Option<Lease>> {
    Ok(match option(list, "lease")?.paths()?[..] {
        [file, mark] => Some(Lease {
            file: file.to_path_buf(),
            mark: mark.to_path_buf(),
        }),
        _ => None,
    })
}

/// How the agent looks at R's memory; `None` if R's counts of its objects cannot be found, or on other systems.
fn find_gauge() -> Result<Option<Gauge>> {
    // The numbers differ, so that each count is recognised.
    let allocate = |round| {
        let (small, large, len) = (11 + 6 * round, 2 + round, 1000 + 100 * round);
        allocate_vectors(small, 2)?;
        allocate_vectors(large, len)?;
        Ok(Allocated {
            objects: u64::from(small + large),
            large: u64::from(large * len),
            small: u64::from(small * 2),
        })
    };
    match Gauge::find(allocate) {
        Err(Error::Process(_) | Error::Unsupported(_)) => Ok(None),
        found => found,
    }
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
pub fn status(arena: Arena<'_>) -> Result<RObject<'_>> {
    in_list(arena, handle::status())
}

/// Stops the agent, which tries to send queued chunks meanwhile, and returns its status.
pub fn stop_within(arena: Arena<'_>, timeout: Duration) -> Result<RObject<'_>> {
    in_list(arena, handle::stop(timeout))
}

fn in_list(arena: Arena<'_>, counts: Option<Counts>) -> Result<RObject<'_>> {
    let Some(counts) = counts else {
        return Ok(RObject::null());
    };
    let (moves, waiting) = (&counts.moves, counts.waiting);
    let cpu = counts.cpu + counts.cpu_of_snapshots;
    let number = |count: u64| arena.number(count as f64);
    let (error, error_time) = match &counts.last_error {
        Some((why, time)) => (arena.text(why)?, *time),
        None => (RObject::null(), f64::NAN),
    };
    arena.list(&[
        ("running", arena.flag(!counts.ended)?),
        ("taken", number(counts.taken)?),
        ("found", number(moves.found)?),
        ("sent", number(moves.sent)?),
        ("queued", number(waiting.samples)?),
        ("open", number(counts.open)?),
        ("dropped", number(counts.dropped())?),
        ("dropped_full", number(moves.full)?),
        ("dropped_refused", number(moves.refused)?),
        ("dropped_lost", number(moves.lost)?),
        ("unread", number(counts.unread)?),
        ("cut", number(counts.cut)?),
        ("paused", arena.number(counts.paused.as_secs_f64())?),
        ("rejected", number(moves.rejected)?),
        ("chunks_sent", number(moves.chunks_sent)?),
        ("chunks_queued", number(waiting.chunks)?),
        ("bytes_queued", number(waiting.bytes)?),
        ("snapshots", number(counts.snapshots)?),
        ("snapshots_lost", number(counts.snapshots_lost)?),
        ("cpu_time", arena.number(cpu as f64 / 1e9)?),
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

/// The tables of a chunk in the spool.
pub fn chunk<'a>(arena: Arena<'a>, path: &Path, lazy: bool) -> Result<RObject<'a>> {
    let failed = |source| Error::Open {
        path: path.to_path_buf(),
        source,
    };
    let bytes = read(path, u64::MAX).map_err(failed)??;
    let origin = Origin {
        name: message!("a chunk of the agent"),
        stored: bytes.len() as u64,
        ..Origin::default()
    };
    let input = Input::Bytes(&bytes);
    let (mut profile, problems) = formats::read(input, Some(&otlp::FORMAT), origin, &stop)?;
    // The same kind as the sources that `profile_process()` and `snapshot_memory()` make.
    for source in &mut profile.sources {
        source.kind = if source.default_type.as_deref() == Some(INUSE_SPACE.name) {
            SNAPSHOT
        } else {
            KIND
        };
    }
    to_r::tables(arena, &profile, &problems, "2.0", lazy, &stop)
}
