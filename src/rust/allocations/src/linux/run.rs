//! A recording: from [`prepare`] to [`stop`].
//!
//! Only R's thread uses the run itself. Other threads, and forks of the process, see from two numbers that they are not it.

use super::hook;
use super::identity::Identity;
use super::learn::{Events, Way};
use super::module::Module;
use super::native::Frames;
use super::result::Stopped;
use super::sites::{Kind, Sites};
use super::sums::{Key, RowId, Sums};
use super::table::Replaced;
use crate::Settings;
use profile_core::error::{Error, Result};
use profile_core::message;
use profile_core::model::Profile;
use profile_reader::process::{Process, ProcessMemory};
use profile_reader::record::samples::Stacks;
use profile_reader::record::session::open_reader;
use profile_reader::stack::reader::{Motion, StackReader};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// The run, if there is one.
static RUN: AtomicPtr<Run> = AtomicPtr::new(std::ptr::null_mut());
/// The thread that runs R; 0 if nothing is recorded, and in forks.
pub(super) static THREAD: AtomicU64 = AtomicU64::new(0);
/// The address in R's allocator to which `malloc()` returns; 0 as long as it is unknown.
pub(super) static SITE: AtomicU64 = AtomicU64::new(0);
/// The smallest size of vectors that are recorded and, as long as the site is unknown, the only one.
pub(super) static SIZE: AtomicUsize = AtomicUsize::new(usize::MAX);

/// A recording, which R's thread owns.
pub struct Run {
    settings: Settings,
    malloc: Replaced,
    free: Replaced,
    reader: StackReader<ProcessMemory>,
    identity: Identity,
    span: Option<u64>,
    sites: Sites,
    events: Events,
    way: Way,
    stacks: Stacks,
    sums: Sums,
    profile: Profile,
    /// Vectors that could not be recorded.
    lost: u64,
}

/// Starts to learn. Byte code has called native code that calls this, and next allocates and then copies one vector of the
/// size [`Settings::probe`].
pub fn prepare(settings: Settings) -> Result<()> {
    if is_on() {
        return Err(Error::Unsupported(message!(
            "Allocations are recorded already."
        )));
    }
    abandon();
    let module = Module::of_r()?;
    let malloc = Replaced::find(&module, c"malloc", hook::malloc_address())?;
    let free = Replaced::find(&module, c"free", hook::free_address())?;
    let process = Process::find(i32::try_from(process::id()).unwrap_or(0))?;
    let mappings = process.mappings()?;
    let mut reader = open_reader(&process, &mappings)?;
    reader.use_plain_names();
    let positions = reader.find_positions()?;
    let identity = Identity::new(reader.r(), positions)?;
    reader.find_span(&mappings)?;
    if reader.read(Motion::Asleep)?.is_none() {
        let why = reader.why_missing()?;
        return Err(Error::Unsupported(message!("R's calls cannot be read: {why}.")));
    }
    hook::pin();
    hook::leave_forks_alone();
    hook::set_originals(malloc.original, free.original);
    let run = Box::new(Run {
        settings,
        malloc,
        free,
        identity,
        span: reader.span_at(),
        reader,
        sites: Sites::new(),
        events: Events::default(),
        way: Way::default(),
        stacks: Stacks::default(),
        sums: Sums::default(),
        profile: Profile::default(),
        lost: 0,
    });
    let run = Box::into_raw(run);
    RUN.store(run, Ordering::Release);
    SITE.store(0, Ordering::Release);
    SIZE.store(settings.probe, Ordering::Release);
    THREAD.store(hook::this_thread(), Ordering::Release);
    // SAFETY: it was created above, and this thread owns it.
    let replaced = unsafe { (*run).malloc.replace() };
    replaced.inspect_err(|_| abandon())
}

/// Begins to record, if the first vectors have shown how.
pub fn begin() -> Result<()> {
    let way = with_run(|run| {
        let way = run.events.way()?;
        run.way = way;
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
        ..
    } = *run;
    is_on.then(|| Stopped::new(sums, profile, reader.into_texts(), lost))
}

/// Restores R's table, and discards what was recorded.
pub fn abandon() {
    take();
}

/// Restores R's table, and returns the run.
fn take() -> Option<Box<Run>> {
    let thread = THREAD.swap(0, Ordering::AcqRel);
    SITE.store(0, Ordering::Release);
    SIZE.store(usize::MAX, Ordering::Release);
    let run = RUN.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if run.is_null() {
        return None;
    }
    // SAFETY: it was created from a box. R's thread is here, and not in the hook.
    let run = unsafe { Box::from_raw(run) };
    run.malloc.restore();
    run.free.restore();
    // A fork has no thread that is recorded.
    (thread != 0).then_some(run)
}

/// Whether the hook uses the run.
static IS_BUSY: AtomicBool = AtomicBool::new(false);

/// Passes the run, if there is one, and if this is R's thread. `None` inside of such a call.
pub(super) fn with_run<T>(use_it: impl FnOnce(&mut Run) -> T) -> Option<T> {
    let run = RUN.load(Ordering::Acquire);
    if run.is_null()
        || THREAD.load(Ordering::Acquire) != hook::this_thread()
        || IS_BUSY.swap(true, Ordering::AcqRel)
    {
        return None;
    }
    // SAFETY: R's thread owns it, and uses it only once at a time.
    let result = use_it(unsafe { &mut *run });
    IS_BUSY.store(false, Ordering::Release);
    Some(result)
}

impl Run {
    /// Adds a call of `malloc()` with the size of the probe.
    pub(super) fn learn(&mut self, stack_pointer: u64, site: u64) {
        self.events.add(&self.sites, stack_pointer, site);
    }

    /// Adds a vector that R's allocator has been given memory for.
    pub(super) fn allocate(&mut self, address: u64, bytes: u64, stack_pointer: u64) {
        // SAFETY: the word with the return address of R's allocator, which is on the stack while it waits for `malloc()`.
        let caller = unsafe { ((stack_pointer + self.way.to_caller) as *const u64).read() };
        let (site, sites) = (self.way.site, &self.sites);
        let known = sites.known(caller);
        let kind = known.unwrap_or_else(|| sites.kind_of(Frames::of_this_thread().from(site)));
        if known.is_none() {
            self.sites.keep(caller, kind);
        }
        // SAFETY: R's thread is in its allocator.
        let identity = unsafe { self.identity.of_stack(self.span) };
        let row = match self.sums.row_of(identity, kind) {
            Some(row) => Ok(Some(row)),
            None => self.read(identity, kind),
        };
        let added = row.and_then(|row| match row {
            Some(row) => self.sums.allocate(row, kind, address, bytes).map(|()| true),
            None => Ok(false),
        });
        self.lost += u64::from(!added.unwrap_or(false));
    }

    /// Reads the stack, which is new.
    fn read(&mut self, identity: u64, kind: Kind) -> Result<Option<RowId>> {
        if self.reader.read(Motion::Asleep)?.is_none() {
            return Ok(None);
        }
        let (stack, texts) = (self.reader.stack(), self.reader.texts());
        let (id, cut) = self.stacks.intern(stack, texts, &mut self.profile)?;
        let key = Key {
            stack: id,
            toplevel: stack.toplevel.filter(|_| cut.is_none()),
            span: stack.span,
            is_conversion: kind == Kind::Conversion,
        };
        self.sums.add_stack(identity, key).map(Some)
    }

    pub(super) fn free(&mut self, address: u64) {
        self.sums.free(address);
    }
}
