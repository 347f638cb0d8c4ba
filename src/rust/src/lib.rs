//! The entry points, which are the functions that R calls: each reads its arguments, calls the
//! core and returns the result. extendr registers them, and `R/extendr-wrappers.R` is generated
//! from them.
//!
//! All arguments are `&Robj` and all results `Robj`: extendr would convert other types, and raise its own errors if
//! that fails (`argument.rs` and `outcome.rs` explain why this must not happen). Entry points have ordinary comments,
//! because extendr creates help pages from doc comments.

// Clippy rejects methods that abort if memory runs out (clippy.toml). It does so in the modules
// only: the code that `#[extendr]` generates here allocates a few bytes with such methods, for a
// message or for the table of functions.
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod agent;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod altrep;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod arena;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod argument;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod files;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod from_r;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod guard;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod options;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod outcome;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod tibble;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod to_r;

use arena::RObject;
use argument::{INTSXP, Sexp, VECSXP, argument, text};
use extendr_api::prelude::{Robj, extendr, extendr_module};
use guard::stop;
use options::{groups, recorder_settings, sampler_settings, writer};
use outcome::outcome;
use profile_agent::handle;
use profile_agent::relay::lock::serve;
use profile_core::analysis::call_tree::Part;
use profile_core::analysis::content_keys::content_keys;
use profile_core::analysis::{call_tree, compact, runs, summary};
use profile_core::error::Error;
use profile_core::formats::otlp::response::{self, Accepted, Coding};
use profile_core::formats::payload::read_payload;
use profile_core::formats::{self, Input, Problems, rprof};
use profile_core::io::input::Origin;
use profile_core::joint;
use profile_core::limits::memory::{Growing, TryCollect, TryGrow, owned, written};
use profile_core::message;
use profile_core::model::SourceId;
use profile_core::retry::{self, Outcome, Verdict};
use profile_core::schema::Key;
use profile_core::tables::{
    Filters, Matching, Renamed, filter, matching_locations, remap, rows_of_samples,
};
use profile_reader::dump::dump;
use profile_reader::process::r_processes;
use profile_reader::recorder::{self, Recorded};
use profile_sampler as sampler;
use std::cell::RefCell;
use std::ffi::c_int;
use std::time::{Duration, UNIX_EPOCH};

// `input` is a result of `profile_input()` in R/read.R. `format` is the name of a format; if it is
// empty, the format is detected. `payload`: whether to read the original payload of the profile in
// the file instead. `lazy`: whether columns of samples are computed when their values are needed.
#[extendr]
fn rust_read(input: &Robj, format: &Robj, version: &Robj, payload: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let format = files::format(text(format)?)?;
        let (mut profile, mut problems) = files::read(input, format)?;
        if argument(payload).flag()? {
            (profile, problems) = read_payload(profile, files::origin(input)?, &stop)?;
        }
        let version = text(version)?;
        let lazy = argument(lazy).flag()?;
        to_r::result(arena, &profile, &problems, version, lazy, &stop)
    })
}

// Writes a file in a format, see `writer()` in options.rs. Returns the information that could not be
// stored in it.
#[extendr]
fn rust_write(x: &Robj, file: &Robj, format: &Robj, options: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let writer = writer(&profile, text(format)?, options)?;
        let losses = files::write(file, &profile, &*writer)?;
        to_r::losses(arena, &losses)
    })
}

// The same, but returns `list(bytes, losses)`, with the content of the file as a raw vector.
#[extendr]
fn rust_written(x: &Robj, format: &Robj, options: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let writer = writer(&profile, text(format)?, options)?;
        let mut bytes = Vec::new();
        let losses = writer.write(&profile, &mut Growing(&mut bytes), &stop)?;
        let losses = to_r::losses(arena, &losses)?;
        arena.list(&[("bytes", arena.bytes(&bytes)?), ("losses", losses)])
    })
}

// Parses the response of a server. Returns `list(read, rejected, message)`; `read` is `FALSE` if the
// response to a successful request is not valid.
#[extendr]
fn rust_otlp_answer(body: &Robj, coding: &Robj, success: &Robj) -> Robj {
    outcome(|arena| {
        let body = argument(body).bytes()?;
        let coding = match text(coding)? {
            "protobuf" => Coding::Protobuf,
            "json" => Coding::Json,
            _ => Coding::Text,
        };
        let accepted = match argument(success).flag()? {
            true => response::accepted(body, coding)?,
            false => Some(Accepted {
                rejected: 0,
                message: response::failure(body, coding)?,
            }),
        };
        let read = arena.flag(accepted.is_some())?;
        let accepted = accepted.unwrap_or_default();
        arena.list(&[
            ("read", read),
            ("rejected", arena.number(accepted.rejected as f64)?),
            ("message", arena.text(&accepted.message)?),
        ])
    })
}

// Converts tables from the other version to `version`.
#[extendr]
fn rust_convert(x: &Robj, version: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let version = text(version)?;
        let x = argument(x);
        let profile = match version {
            "2.0" => from_r::recorded(x, &stop)?,
            _ => from_r::profile(x, &stop)?,
        };
        let lazy = argument(lazy).flag()?;
        to_r::tables(arena, &profile, &Problems::default(), version, lazy, &stop)
    })
}

#[extendr]
fn rust_validate(x: &Robj) -> Robj {
    outcome(|_| {
        from_r::check(argument(x), &stop)?;
        Ok(RObject::null())
    })
}

// `sample_type` is the name of the sample type to sum, or NULL for the default.
#[extendr]
fn rust_summarise(x: &Robj, sample_type: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let wanted = argument(sample_type).text()?;
        let summary = summary::summarise(&profile, wanted, &stop)?;
        to_r::summary(arena, &profile, &summary)
    })
}

// `by` is "function", "line" or "package". `part` is "whole", or "callers" or "callees" of the function `name`.
// `sources` contains for each source whether its samples are used, and is NULL for all sources.
#[extendr]
fn rust_call_tree(
    x: &Robj,
    sample_type: &Robj,
    by: &Robj,
    sources: &Robj,
    part: &Robj,
    name: &Robj,
) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let wanted = argument(sample_type).text()?;
        let by = groups(by)?;
        let part = match text(part)? {
            "callers" => Part::Callers(text(name)?),
            "callees" => Part::Callees(text(name)?),
            _ => Part::Whole,
        };
        let wanted_sources = argument(sources).integers()?;
        let is_wanted = |source: SourceId| {
            wanted_sources
                .get(source.row())
                .is_none_or(|&flag| flag == 1)
        };
        let tree = call_tree::call_tree(&profile, wanted, by, part, is_wanted, &stop)?;
        to_r::call_tree(arena, &tree)
    })
}

// Returns self and total values of each function, line or package in each source, see `to_r/runs.rs`. Without a
// `sample_type`, the sampled time is summed if it is known.
#[extendr]
fn rust_runs(x: &Robj, sample_type: &Robj, by: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let wanted = argument(sample_type).text()?;
        let runs = runs::by_run(&profile, wanted, groups(by)?, &stop)?;
        to_r::runs(arena, &runs)
    })
}

// Returns a tibble with a row for each frame of each sample.
#[extendr]
fn rust_frames(x: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        to_r::frames(arena, &profile, argument(lazy).flag()?, &stop)
    })
}

// Returns the data frame that profvis draws, see `to_r/profvis.rs`.
#[extendr]
fn rust_profvis(x: &Robj, filenames: &Robj, texts: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let texts = argument(texts).texts()?;
        let files = argument(filenames).texts()?.into_iter().zip(texts);
        let files = files.try_vec("texts")?;
        to_r::profvis(arena, &profile, &files, &stop)
    })
}

// Returns the name of the format of a file, empty if it is not one of the supported formats.
#[extendr]
fn rust_file_format(file: &Robj) -> Robj {
    outcome(|arena| {
        let file = argument(file).file()?;
        let origin = Origin {
            name: written(format_args!("`{}`", file.shown), "a name")?,
            ..Origin::default()
        };
        let format = formats::format_of(Input::File(file.path), origin)
            .map_err(|error| error.shown_as(file.shown))?;
        arena.text(format.map_or("", |format| format.name))
    })
}

// Returns the schema, see `to_r/schema.rs`.
#[extendr]
fn rust_schema() -> Robj {
    outcome(to_r::schema)
}

// Replaces ids. `columns`, `from` and `to` are lists of integer vectors of the same length. Each id
// in a column is looked up in the corresponding vector of `from` and replaced by the element at that
// position of `to`, or by NA if it is not found. `key` is the name of the column that contains the
// ids in their own table. Returns one vector with the new ids of all columns.
#[extendr]
fn rust_remap(columns: &Robj, from: &Robj, to: &Robj, key: &Robj) -> Robj {
    outcome(|arena| {
        let (from, to) = (argument(from).elements()?, argument(to).elements()?);
        let mut all = Vec::new();
        for ((column, from), to) in argument(columns).elements()?.iter().zip(from).zip(to) {
            let renamed = Renamed {
                column: column.integers()?,
                from: from.integers()?,
                to: to.integers()?,
            };
            all.try_push(renamed, "ids")?;
        }
        let rows = all.iter().map(|renamed| renamed.column.len()).sum();
        let name = text(key)?;
        let key = Key::of_column(name);
        let key = key.ok_or_else(|| Error::Unsupported(message!("No key `{name}`.")))?;
        let (ids, slots) = arena.integers(rows)?;
        remap(&all, key, slots, &stop)?;
        Ok(ids)
    })
}

// Returns the keys of `count` rows or, given the numbers of their `sets`, of `count` sets of rows, see
// `content_keys.rs` in the core. A column is a vector, or `list(rows, keys)`: row numbers in another table, and the
// keys of those rows.
#[extendr]
fn rust_content_keys(columns: &Robj, sets: &Robj, count: &Robj) -> Robj {
    outcome(|arena| {
        let columns = argument(columns);
        let cells = columns
            .elements()?
            .iter()
            .map(|column| from_r::cells(*column));
        let mut columns = columns
            .names()?
            .into_iter()
            .zip(cells)
            .map(|(name, cells)| Ok((name, cells?)))
            .try_vec_of("columns")?;
        let sets = argument(sets);
        let sets = (sets.kind() == INTSXP)
            .then(|| sets.integers())
            .transpose()?;
        let count = argument(count).integers()?.first().copied();
        let count = usize::try_from(count.unwrap_or(0)).unwrap_or(0);
        let keys = content_keys(&mut columns, sets, count, &stop)?;
        let keys = keys.iter().map(String::as_str).try_vec("keys")?;
        arena.texts(&keys)
    })
}

// Checks profiles of version "2.0" and combines them. Returns `list(tables, kept, ids)`. R uses `kept` and `ids` to
// combine columns and tables that the schema does not contain: `kept` contains the remaining rows of tables whose
// equal rows are merged, and `ids`, for each key, the new ids of each profile. `groups` contains, for some tables, a
// number for each row; rows are only merged if their numbers are equal. If there are no user-defined columns and
// tables, it is NULL, and only `tables` is returned. `close_gaps`: whether frames are renumbered.
#[extendr]
fn rust_combine(profiles: &Robj, groups: &Robj, close_gaps: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let groups = argument(groups);
        let has_own = groups.kind() == VECSXP;
        let numbers = groups.elements()?.iter().map(|numbers| numbers.integers());
        let groups = groups.names()?.into_iter().zip(numbers);
        let groups = groups
            .map(|(table, numbers)| Ok((table, numbers?)))
            .try_vec_of("groups")?;
        from_r::with_lists(argument(profiles).elements()?, &stop, |lists| {
            let groups = has_own.then_some(groups.as_slice());
            let (close_gaps, lazy) = (argument(close_gaps).flag()?, argument(lazy).flag()?);
            to_r::combined(arena, lists, groups, close_gaps, lazy, &stop)
        })
    })
}

// Whether no table of `x` contains anything that `normalize_tables()` in R/tables.R reports or converts, apart from
// attributes of columns other than class and dimensions.
#[extendr]
fn rust_is_plain(x: &Robj) -> Robj {
    outcome(|arena| arena.flag(from_r::is_plain(argument(x))?))
}

// Whether the tables of version "2.0" are complete tibbles, and their columns have the types of the schema.
#[extendr]
fn rust_has_types(x: &Robj) -> Robj {
    outcome(|arena| arena.flag(from_r::has_types(argument(x))?))
}

// Returns, by table, the names of the columns that are not in the schema.
#[extendr]
fn rust_own_columns(profiles: &Robj) -> Robj {
    outcome(|arena| {
        let own = from_r::own_columns(argument(profiles).elements()?)?;
        let own = own
            .iter()
            .map(|(table, columns)| Ok((*table, arena.texts(columns)?)));
        arena.list(&own.try_vec_of("the names of columns")?)
    })
}

// Returns the rows that are used, for each table that has unused rows. The tables need not be valid.
#[extendr]
fn rust_rows_in_use(x: &Robj) -> Robj {
    outcome(|arena| {
        let rows = from_r::with_tables(argument(x), |list| compact::rows_in_use(list, &stop))?;
        to_r::rows(arena, &rows)
    })
}

// Checks tables of version "2.0" and filters them. `matches`: for each requested filter, by its name,
// `list(functions, mappings)`, the matching rows of these tables; `drops`: an unnamed list of such lists;
// `drop_of_source`: which of them applies to each source. `as_stacks`: whether `sample_locations` contains only
// columns of the schema.
//
// Returns a list with `samples` and `outermost`, for each sample whether it and its outermost frame are kept;
// `frames`, the columns of the remaining `sample_locations`, or `depths` and `no_longer_inlined`, see
// `FilteredFrames`; and `rows`, the remaining rows of other tables from which some are removed.
#[extendr]
fn rust_filter(
    x: &Robj,
    matches: &Robj,
    drops: &Robj,
    drop_of_source: &Robj,
    outermost: &Robj,
    as_stacks: &Robj,
    lazy: &Robj,
) -> Robj {
    outcome(|arena| {
        let (matches, drops) = (argument(matches), argument(drops).elements()?);
        let drop_of_source = argument(drop_of_source).integers()?;
        from_r::with_checked(argument(x), &stop, |list, reading| {
            let locations = |found: &Sexp| {
                let rows = |name| {
                    found
                        .named(name)?
                        .map_or(Ok(&[] as &[i32]), |f| f.integers())
                };
                matching_locations(&reading.profile, rows("functions")?, rows("mappings")?)
            };
            let matches = matches.names()?.into_iter().zip(matches.elements()?);
            let matches = matches
                .map(|(name, found)| Ok((name, locations(found)?)))
                .try_vec_of("filters")?;
            let drops = drops.iter().map(locations).try_vec_of("filters")?;
            let matching = |wanted| {
                let found = matches.iter().find(|(name, _)| *name == wanted);
                found.map(|(_, rows)| Matching(rows))
            };
            let outermost = argument(outermost).integers()?.first();
            let filters = Filters {
                outermost: outermost.map_or(0, |&count| usize::try_from(count).unwrap_or(0)),
                drop: drops.iter().map(|rows| Matching(rows)).try_vec("filters")?,
                drop_of_source,
                focus: matching("focus"),
                ignore: matching("ignore"),
                hide: matching("hide"),
                show: matching("show"),
                show_from: matching("show_from"),
                prune_from: matching("prune_from"),
            };
            let (as_stacks, lazy) = (argument(as_stacks).flag()?, argument(lazy).flag()?);
            let left = filter(reading, &filters, as_stacks, &stop)?;
            let rows = rows_of_samples(list, reading, &left.samples, &stop)?;
            to_r::filtered(arena, &reading.profile, &left, &rows, lazy, &stop)
        })
    })
}

// Raises an error if native code cannot be profiled in this process.
#[extendr]
fn rust_joint_check(settings: &Robj) -> Robj {
    outcome(|_| {
        let (settings, shown) = sampler_settings(settings)?;
        sampler::check(&settings)?;
        joint::check_target(settings.file).map_err(|error| error.shown_as(shown))?;
        Ok(RObject::null())
    })
}

// Blocks or unblocks the signal SIGPROF.
#[extendr]
fn rust_joint_block(on: &Robj) -> Robj {
    outcome(|_| {
        match argument(on).flag()? {
            true => sampler::block(),
            false => sampler::unblock(),
        }
        Ok(RObject::null())
    })
}

// Starts the sampler. R's profiler must be running and write to the file of the settings, and SIGPROF
// must be blocked.
#[extendr]
fn rust_joint_start(settings: &Robj) -> Robj {
    outcome(|_| {
        let (settings, shown) = sampler_settings(settings)?;
        sampler::start(&settings).map_err(|error| error.shown_as(shown))?;
        Ok(RObject::null())
    })
}

// Returns the state of the sampler as a word.
#[extendr]
fn rust_joint_state() -> Robj {
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

// Stops the sampler and returns `list(tables, counts, losses, error)` of the joint profile. R's profiler must be
// stopped, its file complete, and SIGPROF blocked. `target` is the file to write the profile to, or NULL. `losses`
// lists what that file could not store, and `error` is the reason why it could not be written; both are NULL if not
// applicable.
#[extendr]
fn rust_joint_stop(
    file: &Robj,
    name: &Robj,
    uri: &Robj,
    memory: &Robj,
    target: &Robj,
    lazy: &Robj,
) -> Robj {
    outcome(|arena| {
        let origin = Origin {
            name: owned(text(name)?, "a name")?,
            uri: argument(uri).owned_text()?,
            written: None,
            ..Origin::default()
        };
        let memory = argument(memory).flag()?;
        let file = argument(file).file()?;
        let stopped = sampler::stop();
        let stopped = stopped.ok_or_else(|| Error::Unsupported("Nothing is recorded.".into()))?;
        let recording = stopped.recording()?;
        let (profile, problems) = joint::merge(file.path, origin, &recording, memory, &stop)
            .map_err(|error| error.shown_as(file.shown))?;
        let lazy = argument(lazy).flag()?;
        let (mut losses, mut error) = (RObject::null(), RObject::null());
        if !argument(target).strings()?.is_empty() {
            match files::write(target, &profile, &rprof::Writer) {
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

// Stops the sampler and discards the recording. R's profiler must be stopped.
#[extendr]
fn rust_joint_drop() -> Robj {
    outcome(|_| {
        drop(sampler::stop());
        Ok(RObject::null())
    })
}

thread_local! {
    /// The recording that was stopped by Ctrl-C, until R has handled the interrupt.
    static STOPPED: RefCell<Option<Recorded>> = const { RefCell::new(None) };
}

// Records processes and returns the same as `rust_processes_recorded()`. If the user presses Ctrl-C, that function
// returns what was recorded.
#[extendr]
fn rust_processes_record(pids: &Robj, settings: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let settings = recorder_settings(settings)?;
        let pids = argument(pids).integers()?;
        let recorded = recorder::record(pids, &settings, &stop)?;
        if recorded.was_stopped {
            STOPPED.set(Some(recorded));
            return Err(Error::Interrupted);
        }
        to_r::recorded(arena, &recorded, argument(lazy).flag()?, &stop)
    })
}

// Returns `list(tables, counts, unread, cut, partial, ended)` of a recording that the user stopped: the problems of
// native stacks, the numbers of samples that could not be read, whose outermost calls were omitted and whose
// innermost calls are missing, and the processes that ended.
#[extendr]
fn rust_processes_recorded(lazy: &Robj) -> Robj {
    outcome(|arena| {
        let recorded = STOPPED.take();
        let recorded =
            recorded.ok_or_else(|| Error::Unsupported(message!("Nothing was recorded.")))?;
        to_r::recorded(arena, &recorded, argument(lazy).flag()?, &stop)
    })
}

// Returns the current stack of a process, and its state.
#[extendr]
fn rust_process_dump(pid: &Robj) -> Robj {
    outcome(|arena| {
        let pid = argument(pid).integers()?.first().copied().unwrap_or(0);
        to_r::dump(arena, &dump(pid)?)
    })
}

// Returns the processes that run R.
#[extendr]
fn rust_processes() -> Robj {
    outcome(|arena| to_r::processes(arena, &r_processes()?))
}

// Starts the agent. `settings` is a list, see `agent::settings()`.
#[extendr]
fn rust_agent_start(settings: &Robj) -> Robj {
    outcome(|_| {
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

// Determines what to do after a request was sent `attempt` times. `result` is the name of an outcome, or "status"
// with an HTTP `status`. `first` is the first delay in seconds, `asked` the header `Retry-After`, empty if there is
// none, and `now` the time in seconds since 1970. Returns `list(again, wait, asked, longest)`: whether to retry, after
// how many seconds, the delay that the server requests (empty if there is no valid one), and the longest delay that a
// user accepts.
#[extendr]
fn rust_retry(
    result: &Robj,
    status: &Robj,
    attempt: &Robj,
    first: &Robj,
    asked: &Robj,
    now: &Robj,
) -> Robj {
    outcome(|arena| {
        let number = |argument: Sexp| Ok::<_, Error>(argument.doubles()?.first().copied());
        let status = number(argument(status))?.unwrap_or(0.0) as u16;
        let result = Outcome::named(text(result)?).unwrap_or(Outcome::Status(status));
        let attempt = number(argument(attempt))?.unwrap_or(1.0) as u32;
        let first = Duration::try_from_secs_f64(number(argument(first))?.unwrap_or(0.0));
        let wait = retry::delay(attempt, first.unwrap_or(retry::FIRST), retry::chance());
        let now = Duration::try_from_secs_f64(number(argument(now))?.unwrap_or(0.0));
        let now = UNIX_EPOCH
            .checked_add(now.unwrap_or_default())
            .unwrap_or(UNIX_EPOCH);
        let asked = retry::requested(text(asked)?, now);
        arena.list(&[
            ("again", arena.flag(result.verdict() == Verdict::Again)?),
            ("wait", arena.number(wait.as_secs_f64())?),
            ("asked", arena.numbers(asked.as_slice())?),
            ("longest", arena.number(retry::PATIENCE.as_secs_f64())?),
        ])
    })
}

/// Called when the package was loaded, after a check that there is memory for extendr's table of
/// protected objects. The first object creates the table; it is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn profile_rust_load() {
    std::mem::forget(Robj::default());
}

/// Called before the package is unloaded, and with it the signal handler and the code of threads. Returns 1 if a
/// thread is still running, so that the code must stay in memory.
#[unsafe(no_mangle)]
pub extern "C" fn profile_rust_unload() -> c_int {
    sampler::abandon();
    c_int::from(handle::abandon())
}

extendr_module! {
    mod profile;
    fn rust_read;
    fn rust_write;
    fn rust_written;
    fn rust_otlp_answer;
    fn rust_convert;
    fn rust_validate;
    fn rust_summarise;
    fn rust_call_tree;
    fn rust_runs;
    fn rust_frames;
    fn rust_profvis;
    fn rust_file_format;
    fn rust_schema;
    fn rust_remap;
    fn rust_content_keys;
    fn rust_combine;
    fn rust_is_plain;
    fn rust_has_types;
    fn rust_own_columns;
    fn rust_rows_in_use;
    fn rust_filter;
    fn rust_joint_check;
    fn rust_joint_block;
    fn rust_joint_start;
    fn rust_joint_state;
    fn rust_joint_stop;
    fn rust_joint_drop;
    fn rust_processes_record;
    fn rust_processes_recorded;
    fn rust_process_dump;
    fn rust_processes;
    fn rust_agent_start;
    fn rust_agent_status;
    fn rust_agent_rprof;
    fn rust_agent_stop;
    fn rust_agent_chunk;
    fn rust_agent_given;
    fn rust_agent_clear;
    fn rust_relay;
    fn rust_retry;
}
