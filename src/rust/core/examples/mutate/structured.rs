//! Mutants of the structure of JSON and of lines of text, for each reader of such a format.
//!
//! The result of reading must be a valid profile: ids are in range, values are finite. Each writer writes it or returns
//! an error; its output contains no infinite number, and JSON output is valid. Work is bounded: readers and writers
//! check regularly whether they should stop, and are stopped after a large number of checks.

use super::tree::Tree;
use super::{Random, is_small, lines, origin, pages};
use profile_core::analysis::frame_names::FrameNames;
use profile_core::analysis::groups::By;
use profile_core::analysis::summary::summarise;
use profile_core::error::Error;
use profile_core::formats::{
    self, Format, Input, Writer, callgrind, collapsed, cpuprofile, firefox, otlp, pprof, rprof,
    speedscope,
};
use profile_core::io::gzip::Content;
use profile_core::io::input::Source;
use profile_core::model::Profile;
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

type Checked = std::result::Result<(), String>;

/// The maximum number of elements of an array in a seed.
const LONGEST: usize = 40;
/// The number of lines in a seed.
const LINES: usize = 60;
/// The number of times that a reader or writer may check whether it should stop.
const PATIENCE: u64 = 200_000;

const RPROFMEM: &str =
    "192 :\"f\" \"g\" \n360 :360 :\"g\" \nnew page:\"f\" \n8048 :\"<Anonymous>\" \"f\" \n";
const PERF: &str = "R 1/2 [003] 4.500000:     250000 cpu-clock:u: \n\t    55d0 Rf_eval+0x12 (/usr/lib/R/lib/libR.so)\n\t    55d4 f (inlined)\n  a.c:12\n\n\
                    R 1 5.1: 1 cycles: \n\t7f0 [unknown] ([kernel.kallsyms])\n\n";

/// A format, and the seeds of its mutants.
pub struct Subject {
    pub format: &'static Format,
    seeds: Vec<Seed>,
    pub mutants: u64,
    pub read: u64,
    pub failed: u64,
}

enum Seed {
    Json(Tree),
    Text(Vec<u8>),
}

/// All formats of JSON and text, with seeds of the package's tests.
pub fn subjects(files: &[PathBuf]) -> Vec<Subject> {
    // All but pprof are text, at least in one of their forms.
    let is_read = |format: &Format| format.read.is_some() || format.read_as.is_some();
    let is_text = |format: &&Format| is_read(format) && **format != pprof::FORMAT;
    let mut subjects: Vec<Subject> = formats::FORMATS
        .iter()
        .copied()
        .filter(is_text)
        .map(|format| Subject {
            format,
            seeds: Vec::new(),
            mutants: 0,
            read: 0,
            failed: 0,
        })
        .collect();
    let mut texts: Vec<Vec<u8>> = [RPROFMEM, PERF].map(|text| text.as_bytes().to_vec()).into();
    for path in files {
        let Some(bytes) = whole(path) else {
            continue;
        };
        let read = formats::read(Input::Bytes(&bytes), None, origin(), &|| false);
        if let Some((profile, _)) = read.ok().filter(|_| bytes.len() < 1 << 20) {
            let written = writers().into_iter().filter_map(|(name, writer)| {
                if name == "rprof" && !is_small(&profile) {
                    return None;
                }
                let mut out = Vec::new();
                let result = writer.write(&profile, &mut out, &|| false);
                result.ok().filter(|_| out.len() < 1 << 20).map(|_| out)
            });
            texts.extend(written);
        }
        texts.push(bytes);
    }
    for text in texts {
        let found = formats::format_of(Input::Bytes(&text), origin());
        let found = found.ok().flatten().map(|format| format.name);
        let subject = subjects.iter_mut().find(|s| Some(s.format.name) == found);
        let Some(subject) = subject else {
            continue;
        };
        match Tree::parse(&text, LONGEST) {
            Some(tree) => subject.seeds.push(Seed::Json(tree)),
            None if subject.format.name != otlp::FORMAT.name => {
                let lines: Vec<_> = text.split(|&byte| byte == b'\n').take(LINES).collect();
                subject.seeds.push(Seed::Text(lines.join(&b'\n')));
            }
            None => {}
        }
    }
    for (format, data) in pages::FORMATS {
        let tree = Tree::parse(data.as_bytes(), LONGEST);
        let subject = subjects.iter_mut().find(|s| s.format == format);
        if let (Some(subject), Some(tree)) = (subject, tree) {
            subject.seeds = vec![Seed::Json(tree)];
        }
    }
    for subject in &subjects {
        assert!(
            !subject.seeds.is_empty(),
            "no seed of {}",
            subject.format.name
        );
    }
    subjects
}

/// The decompressed bytes of a file.
fn whole(path: &Path) -> Option<Vec<u8>> {
    let bytes = fs::read(path).ok()?;
    let mut plain = Vec::new();
    let mut content = Content::new(Source::Bytes(&bytes)).ok()?;
    std::io::Read::read_to_end(&mut content, &mut plain).ok()?;
    Some(plain)
}

impl Subject {
    pub fn mutant(&self, random: &mut Random) -> Vec<u8> {
        match &self.seeds[random.below(self.seeds.len())] {
            Seed::Json(tree) => {
                let mut tree = tree.clone();
                tree.mutate(random);
                let mut text = String::new();
                tree.write(&mut text);
                pages::with_data(self.format, text)
            }
            Seed::Text(text) => lines::mutate(text, random),
        }
    }

    /// Reads a mutant, and checks the result. The error describes the check that failed.
    pub fn examine(&mut self, bytes: &[u8]) -> Checked {
        self.mutants += 1;
        let stop = Patience::default();
        let read = formats::read(Input::Bytes(bytes), Some(self.format), origin(), &|| {
            stop.is_over()
        });
        match read {
            Ok((profile, _)) => {
                self.read += 1;
                check_profile(&profile)?;
                check_writers(&profile)
            }
            Err(Error::Interrupted) => Err("reading does not end".to_owned()),
            Err(error) => check_error(&error),
        }
    }
}

/// Counts the checks for a stop.
#[derive(Default)]
struct Patience(Cell<u64>);

impl Patience {
    fn is_over(&self) -> bool {
        self.0.set(self.0.get() + 1);
        self.0.get() > PATIENCE
    }
}

fn writers() -> Vec<(&'static str, Box<dyn Writer>)> {
    let otlp = |json| otlp::Writer {
        json,
        aggregate: json,
        ..Default::default()
    };
    vec![
        ("rprof", Box::new(rprof::Writer)),
        ("pprof", Box::new(pprof::Writer::default())),
        ("OTLP", Box::new(otlp(false))),
        ("OTLP as JSON", Box::new(otlp(true))),
        ("collapsed", Box::new(collapsed::Writer::default())),
        ("callgrind", Box::new(callgrind::Writer)),
        ("speedscope", Box::new(speedscope::Writer::default())),
        ("cpuprofile", Box::new(cpuprofile::Writer)),
        ("firefox", Box::new(firefox::Writer::default())),
    ]
}

fn check_error(error: &Error) -> Checked {
    let text = error.to_string();
    match error {
        Error::Parse { .. }
        | Error::Foreign(_)
        | Error::Budget { .. }
        | Error::Unsupported(_)
        | Error::Lossy(_)
            if text.len() < 2000 =>
        {
            Ok(())
        }
        _ => Err(format!("an unexpected error: {text:.200}")),
    }
}

fn check_profile(profile: &Profile) -> Checked {
    let rows = profile.samples.len();
    let ensure = |holds: bool, what: &str| {
        if holds {
            Ok(())
        } else {
            Err(format!("the profile is not valid: {what}"))
        }
    };
    ensure(profile.samples.source.len() == rows, "sources of samples")?;
    ensure(profile.samples.stack.len() == rows, "stacks of samples")?;
    let sources = profile.samples.source.iter();
    let mut sources = sources.map(|source| source.row());
    ensure(sources.all(|row| row < profile.sources.len()), "a source")?;
    let mut stacks = profile.samples.stack.iter().map(|stack| stack.row());
    ensure(stacks.all(|row| row < profile.stacks.len()), "a stack")?;
    for values in &profile.values {
        ensure(values.column.len() == rows, "the length of a column")?;
        let mut column = values.column.iter();
        ensure(
            column.all(|value| !value.is_infinite()),
            "an infinite value",
        )?;
        ensure(!values.type_.name.is_empty(), "a type without a name")?;
    }
    for stack in profile.stacks.ids() {
        let frames = profile.stacks.get(stack).to_vec().unwrap_or_default();
        let mut frames = frames.iter();
        ensure(
            frames.all(|id| id.row() < profile.locations.len()),
            "a location",
        )?;
    }
    for location in profile.locations.iter() {
        let function = location.function.map_or(0, |function| function.row() + 1);
        ensure(function <= profile.functions.len(), "a function")?;
        ensure(
            location
                .line
                .is_none_or(|line| i32::try_from(line).is_ok() || line != 0),
            "a line",
        )?;
    }
    for function in profile.functions.iter() {
        ensure(
            !profile.strings.get(function.name).is_empty(),
            "a function without a name",
        )?;
    }
    Ok(())
}

fn check_writers(profile: &Profile) -> Checked {
    for (name, writer) in writers() {
        // An Rprof file has a line for each counted sample.
        if name == "rprof" && !is_small(profile) {
            continue;
        }
        let stop = Patience::default();
        let mut out = Vec::new();
        match writer.write(profile, &mut out, &|| stop.is_over()) {
            Ok(_) => check_output(name, &out)?,
            Err(Error::Interrupted) => return Err(format!("writing {name} does not end")),
            Err(error) => check_error(&error).map_err(|why| format!("writing {name}: {why}"))?,
        }
    }
    let names = FrameNames::new(profile).map_err(|error| format!("names: {error}"))?;
    match summarise(profile, &names, By::Function, None, &|| false) {
        Ok(summary) => {
            let sums = summary.functions.values;
            let mut sums = sums.self_.iter().chain(&sums.total);
            if sums.all(|sum| sum.is_finite()) {
                Ok(())
            } else {
                Err("a sum is infinite".to_owned())
            }
        }
        Err(error) => check_error(&error).map_err(|why| format!("summary: {why}")),
    }
}

fn check_output(name: &str, out: &[u8]) -> Checked {
    let is_json = ["OTLP as JSON", "speedscope", "cpuprofile", "firefox"].contains(&name);
    if is_json && serde_json::from_slice::<serde_json::Value>(out).is_err() {
        return Err(format!("{name}: the output is no JSON"));
    }
    let numbers = out.split(|&byte| byte == b'\n');
    let last = numbers.filter_map(|line| line.rsplit(|&byte| byte == b' ').next());
    let is_infinite = |word: &[u8]| matches!(word, b"inf" | b"-inf" | b"NaN");
    if name == "collapsed" && last.into_iter().any(is_infinite) {
        Err(format!("{name}: an infinite number"))
    } else {
        Ok(())
    }
}
