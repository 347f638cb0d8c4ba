//! Entry points that read and write files, and exchange messages with servers.

use crate::arena::RObject;
use crate::argument::{argument, text};
use crate::files;
use crate::guard::stop;
use crate::options::{WriterOptions, page, writer};
use crate::outcome::outcome;
use crate::pool::pooled;
use crate::progress::stop_and_report;
use crate::{from_r, to_r};
use extendr_api::prelude::{Robj, extendr, extendr_module};
use profile_core::analysis::frame_names::FrameNames;
use profile_core::analysis::groups::By;
use profile_core::analysis::runs;
use profile_core::analysis::source_facts::sampled_seconds;
use profile_core::formats::Writer;
use profile_core::formats::otlp::response::{self, Accepted, Coding};
use profile_core::formats::payload::read_payload;
use profile_core::io::save;
use profile_core::io::source_file::{Found, Places, Wanted};
use profile_core::limits::memory::Growing;
use std::time::UNIX_EPOCH;

// `input` is a result of `profile_input()` in R/read.R. `format` is the name of a format; if it is
// empty, the format is detected. `payload`: whether to read the original payload of the profile in
// the file instead. `lazy`: whether columns of samples are computed when their values are needed. `report` is an R
// function that is called with the numbers of bytes that were read and that the file has, or NULL.
#[extendr]
fn rust_read(
    input: &Robj,
    format: &Robj,
    version: &Robj,
    payload: &Robj,
    lazy: &Robj,
    report: &Robj,
) -> Robj {
    outcome(|arena| {
        let format = files::format(text(format)?)?;
        let (mut profile, mut problems) = files::read(input, format, argument(report))?;
        if argument(payload).flag()? {
            (profile, problems) = read_payload(profile, files::origin(input)?, &stop)?;
        }
        let version = text(version)?;
        let lazy = argument(lazy).flag()?;
        to_r::result(arena, &profile, &problems, version, lazy, &stop)
    })
}

// Writes a file in a format, see `writer()` in options.rs. Returns the information that could not be
// stored in it. `report` is as for `rust_read()`.
#[extendr]
fn rust_write(x: &Robj, file: &Robj, format: &Robj, options: &Robj, report: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let options = WriterOptions {
            profile: &profile,
            list: options,
        };
        let writer = writer(text(format)?, &options)?;
        let losses = files::write(file, &profile, &*writer, argument(report))?;
        to_r::losses(arena, &losses)
    })
}

// Writes a profile in a format, see `writer()` in options.rs. Returns `list(bytes, losses)`, with the content of the file as a raw vector.
#[extendr]
fn rust_written(x: &Robj, format: &Robj, options: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let options = WriterOptions {
            profile: &profile,
            list: options,
        };
        let writer = writer(text(format)?, &options)?;
        let mut bytes = Vec::new();
        let losses = writer.write(&profile, &mut Growing(&mut bytes), &stop)?;
        let losses = to_r::losses(arena, &losses)?;
        arena.list(&[("bytes", arena.bytes(&bytes)?), ("losses", losses)])
    })
}

// Writes a page of one profile, or of a profile and its base. `file` is NULL for a page that is returned as a raw vector.
//
// `content` is an R function that returns the options of the page, see `options::page()`. It gets
// `list(seconds, runs)`: the sampled time of each source and, if `compares`, the result of `rust_runs()` by function, else
// NULL. R determines by these which source files have changed and which functions differ, and the tables cross the
// border only once. `report` is as for `rust_read()`.
#[extendr]
fn rust_page(profiles: &Robj, compares: &Robj, file: &Robj, content: &Robj, report: &Robj) -> Robj {
    outcome(|arena| {
        let report = argument(report);
        let stop = stop_and_report(report, || None);
        let profile = pooled(arena, argument(profiles).elements()?, &stop)?;
        let figures = if argument(compares).flag()? {
            let names = FrameNames::new(&profile)?;
            let runs = runs::by_run(&profile, &names, None, By::Function, &stop)?;
            to_r::runs(arena, &runs)?
        } else {
            RObject::null()
        };
        let seconds = sampled_seconds(&profile)?;
        let known = arena.list(&[("seconds", arena.numbers(&seconds)?), ("runs", figures)])?;
        let options = arena.call(argument(content), known)?;
        let page = page(options.read())?;
        if !argument(file).strings()?.is_empty() {
            files::write(file, &profile, &page, report)?;
            return Ok(RObject::null());
        }
        let mut bytes = Vec::new();
        page.write(&profile, &mut Growing(&mut bytes), &stop)?;
        arena.bytes(&bytes)
    })
}

// Raises an error if a file cannot be written.
#[extendr]
fn rust_check_target(file: &Robj) -> Robj {
    outcome(|_| {
        let file = argument(file).file()?;
        save::check(file.path).map_err(|error| error.shown_as(file.shown))?;
        Ok(RObject::null())
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
        let accepted = if argument(success).flag()? {
            response::accepted(body, coding)?
        } else {
            Some(Accepted {
                rejected: 0,
                message: response::failure(body, coding)?,
            })
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

// Finds and reads a source file that a profile names, see the core's `source_file`. `file` and `directories` are paths
// as R would open them. `anywhere`: whether files outside of the working directory and of these directories may be
// read. `wanted`: "source" for source code, or "description" for the file `DESCRIPTION` of a package. Returns
// `list(bytes, modified, elsewhere)`; `bytes` is NULL if no file was read, and `elsewhere` is `TRUE` if that is because
// it is outside.
#[extendr]
fn rust_source_file(file: &Robj, directories: &Robj, anywhere: &Robj, wanted: &Robj) -> Robj {
    outcome(|arena| {
        let directories = argument(directories).paths()?;
        let places = Places::new(&directories, argument(anywhere).flag()?)?;
        let wanted = match text(wanted)? {
            "description" => Wanted::Description,
            _ => Wanted::Source,
        };
        let mut found = Found::Nothing;
        for path in argument(file).paths()? {
            found = places.find(path, wanted)?;
        }
        let elsewhere = arena.flag(found == Found::Elsewhere)?;
        let Found::Text { bytes, modified } = found else {
            return arena.list(&[("elsewhere", elsewhere)]);
        };
        let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = modified.map_or(f64::NAN, |time| time.as_secs_f64());
        arena.list(&[
            ("bytes", arena.bytes(&bytes)?),
            ("modified", arena.number(modified)?),
            ("elsewhere", elsewhere),
        ])
    })
}

extendr_module! {
    mod reading_and_writing;
    fn rust_read;
    fn rust_write;
    fn rust_written;
    fn rust_page;
    fn rust_check_target;
    fn rust_source_file;
    fn rust_otlp_answer;
}
