//! The start and the end of a recording.

use super::cost::Cost;
use super::counts::Counts;
use super::hook;
use super::identity::Identity;
use super::images::Images;
use super::learn::{Events, Way};
use super::memory::own_memory;
use super::module::Module;
use super::record::Writer;
use super::run::{self, Run, now, with_run};
use super::sites::Sites;
use super::state::{
    FREE, GETRUSAGE, MALLOC, SITE, SIZE, THREAD, follow_forks, is_fork, is_recorder, mark,
    pass_all_on, pin, this_thread,
};
use super::sums::Sums;
use super::table::Replaced;
use super::titles::Titles;
use crate::Settings;
use profile_core::error::{Error, Result};
use profile_core::message;
use profile_core::model::Strings;
use profile_reader::process::{Process, ProcessMemory};
use profile_reader::record::session::open_reader;
use profile_reader::stack::innermost::Seen;
use profile_reader::stack::reader::{Motion, StackReader};
use profile_runtime::memory::Mapping;
use std::path::Path;
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
/// size [`Settings::probe`], and collects garbage once while R measures the time of collections. `file` is created.
pub fn prepare(settings: Settings, file: &Path) -> Result<()> {
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
    let counts = Counts::create(file)?;
    let process = counts.add_process(now()).ok_or(Error::Memory)?;
    pin();
    is_recorder();
    follow_forks(settings.forks);
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
        counts,
        process,
        malloc,
        free,
        getrusage,
        identity,
        titles: Titles::new(settings.titled),
        span: reader.span_at(),
        reader,
        memory: own_memory(),
        sites: Sites::new(),
        events: Events::default(),
        clock_events: Events::default(),
        clock: None,
        began: None,
        way: Way::default(),
        sums: Sums::default(),
        writer: Writer::default(),
        written: 0,
        last_peak: 0,
        reasons: Strings::default(),
        images: settings.reader.map(|reader| Images::new(reader, file)),
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
    !is_fork() && SITE.load(Ordering::Acquire) != 0 && is_there.unwrap_or(false)
}

/// Ends the recording, after a garbage collection.
pub fn stop() {
    if SITE.load(Ordering::Acquire) != 0 && !is_fork() {
        with_run(|run| run.complete());
    }
    abandon();
}

/// Restores R's table, and forgets what was recorded, but for the file.
pub fn abandon() {
    THREAD.store(0, Ordering::Release);
    pass_all_on();
    let Some(run) = run::take() else {
        return;
    };
    run.malloc.restore();
    run.free.restore();
    if let Some(getrusage) = &run.getrusage {
        getrusage.restore();
    }
}
