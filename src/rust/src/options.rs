//! Reads arguments of entry points that are settings: of writers, recorders, filters and requests.

use crate::argument::{RAWSXP, SEXPTYPE, STRSXP, Sexp, VECSXP, argument, text};
use crate::guard::stop;
use extendr_api::Robj;
use profile_allocations as allocations;
use profile_core::analysis::frameworks::Frameworks;
use profile_core::analysis::groups::By;
use profile_core::error::{Error, Result};
use profile_core::formats::payload::payload_of;
use profile_core::formats::{self, Options, Writer};
use profile_core::limits::memory::TryCollect;
use profile_core::message;
use profile_core::model::titled::TITLED;
use profile_core::model::{Payload, Profile};
use profile_core::page::{self, Comparison, Page, Parallel, SourceText};
use profile_core::tables::{Filters, Matching, Plumbing, matching_locations};
use profile_reader::recorded::settings;
use profile_reader::recorded::waits::WaitNames;
use profile_sampler::{self as sampler, PositionVariables};
use std::time::Duration;

/// The writer of a format.
pub fn writer<'call>(
    format: &str,
    options: &'call WriterOptions<'call>,
) -> Result<Box<dyn Writer + 'call>> {
    let make = formats::named(format).and_then(|format| format.write);
    let unknown = || Error::Unsupported(message!("No format `{format}` that can be written."));
    make.ok_or_else(unknown)?(options)
}

/// The options of a writer in a list, and the profile that it writes.
pub struct WriterOptions<'call> {
    pub profile: &'call Profile,
    pub list: &'call Robj,
}

impl Options for WriterOptions<'_> {
    fn flag(&self, name: &str) -> Result<bool> {
        option(self.list, name)?.flag()
    }

    fn optional_flag(&self, name: &str) -> Result<Option<bool>> {
        option(self.list, name)?.optional_flag()
    }

    fn text(&self, name: &str) -> Result<Option<&str>> {
        option(self.list, name)?.text()
    }

    fn texts(&self, name: &str) -> Result<Vec<&str>> {
        option(self.list, name)?.texts()
    }

    fn payload(&self, name: &str) -> Result<Option<Payload>> {
        if self.flag(name)? {
            payload_of(self.profile, &stop).map(Some)
        } else {
            Ok(None)
        }
    }
}

/// The page for a list of `title`, `generator`, `template`, `style`, `script` (strings), `files`, `texts` and `changed`
/// (for each source file), `mine` (files), `found` (names, or NULL), `comparison` and `parallel` (lists, or NULL), `snapshot` (the
/// page of a snapshot, or NULL), `sources` (a number) and `options` (a list of flags).
pub fn page(list: Sexp<'_>) -> Result<Page<'_>> {
    let option = |name| option_of(list, name);
    let text = |name| Ok::<_, Error>(option(name)?.text()?.unwrap_or_default());
    let files = option("files")?.texts()?.into_iter();
    let texts = option("texts")?.texts()?.into_iter();
    let changed = option("changed")?.integers()?;
    let files = files.zip(texts).zip(changed);
    let file = |((name, text), &changed)| SourceText {
        name,
        text,
        changed: changed == 1,
    };
    let options = option("options")?;
    let names = option("found")?;
    let found = match names.kind() {
        STRSXP => Some(names.texts()?),
        _ => None,
    };
    let given = option("comparison")?;
    let comparison = match given.kind() {
        VECSXP => Some(comparison_of(given)?),
        _ => None,
    };
    let given = option("parallel")?;
    let parallel = match given.kind() {
        VECSXP => Some(parallel_of(given)?),
        _ => None,
    };
    let given = option("snapshot")?;
    let snapshot = match given.kind() {
        RAWSXP => Some(given.bytes()?),
        _ => None,
    };
    Ok(Page {
        title: text("title")?,
        generator: text("generator")?,
        template: text("template")?,
        style: text("style")?,
        script: text("script")?,
        mine: option("mine")?.texts()?,
        texts: files.map(file).try_vec()?,
        sources: count_of(option("sources")?)?,
        found,
        comparison,
        parallel,
        snapshot,
        options: page::Options::read(|name| option_of(options, name)?.flag())?,
    })
}

fn comparison_of(list: Sexp<'_>) -> Result<Comparison<'_>> {
    let text = |name| Ok::<_, Error>(option_of(list, name)?.text()?.unwrap_or_default());
    let texts = |name| option_of(list, name)?.texts();
    Ok(Comparison {
        head: text("head")?,
        whole: text("whole")?,
        verdict: text("verdict")?,
        notes: texts("notes")?,
        columns: texts("columns")?,
        cells: texts("cells")?,
        expression: texts("expression")?,
    })
}

fn parallel_of(list: Sexp<'_>) -> Result<Parallel<'_>> {
    let texts = |name| option_of(list, name)?.texts();
    Ok(Parallel {
        sentence: option_of(list, "sentence")?.text()?.unwrap_or_default(),
        columns: texts("columns")?,
        cells: texts("cells")?,
        notes: texts("notes")?,
    })
}

/// The settings of the sampler, and the path of its file as shown in messages, for a list of the options `path`,
/// `megabytes`, `native` and `positions` (flags), `closures`, `titled` and `version`, the first two numbers of R's version.
pub fn sampler_settings(
    list: &Robj,
    positions: Option<PositionVariables>,
) -> Result<(sampler::Settings<'_>, &str)> {
    let file = option(list, "path")?.file()?;
    let settings = sampler::Settings {
        file: file.path,
        bytes: count(list, "megabytes")? << 20,
        native: option(list, "native")?.flag()?,
        positions: if option(list, "positions")?.flag()? {
            positions
        } else {
            None
        },
        closures: count(list, "closures")?,
        hooks: allocations::hooks(),
        titled: titled_functions(option(list, "titled")?)?,
        version: r_version(list)?,
    };
    Ok((settings, file.shown))
}

/// The addresses of the functions of [`TITLED`], which are in a list in this order, or `NULL`.
pub fn titled_functions(list: Sexp) -> Result<[u64; TITLED.len()]> {
    let mut addresses = [0; TITLED.len()];
    for (address, function) in addresses.iter_mut().zip(list.elements()?) {
        if function.kind() == SEXPTYPE::CLOSXP {
            *address = function.address();
        }
    }
    Ok(addresses)
}

/// The settings of a recording of allocations for a list of the sizes `threshold` and `probe`, in bytes.
pub fn allocation_settings(list: &Robj) -> Result<allocations::Settings> {
    Ok(allocations::Settings {
        threshold: count(list, "threshold")?,
        probe: count(list, "probe")?,
        forks: option(list, "forks")?.flag()?,
        reader: option(list, "reader")?.integers()?.first().copied(),
        titled: titled_functions(option(list, "titled")?)?,
    })
}

fn r_version(list: &Robj) -> Result<(u32, u32)> {
    match *option(list, "version")?.integers()? {
        [major, minor] => Ok((major.unsigned_abs(), minor.unsigned_abs())),
        _ => Err(Error::Unsupported(message!("No version of R."))),
    }
}

/// The settings of the recorder for a list of the options `interval` and `seconds` (in seconds), `clock` ("cpu" or
/// "wall"), `children`, `pause` and `native`, which are flags.
pub fn recorder_settings(list: &Robj) -> Result<settings::Settings> {
    let seconds = |name| -> Result<Duration> {
        let value = option(list, name)?.doubles()?.first().copied();
        let value = value.and_then(|value| Duration::try_from_secs_f64(value).ok());
        // An infinite number becomes a duration longer than any program runs.
        Ok(value.unwrap_or(Duration::from_secs(1 << 40)))
    };
    Ok(settings::Settings {
        interval: seconds("interval")?,
        duration: seconds("seconds")?,
        clock: match option(list, "clock")?.text()? {
            Some("wall") => settings::Clock::Wall,
            _ => settings::Clock::Cpu,
        },
        children: option(list, "children")?.flag()?,
        pause: option(list, "pause")?.flag()?,
        native: option(list, "native")?.flag()?,
        names: WaitNames::Short,
        own: false,
        positions: option(list, "positions")?.flag()?,
    })
}

/// What the expressions of filters match: functions and mappings, by row.
pub struct Matches<'call> {
    /// For each requested filter, by its name, `list(functions, mappings)`.
    pub by_filter: Sexp<'call>,
    /// A list of such lists.
    pub drops: &'call [Sexp<'call>],
    /// Which of these applies to each source.
    pub drop_of_source: &'call [i32],
    /// The number of outermost frames to remove.
    pub outermost: Option<i32>,
    /// 1 for samples to keep, 0 for others; empty to keep all.
    pub samples: &'call [i32],
    /// Whether to leave out what frameworks add.
    pub plumbing: bool,
}

/// The same, by row of `locations`.
pub struct MatchingLocations<'call> {
    by_filter: Vec<(&'call str, Vec<i32>)>,
    drops: Vec<Vec<i32>>,
    frameworks: Option<Frameworks>,
    packages: Option<&'call Profile>,
}

impl<'call> Matches<'call> {
    /// From the list of `rust_filter()`.
    pub fn new(rules: &'call Robj) -> Result<Matches<'call>> {
        Ok(Matches {
            by_filter: option(rules, "matches")?,
            drops: option(rules, "drops")?.elements()?,
            drop_of_source: option(rules, "drop_of_source")?.integers()?,
            outermost: option(rules, "outermost")?.integers()?.first().copied(),
            samples: option(rules, "samples")?.integers()?,
            plumbing: option(rules, "plumbing")?.flag()?,
        })
    }

    /// `packages`: the profile in which packages are looked up, if they are.
    pub fn locations<'a>(
        &self,
        profile: &Profile,
        packages: Option<&'a Profile>,
    ) -> Result<MatchingLocations<'a>>
    where
        'call: 'a,
    {
        let locations = |found: &Sexp| {
            let rows = |name| {
                let rows = found.named(name)?;
                rows.map_or(Ok(&[] as &[i32]), |rows| rows.integers())
            };
            matching_locations(profile, rows("functions")?, rows("mappings")?)
        };
        let names = self.by_filter.names()?.into_iter();
        let by_filter = names.zip(self.by_filter.elements()?);
        let by_filter = by_filter.map(|(name, found)| Ok((name, locations(found)?)));
        Ok(MatchingLocations {
            by_filter: by_filter.try_vec_of()?,
            drops: self.drops.iter().map(locations).try_vec_of()?,
            frameworks: match self.plumbing {
                true => Some(Frameworks::new(packages.unwrap_or(profile))?),
                false => None,
            },
            packages,
        })
    }
}

impl MatchingLocations<'_> {
    pub fn filters<'a>(&'a self, matches: &'a Matches) -> Result<Filters<'a>> {
        let matching = |wanted| {
            let found = self.by_filter.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, rows)| Matching(rows))
        };
        let drops = self.drops.iter().map(|rows| Matching(rows));
        Ok(Filters {
            outermost: usize::try_from(matches.outermost.unwrap_or(0)).unwrap_or(0),
            samples: matches.samples,
            drop: drops.try_vec()?,
            drop_of_source: matches.drop_of_source,
            focus: matching("focus"),
            ignore: matching("ignore"),
            hide: matching("hide"),
            show: matching("show"),
            plumbing: self.frameworks.as_ref().map(|known| known as &dyn Plumbing),
            packages: self.packages,
            mine: matching("mine"),
            show_from: matching("show_from"),
            prune_from: matching("prune_from"),
        })
    }
}

/// What frames are grouped by: "function", "line", "file" or "package".
pub fn groups(by: &Robj) -> Result<By> {
    Ok(match text(by)? {
        "line" => By::Line,
        "file" => By::File,
        "package" => By::Package,
        _ => By::Function,
    })
}

/// An element of a list. R code always passes all elements, so a missing one is an error.
pub fn option<'call>(list: &'call Robj, name: &str) -> Result<Sexp<'call>> {
    option_of(argument(list), name)
}

/// The same, of any list.
fn option_of<'call>(list: Sexp<'call>, name: &str) -> Result<Sexp<'call>> {
    let missing = || Error::Unsupported(message!("No option `{name}`."));
    list.named(name)?.ok_or_else(missing)
}

fn count(list: &Robj, name: &str) -> Result<usize> {
    count_of(option(list, name)?)
}

fn count_of(number: Sexp) -> Result<usize> {
    let number = number.integers()?.first().copied();
    Ok(number.and_then(|n| usize::try_from(n).ok()).unwrap_or(0))
}
