//! Describes a running process as a source of the profile, and how it was recorded.

use crate::process::Process;
use crate::record::cpu_clock::Balance;
use crate::recorded::settings::Settings;
use crate::recorded::source::{TYPES, attribute, bare_source, own_source, utc};
use profile_core::analysis::cpu_clock;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::TryGrow;
use profile_core::message;
use profile_core::model::{
    Attribute, PROCESS_CREATION, PROCESS_PROGRAM, PROCESS_SCRIPT, Profile, Source, SourceKind,
    ValueKind,
};

/// The source of a process that is recorded by reading its memory.
pub fn source(process: &Process, settings: &Settings, profile: &mut Profile) -> Result<Source> {
    let interval = settings.interval.as_nanos() as f64;
    let mut source = own_source(process.pid, settings.clock, interval, &TYPES, profile)?;
    if !settings.own {
        add_names(process, &mut source, profile)?;
    }
    add_start(process, &mut source, profile)?;
    Ok(source)
}

/// The source of a process of which something else is recorded than samples of its time.
pub fn process_source(
    process: &Process,
    kind: SourceKind,
    profile: &mut Profile,
) -> Result<Source> {
    let mut source = bare_source(process.pid, profile)?;
    source.kind = kind;
    add_names(process, &mut source, profile)?;
    add_start(process, &mut source, profile)?;
    Ok(source)
}

/// The names of the program and of its script. The other parts of the command line may contain secrets.
fn add_names(process: &Process, source: &mut Source, profile: &mut Profile) -> Result<()> {
    let names = [
        (PROCESS_PROGRAM, process.program()?),
        (PROCESS_SCRIPT, process.script_name()?),
    ];
    for (key, name) in names {
        if let Some(name) = name {
            let attribute = attribute(key, ValueKind::String, &name, profile)?;
            source.attributes.try_push(attribute)?;
        }
    }
    Ok(())
}

fn add_start(process: &Process, source: &mut Source, profile: &mut Profile) -> Result<()> {
    if let Some(start) = process.start() {
        let start = utc(start);
        let attribute = attribute(PROCESS_CREATION, ValueKind::String, &start, profile)?;
        source.attributes.try_push(attribute)?;
    }
    Ok(())
}

/// Adds the process ID to an error about the contents of a process.
pub fn of_process(pid: i32, error: Error) -> Error {
    match error {
        Error::Process(why) => Error::Process(message!("Cannot look into process {pid}. {why}")),
        other => other,
    }
}

/// How often a process was stopped, how long in total, and for the longest time. The durations are in nanoseconds.
pub fn about_pauses(pauses: &[u32], profile: &mut Profile) -> Result<[Attribute; 3]> {
    let longest = pauses.iter().copied().max().unwrap_or(0);
    let total: u64 = pauses.iter().copied().map(u64::from).sum();
    let mut number =
        |key, value: u64| attribute(key, ValueKind::Int, &message!("{value}"), profile);
    Ok([
        number("profile.pauses", pauses.len() as u64)?,
        number("profile.pauses.total", total)?,
        number("profile.pauses.longest", longest.into())?,
    ])
}

/// The number of ticks at which a process computed, its CPU time by the clock, and the factor between both; and CPU time
/// during parts of the recording in which it computed at no tick; how long it waited for a processor, and how long its
/// cgroup was throttled. Times are in nanoseconds.
pub fn about_cpu(
    balance: Balance,
    delayed: Option<u64>,
    throttled: Option<u64>,
    profile: &mut Profile,
) -> Result<Vec<Attribute>> {
    let int = |value: u64| (ValueKind::Int, message!("{value}"));
    let factor = || (ValueKind::Double, message!("{}", balance.factor));
    let all = [
        Some((cpu_clock::TICKS, int(balance.ticks))),
        balance.clock.map(|clock| (cpu_clock::CLOCK, int(clock))),
        balance.clock.map(|_| (cpu_clock::FACTOR, factor())),
        (balance.missed > 0).then(|| ("profile.cpu.missed", int(balance.missed))),
        delayed.map(|time| (cpu_clock::DELAY, int(time))),
        throttled
            .filter(|time| *time > 0)
            .map(|time| (cpu_clock::THROTTLED, int(time))),
    ];
    let mut about = Vec::new();
    for (key, (kind, text)) in all.into_iter().flatten() {
        about.try_push(attribute(key, kind, &text, profile)?)?;
    }
    Ok(about)
}
