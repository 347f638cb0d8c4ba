//! The functions that R calls: each looks at its arguments, calls the core and returns the
//! result. extendr registers them, and `R/extendr-wrappers.R` is generated from them.
//!
//! All arguments are `&Robj` and all results `Robj`: extendr converts anything else, and
//! raises errors of its own where it cannot (`argument.rs` and `outcome.rs` say why that
//! must not be). What is said about an exported function is no doc comment, since extendr
//! makes help pages of those.

// Clippy holds the modules to growing without aborting (clippy.toml). Here it cannot: what
// `#[extendr]` generates grows, by the few bytes of a message or of the table of functions.
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

use arena::{Arena, Value};
use argument::{argument, text};
use extendr_api::prelude::{Robj, extendr, extendr_module};
use files::{read, read_payload, write};
use guard::stop;
use options::{otlp_options, sampler_settings};
use outcome::outcome;
use profile_core::analysis::summary;
use profile_core::error::{Error, Result};
use profile_core::formats::detect::Format;
use profile_core::formats::otlp::response::{self, Accepted, Coding};
use profile_core::formats::problems::Problems;
use profile_core::formats::{otlp, pprof, read as any, rprof};
use profile_core::io::input::Origin;
use profile_core::joint;
use profile_core::limits::memory::{Growing, TryCollect, TryGrow, owned, written};
use profile_core::message;
use profile_core::tables::{DOTTED, Filters, Left, Matching, Renamed, V2, filter, remap};
use profile_sampler as sampler;

#[extendr]
fn rust_read_rprof(
    input: &Robj,
    name: &Robj,
    version: &Robj,
    uri: &Robj,
    max_memory: &Robj,
) -> Robj {
    outcome(|arena| {
        let (profile, problems) = read(
            input,
            [name, uri, max_memory],
            |path, origin| rprof::read_path(path, origin, &stop),
            |bytes, origin| rprof::read(bytes, origin, &stop),
        )?;
        let version = text(version)?;
        to_r::result(arena, &profile, &problems, version, &stop)
    })
}

#[extendr]
fn rust_read_pprof(
    input: &Robj,
    name: &Robj,
    version: &Robj,
    uri: &Robj,
    max_memory: &Robj,
) -> Robj {
    outcome(|arena| {
        let (profile, problems) = read(
            input,
            [name, uri, max_memory],
            |path, origin| pprof::read_path(path, origin, &stop),
            |bytes, origin| pprof::read(bytes, origin, &stop),
        )?;
        let version = text(version)?;
        to_r::result(arena, &profile, &problems, version, &stop)
    })
}

// `payload`: whether to read the original payload of the one profile in the file instead.
#[extendr]
fn rust_read_otlp(
    input: &Robj,
    name: &Robj,
    version: &Robj,
    uri: &Robj,
    max_memory: &Robj,
    payload: &Robj,
) -> Robj {
    outcome(|arena| {
        let (mut profile, mut problems) = read(
            input,
            [name, uri, max_memory],
            |path, origin| otlp::read_path(path, origin, &stop),
            |bytes, origin| otlp::read(bytes, origin, &stop),
        )?;
        if argument(payload).flag()? {
            (profile, problems) = read_payload(profile, [name, uri, max_memory])?;
        }
        let version = text(version)?;
        to_r::result(arena, &profile, &problems, version, &stop)
    })
}

#[extendr]
fn rust_read_profile(
    input: &Robj,
    name: &Robj,
    version: &Robj,
    uri: &Robj,
    max_memory: &Robj,
) -> Robj {
    outcome(|arena| {
        let (profile, problems) = read(
            input,
            [name, uri, max_memory],
            |path, origin| any::read_path(path, origin, &stop),
            |bytes, origin| any::read_bytes(bytes, origin, &stop),
        )?;
        let version = text(version)?;
        to_r::result(arena, &profile, &problems, version, &stop)
    })
}

// Gives what the file could not take.
#[extendr]
fn rust_write_rprof(x: &Robj, file: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let report = write(file, |path| rprof::write_path(&profile, path, &stop))?;
        losses(
            arena,
            &[
                ("assumed_intervals", report.assumed_intervals),
                ("rounded_intervals", report.rounded_intervals),
                ("rounded_counts", report.rounded_counts),
                ("rounded_figures", report.rounded_figures),
                ("partial_figures", report.partial_figures),
                ("empty_samples", report.empty_samples),
                ("lost_lines", report.lost_lines),
                ("changed_names", report.changed_names),
            ],
        )
    })
}

// Gives what the file could not take.
#[extendr]
fn rust_write_pprof(x: &Robj, file: &Robj, aggregate: &Robj, sources: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let options = pprof::WriteOptions {
            aggregate: argument(aggregate).flag()?,
            sources: argument(sources).flag()?,
        };
        let report = write(file, |path| {
            pprof::write_path(&profile, &options, path, &stop)
        })?;
        losses(
            arena,
            &[
                ("untold_sources", report.untold_sources),
                ("other_labels", report.other_labels),
                ("lines_without_function", report.lines_without_function),
                ("periods", report.untold.periods),
                ("times", report.untold.times),
                ("durations", report.untold.durations),
            ],
        )
    })
}

// Gives what the file could not take.
#[extendr]
fn rust_write_otlp(x: &Robj, file: &Robj, options: &Robj, gzip: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let options = otlp_options(&profile, options)?;
        let gzip = argument(gzip).flag()?;
        let report = write(file, |path| {
            otlp::write_path(&profile, &options, path, gzip, &stop)
        })?;
        otlp_losses(arena, &report)
    })
}

// Gives `list(message, losses)`: a raw vector, and what it could not take.
#[extendr]
fn rust_otlp_message(x: &Robj, options: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let options = otlp_options(&profile, options)?;
        let mut message = Vec::new();
        let report = otlp::write(&profile, &options, &mut Growing(&mut message), &stop)?;
        let losses = otlp_losses(arena, &report)?;
        arena.list(&[("message", arena.bytes(&message)?), ("losses", losses)])
    })
}

// What a server answered: gives `list(read, rejected, message)`, where `read` is
// whether the answer to a request that succeeded is as it should be.
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

// Gives the tables of the version that `version` names, from the other one.
#[extendr]
fn rust_convert(x: &Robj, version: &Robj) -> Robj {
    outcome(|arena| {
        let version = text(version)?;
        let x = argument(x);
        let profile = match version {
            "2.0" => from_r::recorded(x, &stop)?,
            _ => from_r::profile(x, &stop)?,
        };
        to_r::tables(arena, &profile, &Problems::default(), version, &stop)
    })
}

#[extendr]
fn rust_validate(x: &Robj) -> Robj {
    outcome(|_| {
        from_r::check(argument(x), &stop)?;
        Ok(Value::null())
    })
}

// `sample_type` is the name of the one to sum, or NULL for one that is chosen.
#[extendr]
fn rust_summarise(x: &Robj, sample_type: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let wanted = argument(sample_type).text()?;
        let summary = summary::summarise(&profile, wanted, &stop)?;
        to_r::summary(arena, &profile, &summary)
    })
}

// Gives one tibble with a row for each frame of each sample.
#[extendr]
fn rust_frames(x: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        to_r::flat(arena, &profile, &stop)
    })
}

// Gives a word for what a file looks like, empty if that is none of the formats that are
// read here.
#[extendr]
fn rust_file_format(file: &Robj) -> Robj {
    outcome(|arena| {
        let file = argument(file).file()?;
        let origin = Origin {
            name: written(format_args!("`{}`", file.shown), "a name")?,
            ..Origin::default()
        };
        let format = any::format_of_path(file.path, origin);
        let format = match format.map_err(|error| error.shown_as(file.shown))? {
            Some(Format::Rprof) => "rprof",
            Some(Format::Pprof) => "pprof",
            Some(Format::Otlp) => "otlp",
            None => "",
        };
        arena.text(format)
    })
}

// Gives `list(tables, dotted)`: every table of version "2.0" without rows, and
// what may stand beside them.
#[extendr]
fn rust_schema() -> Robj {
    outcome(|arena| {
        arena.list(&[
            ("tables", to_r::schema(arena, V2)?),
            ("dotted", to_r::schema(arena, DOTTED)?),
        ])
    })
}

// Gives one vector: the ids of all `columns`, which are those of the tables in
// `from`, under their names in `to`; NA where a table has no such id.
#[extendr]
fn rust_remap(columns: &Robj, from: &Robj, to: &Robj, table: &Robj) -> Robj {
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
        let name = text(table)?;
        let table = V2.iter().chain(DOTTED).find(|table| table.name == name);
        let table = table.ok_or_else(|| Error::Unsupported(message!("No table `{name}`.")))?;
        let (ids, slots) = arena.integers(rows)?;
        remap(&all, table, slots, &stop)?;
        Ok(ids)
    })
}

// Gives `list(samples, outermost, depths, loose)`: what the filters leave, and the
// rows of `sample_locations` that are no longer inlined. `matches`: for each filter
// that is asked for, by its name, which rows of `locations` match; `drops`: such
// vectors without names; `drop_of_source`: which of them holds for each source.
#[extendr]
fn rust_filter(x: &Robj, matches: &Robj, drops: &Robj, drop_of_source: &Robj) -> Robj {
    outcome(|arena| {
        let tables = from_r::second(argument(x))?;
        let matches = argument(matches);
        let matching = |name| match matches.named(name)? {
            Some(rows) => Ok::<_, Error>(Some(Matching(rows.integers()?))),
            None => Ok(None),
        };
        let filters = Filters {
            drop: argument(drops)
                .elements()?
                .iter()
                .map(|rows| rows.integers().map(Matching))
                .try_vec_of("filters")?,
            drop_of_source: argument(drop_of_source).integers()?,
            focus: matching("focus")?,
            ignore: matching("ignore")?,
            hide: matching("hide")?,
            show: matching("show")?,
            show_from: matching("show_from")?,
            prune_from: matching("prune_from")?,
        };
        let (samples, samples_left) = arena.logicals(tables.sample_id.len())?;
        let (outermost, outermost_left) = arena.logicals(tables.sample_id.len())?;
        let (depths, depths_left) = arena.integers(tables.frame_sample.len())?;
        let left = Left {
            samples: samples_left,
            outermost: outermost_left,
            depths: depths_left,
        };
        let rows = filter(&tables, &filters, left, &stop)?;
        let (loose, slots) = arena.integers(rows.len())?;
        for (slot, row) in slots.iter_mut().zip(rows) {
            *slot = row as i32 + 1;
        }
        arena.list(&[
            ("samples", samples),
            ("outermost", outermost),
            ("depths", depths),
            ("loose", loose),
        ])
    })
}

// Whether native code can be profiled here: an error says why not.
#[extendr]
fn rust_joint_check(settings: &Robj) -> Robj {
    outcome(|_| {
        let (settings, shown) = sampler_settings(settings)?;
        sampler::check(&settings)?;
        joint::check_target(settings.file).map_err(|error| error.shown_as(shown))?;
        Ok(Value::null())
    })
}

// Holds SIGPROF back, or no longer.
#[extendr]
fn rust_joint_block(on: &Robj) -> Robj {
    outcome(|_| {
        match argument(on).flag()? {
            true => sampler::block(),
            false => sampler::unblock(),
        }
        Ok(Value::null())
    })
}

// R's profiler is on, it writes to the file of the settings, and SIGPROF is held back.
#[extendr]
fn rust_joint_start(settings: &Robj) -> Robj {
    outcome(|_| {
        let (settings, shown) = sampler_settings(settings)?;
        sampler::start(&settings).map_err(|error| error.shown_as(shown))?;
        Ok(Value::null())
    })
}

// Gives a word.
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

// R's profiler is off, its file is complete, and SIGPROF is held back.
#[extendr]
fn rust_joint_stop(file: &Robj, name: &Robj, uri: &Robj, memory: &Robj) -> Robj {
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
        to_r::result(arena, &profile, &problems, "2.0", &stop)
    })
}

// R's profiler is off. Forgets what was recorded.
#[extendr]
fn rust_joint_drop() -> Robj {
    outcome(|_| {
        drop(sampler::stop());
        Ok(Value::null())
    })
}

/// What a file could not take: a list of counts.
fn losses<'call>(arena: Arena<'call>, losses: &[(&str, usize)]) -> Result<Value<'call>> {
    let count = |&(name, count): &_| Ok((name, arena.number(count as f64)?));
    arena.list(&losses.iter().map(count).try_vec_of("losses")?)
}

/// What a message of OpenTelemetry could not take.
fn otlp_losses<'call>(arena: Arena<'call>, report: &otlp::Report) -> Result<Value<'call>> {
    losses(
        arena,
        &[
            ("periods", report.periods),
            ("times", report.times),
            ("durations", report.durations),
        ],
    )
}

/// The package was loaded, and there is memory for extendr's table of protected objects, which
/// the first of them creates. This one stays.
#[unsafe(no_mangle)]
pub extern "C" fn profile_rust_load() {
    std::mem::forget(Robj::default());
}

/// The package is about to be unloaded, and the handler with it.
#[unsafe(no_mangle)]
pub extern "C" fn profile_rust_unload() {
    sampler::abandon();
}

extendr_module! {
    mod profile;
    fn rust_read_rprof;
    fn rust_read_pprof;
    fn rust_read_otlp;
    fn rust_read_profile;
    fn rust_write_rprof;
    fn rust_write_pprof;
    fn rust_write_otlp;
    fn rust_otlp_message;
    fn rust_otlp_answer;
    fn rust_convert;
    fn rust_validate;
    fn rust_summarise;
    fn rust_frames;
    fn rust_file_format;
    fn rust_schema;
    fn rust_remap;
    fn rust_filter;
    fn rust_joint_check;
    fn rust_joint_block;
    fn rust_joint_start;
    fn rust_joint_state;
    fn rust_joint_stop;
    fn rust_joint_drop;
}
