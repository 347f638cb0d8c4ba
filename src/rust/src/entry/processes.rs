//! Entry points that look into R processes, and that run a program.

use crate::arena::RObject;
use crate::argument::{Sexp, argument};
use crate::guard::stop;
use crate::options::{option, recorder_settings};
use crate::outcome::outcome;
use crate::program;
use crate::progress::{self, stop_and_report};
use crate::to_r;
use extendr_api::prelude::{Robj, extendr, extendr_module};
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryCollect, TryGrow, owned};
use profile_core::message;
use profile_reader::heap::resident::{GLIBC, Glibc, Malloc, Pool};
use profile_reader::live::{
    self, Lookout, count_forks, dump, dump_core, forked, heap_of, members, needs_permission,
    own_heap, own_size, permit_process,
};
use profile_reader::recorded::memory::{End, OfAlone};
use profile_reader::recorded::result::Recorded;
use profile_reader::recorded::settings::{Asked, Wanted};
use profile_runtime::{IS_LIVE, LIVE_PLATFORMS};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

static LOOKOUT: Mutex<Option<Lookout>> = Mutex::new(None);
/// The number of forks when it began.
static FORKS: AtomicU64 = AtomicU64::new(0);

fn lookout() -> MutexGuard<'static, Option<Lookout>> {
    let mut lookout = LOOKOUT.lock().unwrap_or_else(PoisonError::into_inner);
    if lookout.as_ref().is_some_and(|lookout| !lookout.is_here()) {
        // The thread belongs to the parent of this fork, so that nobody can wait for its end.
        std::mem::forget(lookout.take());
    }
    lookout
}

/// Called before the library is unloaded.
pub fn abandon() {
    drop(lookout().take().map(Lookout::end));
}

/// CPU times in seconds, if processes could be looked at.
fn cpu_seconds(seen: Option<&OfAlone>) -> Result<Vec<f64>> {
    let seen = seen.iter().flat_map(|seen| &seen.cpu);
    seen.map(|&time| time as f64 / 1e9).try_vec()
}

thread_local! {
    /// The recording that was stopped by Ctrl-C, until R has handled the interrupt.
    static STOPPED: RefCell<Option<Recorded>> = const { RefCell::new(None) };
}

// Returns the platforms on which processes can be looked into, and native code recorded, as `name`, and whether this is
// one of them, as `here`.
#[extendr]
fn rust_live_platforms() -> Robj {
    outcome(|arena| {
        arena.list(&[
            ("name", arena.text(LIVE_PLATFORMS)?),
            ("here", arena.flag(IS_LIVE)?),
        ])
    })
}

// Records processes and those that work for them, of which the user has named `workers`, and returns the same as
// `rust_processes_recorded()`. If the user presses Ctrl-C, that function returns what was recorded. `report` is an R
// function that is called with the seconds that have passed and that are to be recorded, or NULL.
#[extendr]
fn rust_processes_record(
    pids: &Robj,
    workers: &Robj,
    settings: &Robj,
    lazy: &Robj,
    report: &Robj,
) -> Robj {
    outcome(|arena| {
        let settings = recorder_settings(settings)?;
        let (start, seconds) = (Instant::now(), settings.duration.as_secs_f64());
        let stop = stop_and_report(argument(report), || {
            Some((start.elapsed().as_secs_f64(), seconds))
        });
        let wanted = Wanted {
            pids: argument(pids).integers()?,
            workers: argument(workers).integers()?,
            master: None,
        };
        let recorded = live::record(&wanted, &settings, &stop)?;
        if recorded.was_stopped {
            STOPPED.set(Some(recorded));
            return Err(Error::Interrupted);
        }
        to_r::recorded(arena, &recorded, argument(lazy).flag()?, &stop)
    })
}

// Records the processes that belong to another R process, which records itself, and returns the same as
// `rust_processes_recorded()`. `asked` is a list: `pid` of that process, `variable`, which it has set in its environment,
// as NAME=VALUE, and `workers` that the user has named. `goes_on` is an R function that is called again and again, with NA
// until the recording begins, and then with whether this process may look into the other one. It returns whether the
// recording goes on.
#[extendr]
fn rust_family_record(asked: &Robj, settings: &Robj, goes_on: &Robj) -> Robj {
    outcome(|arena| {
        let settings = recorder_settings(settings)?;
        let begun = OnceLock::new();
        let master = Asked {
            pid: option(asked, "pid")?
                .integers()?
                .first()
                .copied()
                .unwrap_or(0),
            variable: option(asked, "variable")?.owned_text()?.unwrap_or_default(),
            begun: &begun,
        };
        let wanted = Wanted {
            pids: &[],
            workers: option(asked, "workers")?.integers()?,
            master: Some(master),
        };
        program::leave_terminal();
        let failed = Cell::new(None);
        let is_over = || match progress::goes_on(argument(goes_on), begun.get().copied()) {
            Ok(goes_on) => !goes_on,
            Err(error) => {
                failed.set(Some(error));
                true
            }
        };
        let recorded = live::record(&wanted, &settings, &is_over);
        if let Some(error) = failed.take() {
            return Err(error);
        }
        to_r::recorded(arena, &recorded?, false, &stop)
    })
}

// Returns the same of a recording that the user stopped: the profile, the problems of native stacks, the numbers of
// samples that could not be read, whose outermost calls were left out and that were read while another process traced
// theirs, how long processes were stopped each time, and the processes that ended.
#[extendr]
fn rust_processes_recorded(lazy: &Robj) -> Robj {
    outcome(|arena| {
        let recorded = STOPPED.take();
        let recorded =
            recorded.ok_or_else(|| Error::Unsupported(message!("Nothing was recorded.")))?;
        to_r::recorded(arena, &recorded, argument(lazy).flag()?, &stop)
    })
}

// Begins to look out for R processes that belong to this one, which is recorded alone.
#[extendr]
fn rust_lookout_start() -> Robj {
    outcome(|_| {
        // Without it, only a hint is missing.
        drop(lookout().take().map(Lookout::end));
        *lookout() = Lookout::start(std::process::id() as i32).ok();
        FORKS.store(count_forks(), Ordering::Relaxed);
        Ok(RObject::null())
    })
}

// Ends this, and returns `cpu`, the CPU time that this process and each of them has used, in seconds, `forks`, how often
// this process was forked meanwhile, and `threads`, what is stored about the CPU time of its threads.
#[extendr]
fn rust_lookout_end() -> Robj {
    outcome(|arena| {
        let lookout = lookout().take();
        let seen = lookout.and_then(|lookout| lookout.end().ok());
        let seen = seen.and_then(|seen| seen.result(None).ok());
        let forks = count_forks().saturating_sub(FORKS.load(Ordering::Relaxed));
        arena.list(&[
            ("cpu", arena.numbers(&cpu_seconds(seen.as_ref())?)?),
            ("forks", arena.number(forks as f64)?),
            ("threads", to_r::thread_facts(arena, seen.as_ref())?),
        ])
    })
}

// Returns the number of forks of this process since the first call, and of their forks, that go on with R.
#[extendr]
fn rust_count_forks() -> Robj {
    outcome(|arena| arena.number(count_forks() as f64))
}

// Returns the ids of these processes, except for the first `count`; NULL if they are unknown.
#[extendr]
fn rust_forked(count: &Robj) -> Robj {
    outcome(|arena| {
        let count = argument(count).doubles()?.first().copied().unwrap_or(0.0);
        match forked(count as u64)? {
            Some(pids) => arena.integer_vector(&pids),
            None => Ok(RObject::null()),
        }
    })
}

// Permits a process to look into this one and into its forks, if the system requires that: 0 for none. Returns whether it
// does.
#[extendr]
fn rust_permit_process(pid: &Robj) -> Robj {
    outcome(|arena| {
        let is_needed = needs_permission();
        if is_needed {
            permit_process(argument(pid).integers()?.first().copied().unwrap_or(0));
        }
        arena.flag(is_needed)
    })
}

// Returns the current stack of a process, and its state.
#[extendr]
fn rust_process_dump(pid: &Robj) -> Robj {
    outcome(|arena| {
        let pid = argument(pid).integers()?.first().copied().unwrap_or(0);
        to_r::dump(arena, &dump(pid, &stop)?)
    })
}

// Returns the same for the process of a core file.
#[extendr]
fn rust_core_dump(file: &Robj) -> Robj {
    outcome(|arena| {
        let file = argument(file).file()?;
        let dump = dump_core(file.path, file.shown);
        to_r::dump(arena, &dump.map_err(|error| error.shown_as(file.shown))?)
    })
}

// Returns a snapshot of R's heap in this process. `least` is the number of bytes that an object must retain to have a
// frame of its own, or no number; the tests pass 1. `before` is the size of the heap before garbage was collected, or no
// number if it was not collected. `pools` is a list with the columns `package`, `allocator` and `bytes`, see `Pool`.
#[extendr]
fn rust_own_heap(least: &Robj, before: &Robj, pools: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let first = |number: &Robj| -> Result<Option<u64>> {
            let number = argument(number).doubles()?.first();
            Ok(number.map(|&number| number as u64))
        };
        let (least, before) = (first(least)?, first(before)?);
        // R must not run before the snapshot is complete.
        let heap = own_heap(least, before, pools_of(argument(pools))?)?;
        to_r::heap(arena, &heap, argument(lazy).flag()?, &stop)
    })
}

/// `list(allocator, used, free)`; NULL if nothing is known.
fn malloc_of(list: Sexp) -> Result<Malloc> {
    let (Some(allocator), Some(used), Some(free)) = (
        list.named("allocator")?,
        list.named("used")?,
        list.named("free")?,
    ) else {
        return Ok(Malloc::Unknown);
    };
    let bytes = |number: Sexp| Ok::<_, Error>(number.doubles()?.first().map_or(0, |&n| n as u64));
    Ok(match allocator.text()? {
        Some(GLIBC) => Malloc::Glibc(Glibc {
            used: bytes(used)?,
            free: bytes(free)?,
            arenas: Vec::new(),
        }),
        Some(name) if !name.is_empty() => Malloc::Other(owned(name)?),
        _ => Malloc::Unknown,
    })
}

fn pools_of(list: Sexp) -> Result<Vec<Pool>> {
    let mut pools = Vec::new();
    let [Some(packages), Some(allocators), Some(bytes)] = [
        list.named("package")?,
        list.named("allocator")?,
        list.named("bytes")?,
    ] else {
        return Ok(pools);
    };
    let rows = packages.texts()?.into_iter().zip(allocators.texts()?);
    for ((package, allocator), &bytes) in rows.zip(bytes.doubles()?) {
        pools.try_push(Pool {
            package: owned(package)?,
            allocator: owned(allocator)?,
            bytes: bytes as u64,
        })?;
    }
    Ok(pools)
}

// Returns the bytes of R's heap in this process.
#[extendr]
fn rust_own_size() -> Robj {
    outcome(|arena| arena.number(own_size()? as f64))
}

// Returns a snapshot of the heap of another process. `malloc`: see `malloc_of()`.
#[extendr]
fn rust_process_heap(pid: &Robj, malloc: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let pid = argument(pid).integers()?.first().copied().unwrap_or(0);
        let heap = heap_of(pid, &malloc_of(argument(malloc))?, &stop)?;
        to_r::heap(arena, &heap, argument(lazy).flag()?, &stop)
    })
}

// Returns a process, these workers of it, and all R processes that belong to them, with their roles.
#[extendr]
fn rust_family(pid: &Robj, workers: &Robj) -> Robj {
    outcome(|arena| {
        let pid = argument(pid).integers()?.first().copied().unwrap_or(0);
        to_r::members(arena, &members(pid, argument(workers).integers()?)?)
    })
}

// Returns the processes that run R.
#[extendr]
fn rust_processes() -> Robj {
    outcome(|arena| to_r::processes(arena, &live::list()?))
}

// Runs a program (its path and its arguments) in the place of this process and returns `status`, its exit status, see
// `program::run()`; `cpu`, the CPU time of this program and of each R process that belonged to it, in seconds; `peak`, its
// highest memory in bytes, NA if that is unknown; `endings`, a row if it has not ended as usual; and `threads`, what is stored
// about the CPU time of its threads. `look` is an R function that is called again and again while the program runs, with NA,
// and returns whether it goes on; or NULL.
#[extendr]
fn rust_run_program(command: &Robj, look: &Robj) -> Robj {
    outcome(|arena| {
        let (lookout, seen) = (Cell::new(None), Cell::new(None));
        let failed = Cell::new(None);
        let look = argument(look);
        let goes_on = || match progress::goes_on(look, None) {
            Ok(goes_on) => goes_on,
            Err(error) => {
                failed.set(Some(error));
                false
            }
        };
        let goes_on: Option<&dyn Fn() -> bool> = if look.is_null() { None } else { Some(&goes_on) };
        let ended = program::run(
            &argument(command).paths()?,
            // Without it, only a hint is missing.
            |pid| lookout.set(Lookout::start(pid).ok()),
            goes_on,
            || seen.set(lookout.take().and_then(|lookout| lookout.end().ok())),
        )?;
        if let Some(error) = failed.take() {
            return Err(error);
        }
        let end = ended.signal.map_or(End::Exited, End::Signal);
        let seen = seen.take().and_then(|seen| seen.result(Some(end)).ok());
        let peak = seen.as_ref().and_then(|seen| seen.peak);
        let ending = seen.as_ref().and_then(|seen| seen.ending);
        arena.list(&[
            ("status", arena.number(f64::from(ended.status))?),
            ("cpu", arena.numbers(&cpu_seconds(seen.as_ref())?)?),
            (
                "peak",
                arena.number(peak.map_or(f64::NAN, |peak| peak as f64))?,
            ),
            (
                "endings",
                to_r::endings(arena, ending.iter().map(|ending| (0, "", ending)))?,
            ),
            ("threads", to_r::thread_facts(arena, seen.as_ref())?),
        ])
    })
}

extendr_module! {
    mod processes;
    fn rust_live_platforms;
    fn rust_processes_record;
    fn rust_processes_recorded;
    fn rust_family_record;
    fn rust_lookout_start;
    fn rust_lookout_end;
    fn rust_count_forks;
    fn rust_forked;
    fn rust_permit_process;
    fn rust_process_dump;
    fn rust_core_dump;
    fn rust_own_heap;
    fn rust_own_size;
    fn rust_process_heap;
    fn rust_family;
    fn rust_processes;
    fn rust_run_program;
}
