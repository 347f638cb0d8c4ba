//! Entry points of the profiler of R and native code: the sampler and its recording.

use crate::arena::RObject;
use crate::argument::{Sexp, argument, text};
use crate::entry::lines::{variables, with_ended};
use crate::guard::stop;
use crate::options::{allocation_settings, sampler_settings, titled_functions};
use crate::outcome::outcome;
use crate::thread_clock::thread_time;
use crate::{files, to_r};
use extendr_api::prelude::{Robj, extendr, extendr_module};
use profile_allocations::{self as allocations, Whose};
use profile_core::error::Error;
use profile_core::formats::{Problems, rprof};
use profile_core::io::input::Origin;
use profile_core::joint::{self, Wanted};
use profile_core::limits::memory::{TryCollect, owned};
use profile_core::message;
use profile_reader::live::own_delay;
use profile_sampler as sampler;

// Raises an error if native code cannot be profiled in this process.
#[extendr]
fn rust_native_check(settings: &Robj) -> Robj {
    outcome(|_| {
        let (settings, shown) = sampler_settings(settings, variables())?;
        sampler::check(&settings)?;
        joint::check_target(settings.file).map_err(|error| error.shown_as(shown))?;
        Ok(RObject::null())
    })
}

// Blocks or unblocks the signal SIGPROF.
#[extendr]
fn rust_native_block(on: &Robj) -> Robj {
    outcome(|_| {
        if argument(on).flag()? {
            sampler::block()
        } else {
            sampler::unblock()
        }
        Ok(RObject::null())
    })
}

// Starts the sampler. R's profiler must be running and write to the file of the settings, and SIGPROF
// must be blocked.
#[extendr]
fn rust_native_start(settings: &Robj) -> Robj {
    outcome(|_| {
        let (settings, shown) = sampler_settings(settings, variables())?;
        sampler::start(&settings).map_err(|error| error.shown_as(shown))?;
        Ok(RObject::null())
    })
}

// Tells the sampler which functions are loaded whose calls have titles.
#[extendr]
fn rust_native_titled(functions: &Robj) -> Robj {
    outcome(|_| {
        sampler::set_titled(titled_functions(argument(functions))?);
        Ok(RObject::null())
    })
}

// Returns the CPU time of this thread, how long it waited for a processor, and how long its cgroup was throttled, in
// nanoseconds, NaN if unknown; or NULL if the system has no clock of CPU time for it.
#[extendr]
fn rust_thread_time() -> Robj {
    outcome(|arena| match thread_time() {
        Some(time) => {
            let delay = own_delay()?;
            let [waited, throttled] = delay.map(|time| time.map_or(f64::NAN, |time| time as f64));
            arena.numbers(&[time, waited, throttled])
        }
        None => Ok(RObject::null()),
    })
}

// Returns the state of the sampler as a word.
#[extendr]
fn rust_native_state() -> Robj {
    outcome(|arena| {
        let state = match sampler::state() {
            sampler::State::Off => "off",
            sampler::State::On => "on",
            sampler::State::Replaced => "replaced",
            sampler::State::Restarted => "restarted",
            sampler::State::Elsewhere => "elsewhere",
        };
        arena.text(state)
    })
}

// Ends the run if `rust_lines_end()` has not done so, and returns `list(tables, counts, losses, error)` of its profile. R's
// profiler must be stopped, and its file complete. `lines` is as for `rust_lines_read()`. `target` is the file to write the
// profile to, or NULL. `losses` lists what that file could not store, and `error` is the reason why it could not be
// written; both are NULL if not applicable.
#[extendr]
fn rust_native_stop(
    file: &Robj,
    name: &Robj,
    uri: &Robj,
    memory: &Robj,
    lines: &Robj,
    target: &Robj,
    lazy: &Robj,
) -> Robj {
    outcome(|arena| {
        let origin = Origin {
            name: owned(text(name)?)?,
            uri: argument(uri).owned_text()?,
            written: None,
            ..Origin::default()
        };
        let memory = argument(memory).flag()?;
        let file = argument(file).file()?;
        let (profile, problems) = with_ended(argument(lines), |stopped, positions, lines| {
            let wanted = Wanted {
                memory,
                positions,
                lines,
            };
            joint::merge(file.path, origin, &stopped.recording()?, wanted, &stop)
                .map_err(|error| error.during("read", file.shown))
        })?;
        let lazy = argument(lazy).flag()?;
        let (mut losses, mut error) = (RObject::null(), RObject::null());
        if !argument(target).strings()?.is_empty() {
            match files::write(target, &profile, &rprof::Writer, Sexp::null()) {
                Ok(found) => losses = to_r::losses(arena, &found)?,
                // The profile is returned even if the file cannot be written.
                Err(refused @ Error::Write { .. }) => error = arena.text(&message!("{refused}"))?,
                Err(other) => return Err(other),
            }
        }
        arena.list(&[
            (
                "tables",
                to_r::tables(arena, &profile, &problems, "2.0", lazy, &stop)?,
            ),
            ("counts", to_r::counts(arena, &problems)?),
            ("losses", losses),
            ("error", error),
        ])
    })
}

// Notes which variables of R may have the position of the function that calls this.
#[extendr]
fn rust_allocations_look() -> Robj {
    outcome(|_| {
        allocations::look()?;
        Ok(RObject::null())
    })
}

// Prepares to record each vector that R allocates from so many bytes on. R next has to allocate one vector of `probe` bytes
// with its header, and to copy it. The recording is kept in `file`.
#[extendr]
fn rust_allocations_prepare(settings: &Robj, file: &Robj) -> Robj {
    outcome(|_| {
        let file = argument(file).file()?;
        allocations::prepare(allocation_settings(settings)?, file.path)
            .map_err(|error| error.shown_as(file.shown))?;
        Ok(RObject::null())
    })
}

// Notes how finalizers are recognized: the finalizer that calls this runs.
#[extendr]
fn rust_allocations_finalizer() -> Robj {
    outcome(|_| {
        allocations::see_finalizer();
        Ok(RObject::null())
    })
}

// Vectors that are allocated from now on are not recorded.
#[extendr]
fn rust_allocations_end() -> Robj {
    outcome(|_| {
        allocations::stop_adding();
        Ok(RObject::null())
    })
}

// Begins to record, and restores R's table if that is not possible.
#[extendr]
fn rust_allocations_begin() -> Robj {
    outcome(|_| {
        allocations::begin()?;
        Ok(RObject::null())
    })
}

// Vectors that are allocated from now on have this mark, a number.
#[extendr]
fn rust_allocations_mark(number: &Robj) -> Robj {
    outcome(|_| {
        let number = argument(number).integers()?.first().copied();
        allocations::mark(
            number
                .and_then(|number| u64::try_from(number).ok())
                .unwrap_or(0),
        );
        Ok(RObject::null())
    })
}

// Returns whether vectors are recorded.
#[extendr]
fn rust_allocations_on() -> Robj {
    outcome(|arena| arena.flag(allocations::is_on()))
}

// Ends the recording, if there is one, and restores R's table.
#[extendr]
fn rust_allocations_stop() -> Robj {
    outcome(|_| {
        allocations::stop();
        Ok(RObject::null())
    })
}

// Returns `list(tables, lost)`: the profile of a file, of the process that has recorded or of its forks, and the number of
// vectors that could not be recorded.
#[extendr]
fn rust_allocations_read(file: &Robj, forks: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let file = argument(file).file()?;
        let whose = if argument(forks).flag()? {
            Whose::Forks
        } else {
            Whose::Own
        };
        let found =
            allocations::read(file.path, whose).map_err(|error| error.shown_as(file.shown))?;
        let lazy = argument(lazy).flag()?;
        let problems = Problems::default();
        let tables = to_r::tables(arena, &found.profile, &problems, "2.0", lazy, &stop)?;
        let lost = arena.number(found.lost as f64)?;
        arena.list(&[("tables", tables), ("lost", lost)])
    })
}

// Returns the offsets at which the samples in a file of R's profiler start.
#[extendr]
fn rust_sample_lines(file: &Robj) -> Robj {
    outcome(|arena| {
        let file = argument(file).file()?;
        let bytes = joint::read_file(file.path).map_err(|error| error.shown_as(file.shown))?;
        let starts = rprof::sample_starts(&bytes)?;
        let starts = starts.iter().map(|start| *start as f64).try_vec()?;
        arena.numbers(&starts)
    })
}

extendr_module! {
    mod native;
    fn rust_native_check;
    fn rust_native_block;
    fn rust_native_titled;
    fn rust_native_start;
    fn rust_native_state;
    fn rust_thread_time;
    fn rust_native_stop;
    fn rust_allocations_look;
    fn rust_allocations_prepare;
    fn rust_allocations_finalizer;
    fn rust_allocations_begin;
    fn rust_allocations_end;
    fn rust_allocations_mark;
    fn rust_allocations_on;
    fn rust_allocations_stop;
    fn rust_allocations_read;
    fn rust_sample_lines;
}
