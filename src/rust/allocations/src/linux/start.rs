//! The start and the end of a recording.

use super::cost::Cost;
use super::hook;
use super::identity::Identity;
use super::learn::{Events, Way};
use super::module::Module;
use super::result::Stopped;
use super::run::{self, Run, with_run};
use super::sites::Sites;
use super::state::{
    FREE, GETRUSAGE, MALLOC, SITE, SIZE, THREAD, leave_forks_alone, mark, pin, this_thread,
};
use super::sums::Sums;
use super::table::Replaced;
use crate::Settings;
use profile_core::error::{Error, Result};
use profile_core::message;
use profile_core::model::Profile;
use profile_reader::process::{Process, ProcessMemory};
use profile_reader::record::samples::Stacks;
use profile_reader::record::session::open_reader;
use profile_reader::stack::innermost::Seen;
use profile_reader::stack::reader::{Motion, StackReader};
use profile_runtime::memory::Mapping;
use std::process;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// What [`look`] has seen. Only R's thread uses it.
static SEEN: Mutex<Option<Seen>> = Mutex::new(None);

/// Notes which variables of R may have the position of the innermost function. Byte code has called native code that calls
/// this: another function than the one for [`prepare`].
pub fn look() -> Result<()> {
    let mut seen = Seen::default();
    open()?.0.find_positions(&mut seen)?;
    if let Ok(mut last) = SEEN.lock() {
        *last = Some(seen);
    }
    Ok(())
}

/// A reader of this process, and its mappings.
fn open() -> Result<(StackReader<ProcessMemory>, Vec<Mapping>)> {
    let process = Process::find(i32::try_from(process::id()).unwrap_or(0))?;
    let mappings = process.mappings()?;
    Ok((open_reader(&process, &mappings)?, mappings))
}

/// Starts to learn. Byte code has called native code that calls this, and next allocates and then copies one vector of the
/// size [`Settings::probe`], and collects garbage once while R measures the time of collections.
pub fn prepare(settings: Settings) -> Result<()> {
    if is_on() {
        return Err(Error::Unsupported(message!(
            "Allocations are recorded already."
        )));
    }
    abandon();
    let module = Module::of_r()?;
    let malloc = Replaced::find(&module, "malloc", hook::malloc_address())?;
    let free = Replaced::find(&module, "free", hook::free_address())?;
    let getrusage = Replaced::find(&module, "getrusage", hook::getrusage_address()).ok();
    let (mut reader, mappings) = open()?;
    reader.use_plain_names();
    let seen = SEEN.lock().ok().and_then(|mut seen| seen.take());
    let positions = reader.find_positions(&mut seen.unwrap_or_default())?;
    let identity = Identity::new(reader.r(), positions)?;
    reader.find_span(&mappings)?;
    if reader.read(Motion::Asleep)?.is_none() {
        let why = reader.why_missing()?;
        return Err(Error::Unsupported(message!(
            "R's calls cannot be read: {why}."
        )));
    }
    pin();
    leave_forks_alone();
    MALLOC.store(malloc.original, Ordering::Release);
    FREE.store(free.original, Ordering::Release);
    if let Some(getrusage) = &getrusage {
        GETRUSAGE.store(getrusage.original, Ordering::Release);
    }
    mark(0);
    SITE.store(0, Ordering::Release);
    SIZE.store(settings.probe, Ordering::Release);
    THREAD.store(this_thread(), Ordering::Release);
    run::set(Box::new(Run {
        settings,
        malloc,
        free,
        getrusage,
        identity,
        span: reader.span_at(),
        reader,
        memory: ProcessMemory::new(i32::try_from(process::id()).unwrap_or(0)),
        sites: Sites::new(),
        events: Events::default(),
        clock_events: Events::default(),
        clock: None,
        began: None,
        way: Way::default(),
        stacks: Stacks::default(),
        sums: Sums::default(),
        profile: Profile::default(),
        lost: 0,
        cost: Cost::default(),
    }));
    let replaced = with_run(|run| {
        run.malloc.replace()?;
        run.getrusage.as_ref().map_or(Ok(()), Replaced::replace)
    });
    replaced.unwrap_or(Ok(())).inspect_err(|_| abandon())
}

/// Begins to record, if the first vectors have shown how.
pub fn begin() -> Result<()> {
    let way = with_run(|run| {
        let way = run.events.way()?;
        run.way = way;
        run.clock = run.clock_events.clock();
        run.free.replace()?;
        SIZE.store(run.settings.threshold, Ordering::Release);
        SITE.store(way.site, Ordering::Release);
        Ok(())
    });
    let way = way.unwrap_or_else(|| Err(Error::Unsupported(message!("Nothing is prepared."))));
    way.inspect_err(|_| abandon())
}

/// Whether allocations are recorded by this process, and R's table still has the hook.
pub fn is_on() -> bool {
    let is_there = with_run(|run| run.malloc.is_there() && run.free.is_there());
    SITE.load(Ordering::Acquire) != 0 && is_there.unwrap_or(false)
}

/// Ends the recording.
pub fn stop() -> Option<Stopped> {
    let is_on = SITE.load(Ordering::Acquire) != 0;
    let run = take()?;
    let Run {
        sums,
        profile,
        reader,
        lost,
        cost,
        ..
    } = *run;
    let time = cost.nanoseconds();
    is_on.then(|| Stopped::new(sums, profile, reader.into_texts(), lost, time))
}

/// Restores R's table, and discards what was recorded.
pub fn abandon() {
    take();
}

/// Restores R's table, and returns the run; `None` in a fork.
fn take() -> Option<Box<Run>> {
    let thread = THREAD.swap(0, Ordering::AcqRel);
    SITE.store(0, Ordering::Release);
    SIZE.store(usize::MAX, Ordering::Release);
    let run = run::take()?;
    run.malloc.restore();
    run.free.restore();
    if let Some(getrusage) = &run.getrusage {
        getrusage.restore();
    }
    (thread != 0).then_some(run)
}
