//! Converts the data about running processes to R objects.

use super::result::{counts, tables};
use crate::arena::{Arena, RObject};
use crate::tibble::{NA, Tibble};
use profile_core::error::Result;
use profile_core::formats::problems::Problems;
use profile_core::limits::cancel::Stop;
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_core::message;
use profile_reader::heap::snapshot::Snapshot;
use profile_reader::recorded::dump::Dump;
use profile_reader::recorded::memory::{Cause, Ending, KILL, OfAlone, Peak, PeakSoFar};
use profile_reader::recorded::result::{Ended, Listed, Members, Recorded};
use profile_reader::recorded::states::State;
use profile_reader::stack::frames::{Frame, Package};

/// `list(tables, counts, unread, traced, unstopped, why_unstopped, pauses, ended, left, programs, starts, refused,
/// refused_roles, refusals, left_out, left_out_roles, date, cpu, endings, tracks)`: `counts` contains the problems of stacks, `pauses`
/// how long processes were stopped each time, in seconds, `left` the processes that executed other programs, and `programs`
/// their names; `starts` the sources that are only the start of a program; `refused` the processes into which this one may
/// not look, `refusals` why; `left_out` are the processes that were too many; `date` and `cpu` are
/// readings of the CPU clock of the process that asked for the recording, in nanoseconds; `tracks` is described below.
pub fn recorded<'call>(
    arena: Arena<'call>,
    recorded: &Recorded,
    lazy: bool,
    stop: Stop,
) -> Result<RObject<'call>> {
    let problems = &recorded.problems;
    let pauses = recorded.pauses.iter().map(|&pause| f64::from(pause) / 1e9);
    let pauses = pauses.try_vec()?;
    let readings = || recorded.readings.iter();
    let unstopped = recorded.why_unstopped.as_deref().into_iter();
    let dates = readings().map(|reading| reading.date as f64).try_vec()?;
    let cpu = readings().map(|reading| reading.cpu as f64).try_vec()?;
    let refused = recorded.refused.iter().map(|(pid, _, _)| *pid);
    let roles = recorded.refused.iter().map(|(_, role, _)| role.as_str());
    let refusals = recorded.refused.iter().map(|(_, _, why)| why.as_str());
    let left_out = recorded.left_out.iter().map(|(pid, _)| *pid);
    let left_out_roles = recorded.left_out.iter().map(|(_, role)| role.as_str());
    let starts = recorded.starts.iter().map(|start| start.row() as i32 + 1);
    let left = recorded.left.iter().map(|(pid, _)| *pid);
    let programs = recorded.left.iter().map(|(_, program)| program.as_str());
    let tables = tables(arena, &recorded.profile, problems, "2.0", lazy, stop)?;
    arena.list(&[
        ("tables", tables),
        ("counts", counts(arena, problems)?),
        ("unread", arena.number(recorded.unread as f64)?),
        ("traced", arena.number(recorded.traced as f64)?),
        ("unstopped", arena.number(recorded.unstopped as f64)?),
        ("why_unstopped", arena.texts(&unstopped.try_vec()?)?),
        ("pauses", arena.numbers(&pauses)?),
        ("ended", arena.integer_vector(&recorded.ended)?),
        ("left", arena.integer_vector(&left.try_vec()?)?),
        ("programs", arena.texts(&programs.try_vec()?)?),
        ("starts", arena.integer_vector(&starts.try_vec()?)?),
        ("refused", arena.integer_vector(&refused.try_vec()?)?),
        ("refused_roles", arena.texts(&roles.try_vec()?)?),
        ("refusals", arena.texts(&refusals.try_vec()?)?),
        ("left_out", arena.integer_vector(&left_out.try_vec()?)?),
        ("left_out_roles", arena.texts(&left_out_roles.try_vec()?)?),
        ("date", arena.numbers(&dates)?),
        ("cpu", arena.numbers(&cpu)?),
        (
            "endings",
            endings(arena, recorded.endings.iter().map(of_ended))?,
        ),
        ("tracks", tracks(arena, recorded)?),
    ])
}

/// `list(source, master, first, runs, state, times, began, interval, processors)`: what each process did at each tick. `source`,
/// `master`, `first` and `runs` have an element for each process: its source, the process to which it belongs (0 if none),
/// the number of ticks before its first one, and the number of its runs of equal ticks. `state` and `times` have an element
/// for each run: what it did, and the number of ticks. `began` is when the recording began, in seconds since
/// 1970, and `interval` the time between two ticks, in seconds.
fn tracks<'call>(arena: Arena<'call>, recorded: &Recorded) -> Result<RObject<'call>> {
    let all = || recorded.tracks.iter();
    let runs = || all().flat_map(|one| &one.track.runs);
    let whole = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let source = all().map(|one| one.source.row() as i32 + 1).try_vec()?;
    let master = all().map(|one| one.master).try_vec()?;
    let first = all().map(|one| whole(one.track.first)).try_vec()?;
    let count = all().map(|one| whole(one.track.runs.len())).try_vec()?;
    let state = runs().map(|(at, _)| i32::from(at.code())).try_vec()?;
    let times = runs().map(|(_, ticks)| whole(*ticks as usize)).try_vec()?;
    arena.list(&[
        ("source", arena.integer_vector(&source)?),
        ("master", arena.integer_vector(&master)?),
        ("first", arena.integer_vector(&first)?),
        ("runs", arena.integer_vector(&count)?),
        ("state", arena.integer_vector(&state)?),
        ("times", arena.integer_vector(&times)?),
        ("began", arena.number(recorded.began as f64 / 1e9)?),
        ("interval", arena.number(recorded.interval.as_secs_f64())?),
        (
            "processors",
            arena.number(recorded.processors.unwrap_or(f64::NAN))?,
        ),
    ])
}

fn of_ended(ended: &Ended) -> (i32, &str, &Ending) {
    (ended.pid, &ended.role, &ended.ending)
}

/// A row for each process that has not ended as usual, with its id and role, empty if there is none.
pub fn endings<'call, 'e>(
    arena: Arena<'call>,
    endings: impl Iterator<Item = (i32, &'e str, &'e Ending)> + Clone,
) -> Result<RObject<'call>> {
    let all = || endings.clone().map(|(_, _, ending)| ending);
    let bytes = |number: Option<u64>| number.map_or(f64::NAN, |number| number as f64);
    let cause = |ending: &Ending| match ending.cause {
        Cause::Killed => "killed",
        Cause::KilledOnMachine => "machine",
        Cause::KilledInGroup => "cgroup",
        Cause::Signal(_) => "signal",
    };
    let signal = |ending: &Ending| match ending.cause {
        Cause::Signal(number) => number,
        Cause::Killed | Cause::KilledOnMachine => KILL,
        Cause::KilledInGroup => NA,
    };
    let words = all().map(Ending::in_words).try_vec()?;
    let mut table = Tibble::new(arena, words.len())?;
    table.texts("end", words.iter().map(|words| Some(words.as_str())))?;
    table.integers("pid", endings.clone().map(|(pid, _, _)| pid))?;
    table.texts("role", endings.clone().map(|(_, role, _)| Some(role)))?;
    table.texts("cause", all().map(|ending| Some(cause(ending))))?;
    table.integers("signal", all().map(signal))?;
    table.logicals(
        "for_memory",
        all().map(|ending| Some(ending.is_for_memory())),
    )?;
    table.doubles("limit", all().map(|ending| bytes(ending.limit)))?;
    table.doubles("used", all().map(|ending| bytes(ending.used)))?;
    table.doubles("available", all().map(|ending| bytes(ending.available)))?;
    table.finish()
}

/// Rows of `.source_attributes` about the threads of a process: `key`, `value` and `type`.
pub fn thread_facts<'call>(arena: Arena<'call>, seen: Option<&OfAlone>) -> Result<RObject<'call>> {
    let facts = match seen {
        Some(seen) => seen.threads.facts()?,
        None => Vec::new(),
    };
    let mut table = Tibble::new(arena, facts.len())?;
    table.texts("key", facts.iter().map(|fact| Some(fact.0.as_str())))?;
    table.texts("value", facts.iter().map(|fact| Some(fact.2.as_str())))?;
    table.texts("type", facts.iter().map(|fact| Some(fact.1.name())))?;
    table.finish()
}

/// A row for each process whose memory is watched.
pub fn peaks_so_far<'call>(arena: Arena<'call>, peaks: &[PeakSoFar]) -> Result<RObject<'call>> {
    let mut table = Tibble::new(arena, peaks.len())?;
    table.integers("pid", peaks.iter().map(|peak| peak.pid))?;
    table.doubles("resident", peaks.iter().map(|peak| peak.resident as f64))?;
    table.doubles("highest", peaks.iter().map(|peak| peak.highest as f64))?;
    table.doubles("taken", peaks.iter().map(|peak| peak.taken as f64))?;
    table.doubles("snapshots", peaks.iter().map(|peak| peak.snapshots as f64))?;
    table.finish()
}

/// `list(peaks, snapshots, errors, endings)`: a row, the tables of a snapshot or NULL, and a text, empty if there is none,
/// for each process.
pub fn peaks<'call>(
    arena: Arena<'call>,
    peaks: &[Peak],
    lazy: bool,
    stop: Stop,
) -> Result<RObject<'call>> {
    let so_far = peaks.iter().map(|peak| peak.so_far).try_vec()?;
    let mut snapshots = Vec::new();
    let mut errors = Vec::new();
    let mut ended = Vec::new();
    for peak in peaks {
        let snapshot = match &peak.snapshot {
            Some(profile) => tables(arena, profile, &Problems::default(), "2.0", lazy, stop)?,
            None => RObject::null(),
        };
        snapshots.try_push(("", snapshot))?;
        let error = peak.error.as_ref().map(|error| message!("{error}"));
        errors.try_push(error.unwrap_or_default())?;
        if let Some(ending) = &peak.ending {
            ended.try_push((peak.so_far.pid, "", ending))?;
        }
    }
    let errors = errors.iter().map(String::as_str).try_vec()?;
    arena.list(&[
        ("peaks", peaks_so_far(arena, &so_far)?),
        ("snapshots", arena.list(&snapshots)?),
        ("errors", arena.texts(&errors)?),
        ("endings", endings(arena, ended.iter().copied())?),
    ])
}

/// The tables of a snapshot.
pub fn heap<'call>(
    arena: Arena<'call>,
    heap: &Snapshot,
    lazy: bool,
    stop: Stop,
) -> Result<RObject<'call>> {
    tables(
        arena,
        &heap.profile,
        &Problems::default(),
        "2.0",
        lazy,
        stop,
    )
}

/// `list(frames, toplevel, labels, is_cut, pid, state, unknown, signal, system_call, command, start, children)`: `frames` is a
/// tibble, innermost frame first; `toplevel` is a tibble with the place where the outermost function was called, if it
/// is known; `unknown` is R, if the layout of its contexts is unknown; it,
/// `signal` and `system_call` are empty if there is none.
pub fn dump<'call>(arena: Arena<'call>, dump: &Dump) -> Result<RObject<'call>> {
    let frames = || dump.stack.frames.iter();
    let mut table = Tibble::new(arena, dump.stack.frames.len())?;
    table.texts(
        "name",
        frames().map(|frame| Some(dump.texts.get(frame.name))),
    )?;
    let places = || frames().map(|frame| frame.place);
    table.texts(
        "filename",
        places().map(|place| place.map(|place| dump.texts.get(place.file))),
    )?;
    table.integers(
        "line",
        places().map(|place| place.map_or(NA, |place| place.line)),
    )?;
    let package = |frame: &Frame| match frame.package {
        Package::Named(name) => Some(dump.texts.get(name)),
        Package::Unknown | Package::None => None,
    };
    table.texts("package", frames().map(package))?;
    let toplevel = dump.stack.toplevel;
    let mut called_from = Tibble::new(arena, usize::from(toplevel.is_some()))?;
    called_from.texts(
        "filename",
        toplevel
            .iter()
            .map(|place| Some(dump.texts.get(place.file))),
    )?;
    called_from.integers("line", toplevel.iter().map(|place| place.line))?;
    let label = |part: fn(&(String, String)) -> &String| {
        let texts = dump.labels.iter().map(move |label| part(label).as_str());
        texts.try_vec()
    };
    let labels = arena.list(&[
        ("keys", arena.texts(&label(|(key, _)| key)?)?),
        ("values", arena.texts(&label(|(_, value)| value)?)?),
    ])?;
    let optional = |text: Option<&str>| arena.texts(&text.into_iter().try_vec()?);
    arena.list(&[
        ("frames", table.finish()?),
        ("toplevel", called_from.finish()?),
        ("labels", labels),
        ("is_cut", arena.flag(dump.stack.cut.is_some())?),
        ("pid", arena.integer_vector(&[dump.pid])?),
        ("state", arena.text(dump.state)?),
        ("unknown", optional(dump.unknown.as_deref())?),
        ("signal", optional(dump.signal)?),
        ("system_call", optional(dump.system_call)?),
        (
            "waits_for",
            optional(dump.wait.as_ref().map(|wait| wait.kind.name()))?,
        ),
        (
            "waits_for_name",
            optional(dump.wait.as_ref().and_then(|wait| wait.name.as_deref()))?,
        ),
        ("command", arena.text(&dump.command)?),
        ("start", arena.number(dump.start.unwrap_or(f64::NAN))?),
        ("children", arena.integer_vector(&dump.children)?),
    ])
}

/// `list(members, left_out)`: a row for each process, and the number of those that are missing.
pub fn members<'call>(arena: Arena<'call>, members: &Members) -> Result<RObject<'call>> {
    let mut table = Tibble::new(arena, members.pids.len())?;
    table.integers("pid", members.pids.iter().copied())?;
    table.texts("role", members.roles.iter().map(Option::as_deref))?;
    arena.list(&[
        ("members", table.finish()?),
        ("left_out", arena.number(members.left_out as f64)?),
    ])
}

/// A row for each process.
pub fn processes<'call>(arena: Arena<'call>, processes: &[Listed]) -> Result<RObject<'call>> {
    let all = || processes.iter();
    let mut table = Tibble::new(arena, processes.len())?;
    table.integers("pid", all().map(|process| process.pid))?;
    table.texts(
        "state",
        all().map(|process| process.state.map(State::in_a_word)),
    )?;
    let seconds = |time: Option<u64>| time.map_or(f64::NAN, |time| time as f64 / 1e9);
    table.doubles("cpu_time", all().map(|process| seconds(process.cpu_time)))?;
    table.doubles(
        "start",
        all().map(|process| process.start.unwrap_or(f64::NAN)),
    )?;
    table.texts("script", all().map(|process| process.script.as_deref()))?;
    table.texts(
        "command",
        all().map(|process| Some(process.command.as_str())),
    )?;
    table.finish()
}
