//! The functions that R calls: each looks at its arguments, calls the core and returns the
//! result. extendr registers them, and `R/extendr-wrappers.R` is generated from them.
//!
//! All arguments are `&Robj` and all results `Robj`: extendr converts anything else, and
//! raises errors of its own where it cannot (`argument.rs` and `outcome.rs` say why that
//! must not be). What is said about an exported function is no doc comment, since extendr
//! makes help pages of those.

// What `#[extendr]` generates here grows without asking for memory (clippy.toml), by the few
// bytes of a message or of the table of functions. So that lint is for the modules.
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod argument;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod columns;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod from_r;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod guard;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod outcome;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod slots;
#[warn(clippy::disallowed_macros, clippy::disallowed_methods)]
mod to_r;

use argument::{RAWSXP, Sexp};
use extendr_api::prelude::{Robj, extendr, extendr_module};
use guard::stop;
use outcome::{VALUE, outcome};
use profile_core::error::{Error, Result};
use profile_core::formats::detect::Format;
use profile_core::formats::otlp::response::{self, Accepted, Coding};
use profile_core::formats::problems::Problems;
use profile_core::formats::{otlp, pprof, read, rprof};
use profile_core::io::gzip;
use profile_core::io::input::Origin;
use profile_core::joint;
use profile_core::limits::memory::{Growing, TryCollect, TryGrow, owned, written};
use profile_core::message;
use profile_core::model::{Payload, Profile};
use profile_core::tables::{DOTTED, Filters, Left, Matching, Renamed, V2, filter, remap};
use profile_sampler as sampler;
use slots::Slots;
use std::ffi::CStr;
use std::path::Path;

fn argument(argument: &Robj) -> Sexp<'_> {
    Sexp::from(argument)
}

/// A text that R's side never leaves out.
fn text_argument(argument: &Robj) -> Result<&str> {
    Ok(Sexp::from(argument).text()?.unwrap_or_default())
}

/// Writes to a file.
fn write<T>(file: &Robj, to_path: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let file = argument(file).file()?;
    to_path(file.path).map_err(|error| error.shown_as(file.shown))
}

/// Bytes, or NULL for what follows from the size of a file.
fn memory_limit(bytes: &Robj) -> Result<Option<u64>> {
    Ok(argument(bytes)
        .doubles()?
        .first()
        .map(|&bytes| bytes as u64))
}

/// Reads from a file or from bytes (a raw vector, named `name`).
fn read(
    input: &Robj,
    [name, uri, max_memory]: [&Robj; 3],
    from_path: impl FnOnce(&Path, Origin) -> Result<(Profile, Problems)>,
    from_bytes: impl FnOnce(&[u8], Origin) -> Result<(Profile, Problems)>,
) -> Result<(Profile, Problems)> {
    let input = argument(input);
    let origin = Origin {
        name: owned(text_argument(name)?, "a name")?,
        uri: argument(uri).owned_text()?,
        written: None,
        stored: input.bytes()?.len() as u64,
        max_memory: memory_limit(max_memory)?,
    };
    if input.kind() == RAWSXP {
        from_bytes(input.bytes()?, origin)
    } else {
        let file = input.file()?;
        from_path(file.path, origin).map_err(|error| error.shown_as(file.shown))
    }
}

#[extendr]
fn rust_read_rprof(
    input: &Robj,
    name: &Robj,
    version: &Robj,
    uri: &Robj,
    max_memory: &Robj,
) -> Robj {
    outcome(|pair| {
        let (profile, problems) = read(
            input,
            [name, uri, max_memory],
            |path, origin| rprof::read_path(path, origin, &stop),
            |bytes, origin| rprof::read(bytes, origin, &stop),
        )?;
        let version = text_argument(version)?;
        to_r::put_result(pair, VALUE, &profile, &problems, version, &stop)
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
    outcome(|pair| {
        let (profile, problems) = read(
            input,
            [name, uri, max_memory],
            |path, origin| pprof::read_path(path, origin, &stop),
            |bytes, origin| pprof::read(bytes, origin, &stop),
        )?;
        let version = text_argument(version)?;
        to_r::put_result(pair, VALUE, &profile, &problems, version, &stop)
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
    outcome(|pair| {
        let (mut profile, mut problems) = read(
            input,
            [name, uri, max_memory],
            |path, origin| otlp::read_path(path, origin, &stop),
            |bytes, origin| otlp::read(bytes, origin, &stop),
        )?;
        if argument(payload).flag()? {
            let name = owned(text_argument(name)?, "a name")?;
            let uri = argument(uri).owned_text()?;
            (profile, problems) = read_payload(profile, name, uri, memory_limit(max_memory)?)?;
        }
        let version = text_argument(version)?;
        to_r::put_result(pair, VALUE, &profile, &problems, version, &stop)
    })
}

/// The pprof file that the only profile of a file was made of.
fn read_payload(
    profile: Profile,
    name: String,
    uri: Option<String>,
    max_memory: Option<u64>,
) -> Result<(Profile, Problems)> {
    let count = profile.sources.len();
    let source = profile.sources.into_iter().next();
    match source.and_then(|source| source.payload) {
        Some(payload) if count == 1 && payload.format == "pprof" => {
            let origin = Origin {
                name: message!("The original payload of {name}"),
                uri,
                written: None,
                stored: payload.bytes.len() as u64,
                max_memory,
            };
            pprof::read(payload.bytes.as_slice(), origin, &stop)
        }
        Some(payload) if count == 1 => Err(Error::Unsupported(message!(
            "The original payload of {name} has the format `{}`; only `pprof` can be read.",
            payload.format
        ))),
        _ => Err(Error::Unsupported(message!(
            "{name} is not one profile with its original payload."
        ))),
    }
}

#[extendr]
fn rust_read_profile(
    input: &Robj,
    name: &Robj,
    version: &Robj,
    uri: &Robj,
    max_memory: &Robj,
) -> Robj {
    outcome(|pair| {
        let (profile, problems) = read(
            input,
            [name, uri, max_memory],
            |path, origin| read::read_path(path, origin, &stop),
            |bytes, origin| read::read_bytes(bytes, origin, &stop),
        )?;
        let version = text_argument(version)?;
        to_r::put_result(pair, VALUE, &profile, &problems, version, &stop)
    })
}

// Gives what the file could not take.
#[extendr]
fn rust_write_rprof(x: &Robj, file: &Robj) -> Robj {
    outcome(|pair| {
        let profile = from_r::profile(argument(x), &stop)?;
        let report = write(file, |path| rprof::write_path(&profile, path, &stop))?;
        put_losses(
            pair,
            VALUE,
            &[
                (c"assumed_intervals", report.assumed_intervals),
                (c"rounded_intervals", report.rounded_intervals),
                (c"rounded_counts", report.rounded_counts),
                (c"rounded_figures", report.rounded_figures),
                (c"partial_figures", report.partial_figures),
                (c"empty_samples", report.empty_samples),
                (c"lost_lines", report.lost_lines),
                (c"changed_names", report.changed_names),
            ],
        )
    })
}

/// What a file could not take: a list of counts.
fn put_losses(parent: Slots, slot: usize, losses: &[(&CStr, usize)]) -> Result<()> {
    let names = losses.iter().map(|(name, _)| *name).try_vec("names")?;
    let counts = parent.list(slot, &names)?;
    for (slot, (_, count)) in losses.iter().enumerate() {
        counts.doubles(slot, 1)?[0] = *count as f64;
    }
    Ok(())
}

// Gives what the file could not take.
#[extendr]
fn rust_write_pprof(x: &Robj, file: &Robj, aggregate: &Robj, sources: &Robj) -> Robj {
    outcome(|pair| {
        let profile = from_r::profile(argument(x), &stop)?;
        let options = pprof::WriteOptions {
            aggregate: argument(aggregate).flag()?,
            sources: argument(sources).flag()?,
        };
        let report = write(file, |path| {
            pprof::write_path(&profile, &options, path, &stop)
        })?;
        put_losses(
            pair,
            VALUE,
            &[
                (c"untold_sources", report.untold_sources),
                (c"other_labels", report.other_labels),
                (c"lines_without_function", report.lines_without_function),
                (c"periods", report.untold.periods),
                (c"times", report.untold.times),
                (c"durations", report.untold.durations),
            ],
        )
    })
}

/// The options of a list of `aggregate`, `json`, `payload` (flags), `keys` and `values`
/// (texts).
fn otlp_options(profile: &Profile, list: Sexp) -> Result<otlp::WriteOptions> {
    let field = |name: &str| {
        let missing = || Error::Unsupported(message!("No option `{name}`."));
        list.named(name)?.ok_or_else(missing)
    };
    let mut resource = Vec::new();
    for (key, value) in field("keys")?
        .elements()?
        .iter()
        .zip(field("values")?.elements()?)
    {
        let text = |text: &Sexp| owned(text.text()?.unwrap_or_default(), "attributes");
        resource.try_push((text(key)?, text(value)?), "attributes")?;
    }
    let payload = match field("payload")?.flag()? {
        true => Some(pprof_payload(profile)?),
        false => None,
    };
    Ok(otlp::WriteOptions {
        aggregate: field("aggregate")?.flag()?,
        json: field("json")?.flag()?,
        resource,
        payload,
    })
}

/// The profile as the pprof file that says most of it.
fn pprof_payload(profile: &Profile) -> Result<Payload> {
    let options = pprof::WriteOptions {
        aggregate: false,
        sources: false,
    };
    let mut bytes = Vec::new();
    gzip::compress(&mut Growing(&mut bytes), |out| {
        pprof::write(profile, &options, out, &stop).map(|_| ())
    })?;
    Ok(Payload {
        format: owned("pprof", "a payload")?,
        bytes,
    })
}

/// What a message of OpenTelemetry could not take.
fn put_otlp_losses(parent: Slots, slot: usize, report: &otlp::Report) -> Result<()> {
    put_losses(
        parent,
        slot,
        &[
            (c"periods", report.periods),
            (c"times", report.times),
            (c"durations", report.durations),
        ],
    )
}

// Gives what the file could not take.
#[extendr]
fn rust_write_otlp(x: &Robj, file: &Robj, options: &Robj, gzip: &Robj) -> Robj {
    outcome(|pair| {
        let profile = from_r::profile(argument(x), &stop)?;
        let options = otlp_options(&profile, argument(options))?;
        let gzip = argument(gzip).flag()?;
        let report = write(file, |path| {
            otlp::write_path(&profile, &options, path, gzip, &stop)
        })?;
        put_otlp_losses(pair, VALUE, &report)
    })
}

// Gives `list(message, losses)`: a raw vector, and what it could not take.
#[extendr]
fn rust_otlp_message(x: &Robj, options: &Robj) -> Robj {
    outcome(|pair| {
        let profile = from_r::profile(argument(x), &stop)?;
        let options = otlp_options(&profile, argument(options))?;
        let mut message = Vec::new();
        let report = otlp::write(&profile, &options, &mut Growing(&mut message), &stop)?;
        let result = pair.list(VALUE, &[c"message", c"losses"])?;
        result.bytes(0, message.len())?.copy_from_slice(&message);
        put_otlp_losses(result, 1, &report)
    })
}

// What a server answered: gives `list(read, rejected, message)`, where `read` is
// whether the answer to a request that succeeded is as it should be.
#[extendr]
fn rust_otlp_answer(body: &Robj, coding: &Robj, success: &Robj) -> Robj {
    outcome(|pair| {
        let body = argument(body).bytes()?;
        let coding = match text_argument(coding)? {
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
        let answer = pair.list(VALUE, &[c"read", c"rejected", c"message"])?;
        answer.logicals(0, 1)?[0] = i32::from(accepted.is_some());
        let accepted = accepted.unwrap_or_default();
        answer.doubles(1, 1)?[0] = accepted.rejected as f64;
        answer.strings(2, &[&accepted.message], &[0])
    })
}

// Gives the tables of the version that `version` names, from the other one.
#[extendr]
fn rust_convert(x: &Robj, version: &Robj) -> Robj {
    outcome(|pair| {
        let version = text_argument(version)?;
        let x = argument(x);
        let profile = match version {
            "2.0" => from_r::recorded(x, &stop)?,
            _ => from_r::profile(x, &stop)?,
        };
        to_r::put_tables(pair, VALUE, &profile, &Problems::default(), version, &stop)
    })
}

#[extendr]
fn rust_validate(x: &Robj) -> Robj {
    outcome(|_| from_r::check(argument(x), &stop))
}

// Gives `list(by_function, by_line)`; `sample_type` is one of them, or NULL for the
// one that counts samples.
#[extendr]
fn rust_summarise(x: &Robj, sample_type: &Robj) -> Robj {
    outcome(|pair| {
        let profile = from_r::profile(argument(x), &stop)?;
        let wanted = argument(sample_type).text()?;
        to_r::put_summaries(pair, VALUE, &profile, wanted, &stop)
    })
}

// Gives one tibble with a row for each frame of each sample.
#[extendr]
fn rust_frames(x: &Robj) -> Robj {
    outcome(|pair| {
        let profile = from_r::profile(argument(x), &stop)?;
        to_r::put_flat(pair, VALUE, &profile, &stop)
    })
}

// Gives a word for what a file looks like, empty if that is none of the formats that are
// read here.
#[extendr]
fn rust_file_format(file: &Robj) -> Robj {
    outcome(|pair| {
        let file = argument(file).file()?;
        let origin = Origin {
            name: written(format_args!("`{}`", file.shown), "a name")?,
            ..Origin::default()
        };
        let format = read::format_of_path(file.path, origin);
        let format = match format.map_err(|error| error.shown_as(file.shown))? {
            Some(Format::Rprof) => "rprof",
            Some(Format::Pprof) => "pprof",
            Some(Format::Otlp) => "otlp",
            None => "",
        };
        pair.strings(VALUE, &[format], &[0])
    })
}

// Gives `list(tables, dotted)`: every table of version "2.0" without rows, and
// what may stand beside them.
#[extendr]
fn rust_schema() -> Robj {
    outcome(|pair| {
        let both = pair.list(VALUE, &[c"tables", c"dotted"])?;
        to_r::put_schema(both, 0, V2)?;
        to_r::put_schema(both, 1, DOTTED)
    })
}

// Gives one vector: the ids of all `columns`, which are those of the tables in
// `from`, under their names in `to`; NA where a table has no such id.
#[extendr]
fn rust_remap(columns: &Robj, from: &Robj, to: &Robj, table: &Robj) -> Robj {
    outcome(|pair| {
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
        let name = text_argument(table)?;
        let table = V2.iter().chain(DOTTED).find(|table| table.name == name);
        let table = table.ok_or_else(|| Error::Unsupported(message!("No table `{name}`.")))?;
        remap(&all, table, pair.integers(VALUE, rows)?, &stop)
    })
}

// Gives `list(samples, outermost, depths, loose)`: what the filters leave, and the
// rows of `sample_locations` that are no longer inlined. `matches`: for each filter
// that is asked for, by its name, which rows of `locations` match; `drops`: such
// vectors without names; `drop_of_source`: which of them holds for each source.
#[extendr]
fn rust_filter(x: &Robj, matches: &Robj, drops: &Robj, drop_of_source: &Robj) -> Robj {
    outcome(|pair| {
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
        let names = [c"samples", c"outermost", c"depths", c"loose"];
        let slots = pair.list(VALUE, &names)?;
        let left = Left {
            samples: slots.logicals(0, tables.sample_id.len())?,
            outermost: slots.logicals(1, tables.sample_id.len())?,
            depths: slots.integers(2, tables.frame_sample.len())?,
        };
        let loose = filter(&tables, &filters, left, &stop)?;
        let rows = slots.integers(3, loose.len())?;
        for (slot, row) in rows.iter_mut().zip(loose) {
            *slot = row as i32 + 1;
        }
        Ok(())
    })
}

/// What the sampler must know: of a list of `path`, `megabytes`, `closures`,
/// `node_stack` and `sizes_tell`.
fn settings(list: &Robj) -> Result<sampler::Settings<'_>> {
    let list = argument(list);
    let field = |name: &str| {
        let missing = || Error::Unsupported(message!("No setting `{name}`."));
        list.named(name)?.ok_or_else(missing)
    };
    let count = |name: &str| {
        let number = field(name)?.integers()?.first().copied();
        Ok::<_, Error>(number.and_then(|n| usize::try_from(n).ok()).unwrap_or(0))
    };
    Ok(sampler::Settings {
        file: field("path")?.file()?.path,
        bytes: count("megabytes")? << 20,
        closures: count("closures")?,
        node_stack: field("node_stack")?.flag()?,
        sizes_tell: field("sizes_tell")?.flag()?,
    })
}

// Whether native code can be profiled here: an error says why not.
#[extendr]
fn rust_joint_check(list: &Robj) -> Robj {
    outcome(|_| {
        let settings = settings(list)?;
        sampler::check(&settings)?;
        let file = argument(list).named("path")?;
        let shown = file
            .map(|file| file.file())
            .transpose()?
            .map(|file| file.shown);
        let target = joint::check_target(settings.file);
        target.map_err(|error| error.shown_as(shown.unwrap_or_default()))
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
        Ok(())
    })
}

// R's profiler is on, it writes to the file of the settings, and SIGPROF is held back.
#[extendr]
fn rust_joint_start(list: &Robj) -> Robj {
    outcome(|_| {
        let settings = settings(list)?;
        let file = argument(list).named("path")?.map(Sexp::file).transpose()?;
        let shown = file.map_or("", |file| file.shown);
        sampler::start(&settings).map_err(|error| error.shown_as(shown))
    })
}

// Gives a word.
#[extendr]
fn rust_joint_state() -> Robj {
    outcome(|pair| {
        let state = match sampler::state() {
            sampler::State::Off => "off",
            sampler::State::On => "on",
            sampler::State::Replaced => "replaced",
            sampler::State::Restarted => "restarted",
            sampler::State::Elsewhere => "elsewhere",
        };
        pair.strings(VALUE, &[state], &[0])
    })
}

// R's profiler is off, its file is complete, and SIGPROF is held back.
#[extendr]
fn rust_joint_stop(file: &Robj, name: &Robj, uri: &Robj, memory: &Robj) -> Robj {
    outcome(|pair| {
        let origin = Origin {
            name: owned(text_argument(name)?, "a name")?,
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
        to_r::put_result(pair, VALUE, &profile, &problems, "2.0", &stop)
    })
}

// R's profiler is off. Forgets what was recorded.
#[extendr]
fn rust_joint_drop() -> Robj {
    outcome(|_| {
        drop(sampler::stop());
        Ok(())
    })
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
