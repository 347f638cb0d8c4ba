//! Reads arguments of entry points that are lists of options.

use crate::argument::{STRSXP, Sexp, argument, text};
use crate::guard::stop;
use extendr_api::Robj;
use profile_core::analysis::groups::By;
use profile_core::error::{Error, Result};
use profile_core::formats::payload::payload_of;
use profile_core::formats::{
    Writer, callgrind, collapsed, cpuprofile, firefox, otlp, pprof, rprof, speedscope,
};
use profile_core::limits::memory::{TryCollect, TryGrow, owned};
use profile_core::message;
use profile_core::model::Profile;
use profile_core::page::{Page, SourceText};
use profile_reader::recorder;
use profile_sampler as sampler;
use std::time::Duration;

/// The writer of a format, with the options in a list.
pub fn writer<'call>(
    profile: &Profile,
    format: &str,
    list: &'call Robj,
) -> Result<Box<dyn Writer + 'call>> {
    let flag = |name| option(list, name)?.flag();
    Ok(match format {
        "rprof" => Box::new(rprof::Writer),
        "pprof" => Box::new(pprof::Writer {
            aggregate: flag("aggregate")?,
            sources: flag("sources")?,
        }),
        "speedscope" => Box::new(speedscope::Writer {
            aggregate: option(list, "aggregate")?.optional_flag()?,
        }),
        "cpuprofile" => Box::new(cpuprofile::Writer),
        "firefox" => {
            let files = option(list, "files")?.texts()?.into_iter();
            let texts = files.zip(option(list, "texts")?.texts()?);
            let texts = texts.map(|(file, text)| firefox::Text { file, text });
            Box::new(firefox::Writer {
                texts: texts.try_vec("texts")?,
            })
        }
        "otlp" => Box::new(otlp_writer(profile, list)?),
        "collapsed" => Box::new(collapsed::Writer {
            type_: option(list, "type")?.text()?,
            frame_types: flag("frame_types")?,
        }),
        "callgrind" => Box::new(callgrind::Writer),
        "page" => Box::new(page(list)?),
        _ => return Err(Error::Unsupported(message!("No format `{format}`."))),
    })
}

/// The writer for a list of the options `aggregate`, `json`, `payload` (flags), `keys` and
/// `values` (lists of strings).
fn otlp_writer(profile: &Profile, list: &Robj) -> Result<otlp::Writer> {
    let mut resource = Vec::new();
    let keys = option(list, "keys")?.elements()?;
    for (key, value) in keys.iter().zip(option(list, "values")?.elements()?) {
        let text = |text: &Sexp| owned(text.text()?.unwrap_or_default(), "attributes");
        resource.try_push((text(key)?, text(value)?), "attributes")?;
    }
    let payload = match option(list, "payload")?.flag()? {
        true => Some(payload_of(profile, &stop)?),
        false => None,
    };
    Ok(otlp::Writer {
        aggregate: option(list, "aggregate")?.flag()?,
        json: option(list, "json")?.flag()?,
        resource,
        payload,
    })
}

/// The page for a list of the options `title`, `generator`, `template`, `style`, `script`,
/// `plumbing` (strings), `files`, `texts` and `changed` (for each
/// source file), `found` (names, or NULL), `sources` (a number) and `timeline` (a flag).
fn page(list: &Robj) -> Result<Page<'_>> {
    let text = |name| Ok::<_, Error>(option(list, name)?.text()?.unwrap_or_default());
    let files = option(list, "files")?.texts()?.into_iter();
    let texts = option(list, "texts")?.texts()?.into_iter();
    let changed = option(list, "changed")?.integers()?;
    let files = files.zip(texts).zip(changed);
    let file = |((name, text), &changed)| SourceText {
        name,
        text,
        changed: changed == 1,
    };
    let names = option(list, "found")?;
    let found = match names.kind() {
        STRSXP => Some(names.texts()?),
        _ => None,
    };
    Ok(Page {
        title: text("title")?,
        generator: text("generator")?,
        template: text("template")?,
        style: text("style")?,
        script: text("script")?,
        plumbing: text("plumbing")?,
        texts: files.map(file).try_vec("texts")?,
        sources: count(list, "sources")?,
        found,
        timeline: option(list, "timeline")?.flag()?,
    })
}

/// The settings of the sampler, and the path of its file as shown in messages, for a list of the options `path`,
/// `megabytes`, `closures`, `node_stack` and `lines_written_at_once`.
pub fn sampler_settings(list: &Robj) -> Result<(sampler::Settings<'_>, &str)> {
    let file = option(list, "path")?.file()?;
    let settings = sampler::Settings {
        file: file.path,
        bytes: count(list, "megabytes")? << 20,
        closures: count(list, "closures")?,
        node_stack: option(list, "node_stack")?.flag()?,
        lines_written_at_once: option(list, "lines_written_at_once")?.flag()?,
    };
    Ok((settings, file.shown))
}

/// The settings of the recorder for a list of the options `interval` and `seconds` (in seconds), `event` ("cpu" or
/// "wall"), `children`, `pause`, and `check`, which only tests disable.
pub fn recorder_settings(list: &Robj) -> Result<recorder::Settings> {
    let seconds = |name| -> Result<Duration> {
        let value = option(list, name)?.doubles()?.first().copied();
        let value = value.and_then(|value| Duration::try_from_secs_f64(value).ok());
        // An infinite number becomes a duration longer than any program runs.
        Ok(value.unwrap_or(Duration::from_secs(1 << 40)))
    };
    Ok(recorder::Settings {
        interval: seconds("interval")?,
        duration: seconds("seconds")?,
        event: match option(list, "event")?.text()? {
            Some("wall") => recorder::Event::Wall,
            _ => recorder::Event::Cpu,
        },
        children: option(list, "children")?.flag()?,
        pause: option(list, "pause")?.flag()?,
        check: option(list, "check")?.flag()?,
        own: false,
    })
}

/// What frames are grouped by: "function", "line" or "package".
pub fn groups(by: &Robj) -> Result<By> {
    Ok(match text(by)? {
        "line" => By::Line,
        "package" => By::Package,
        _ => By::Function,
    })
}

/// An element of a list. R code always passes all elements, so a missing one is an error.
pub fn option<'call>(list: &'call Robj, name: &str) -> Result<Sexp<'call>> {
    let missing = || Error::Unsupported(message!("No option `{name}`."));
    argument(list).named(name)?.ok_or_else(missing)
}

fn count(list: &Robj, name: &str) -> Result<usize> {
    let number = option(list, name)?.integers()?.first().copied();
    Ok(number.and_then(|n| usize::try_from(n).ok()).unwrap_or(0))
}
