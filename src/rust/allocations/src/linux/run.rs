//! What a recording has, and what it does with each vector. Only R's thread uses it: other threads, and forks of the process,
//! see from a number that they are not it.

use super::cost::{Cost, nanoseconds_since};
use super::holders;
use super::identity::{Identity, OF_FINALIZER};
use super::learn::{Clock, Events, Side, Way};
use super::memory::OwnMemory;
use super::native::{Frames, find_in_registers};
use super::sites::{Kind, Sites};
use super::state::{MARK, SITE, SIZE, is_r_thread};
use super::sums::{Key, RowId, Sums};
use super::table::Replaced;
use crate::Settings;
use profile_core::error::Result;
use profile_core::model::{FINALIZER, Profile};
use profile_reader::process::ProcessMemory;
use profile_reader::record::samples::Stacks;
use profile_reader::stack::reader::{Motion, StackReader};
use profile_runtime::memory::{self, MEMORY_PAGE};
use profile_runtime::node::Node;
use profile_runtime::objects::DATA;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Instant;

/// The run, if there is one.
static RUN: AtomicPtr<Run> = AtomicPtr::new(std::ptr::null_mut());
/// Whether the hook uses it.
static IS_BUSY: AtomicBool = AtomicBool::new(false);

/// A recording, which R's thread owns.
pub struct Run {
    pub settings: Settings,
    pub malloc: Replaced,
    pub free: Replaced,
    /// If R calls it through its table, the time of garbage collections is known.
    pub getrusage: Option<Replaced>,
    pub reader: StackReader<ProcessMemory>,
    /// For addresses that may be invalid.
    pub memory: ProcessMemory,
    pub identity: Identity,
    pub span: Option<u64>,
    pub sites: Sites,
    pub events: Events,
    pub clock_events: Events,
    pub clock: Option<Clock>,
    /// When the current garbage collection began.
    pub began: Option<Instant>,
    pub way: Way,
    pub stacks: Stacks,
    pub sums: Sums,
    pub profile: Profile,
    /// Vectors that could not be recorded.
    pub lost: u64,
    pub cost: Cost,
}

/// Sets the run.
pub fn set(run: Box<Run>) {
    IS_BUSY.store(false, Ordering::Release);
    RUN.store(Box::into_raw(run), Ordering::Release);
}

/// Notes how finalizers are recognized: the one that calls this runs.
pub fn see_finalizer() {
    let frames = Frames::of_this_thread();
    // SAFETY: R calls this.
    with_run(|run| unsafe { run.identity.learn_finalizer(frames.all()) });
}

/// Vectors that are allocated from now on are not recorded, but which ones are freed is.
pub fn stop_adding() {
    SIZE.store(usize::MAX, Ordering::Release);
}

/// Removes the run.
pub fn take() -> Option<Box<Run>> {
    let run = RUN.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: it was created from a box. R's thread is here, and not in the hook.
    (!run.is_null()).then(|| unsafe { Box::from_raw(run) })
}

/// Passes the run, if there is one, and if this is R's thread. `None` inside of such a call.
pub fn with_run<T>(use_it: impl FnOnce(&mut Run) -> T) -> Option<T> {
    let run = RUN.load(Ordering::Acquire);
    if run.is_null() || !is_r_thread() || IS_BUSY.swap(true, Ordering::AcqRel) {
        return None;
    }
    // SAFETY: R's thread owns it, and uses it only once at a time.
    let run = unsafe { &mut *run };
    // A panic must not cross R's frames.
    let result = catch_unwind(AssertUnwindSafe(|| use_it(run)));
    if result.is_err() {
        SITE.store(0, Ordering::Release);
        SIZE.store(usize::MAX, Ordering::Release);
    }
    IS_BUSY.store(false, Ordering::Release);
    result.ok()
}

/// Whether there is a vector at an address for which R's allocator takes so many bytes.
fn is_vector(memory: &mut ProcessMemory, address: u64, bytes: u64) -> bool {
    if address % 8 != 0 || address < MEMORY_PAGE {
        return false;
    }
    memory::array::<DATA>(memory, address).is_some_and(|header| {
        let node = Node::new(&header);
        // The length may have any value.
        node.data() > 0 && node.data().checked_add(DATA as u64) == Some(bytes)
    })
}

impl Run {
    /// Adds a call of `malloc()` with the size of the probe.
    pub fn learn(&mut self, stack_pointer: u64, site: u64) {
        self.events.add(&self.sites, stack_pointer, site);
    }

    /// Adds a vector that R's allocator has been given memory for.
    pub fn allocate(&mut self, address: u64, bytes: u64, stack_pointer: u64) {
        let start = self.cost.begin();
        // SAFETY: the word with the return address of R's allocator, which is on the stack while it waits for `malloc()`.
        let caller = unsafe { ((stack_pointer + self.way.to_caller) as *const u64).read() };
        let kind = match self.sites.known(caller) {
            Some(kind) => kind,
            None => self.timed(|run| run.look_up(caller)),
        };
        // SAFETY: R's thread is in its allocator.
        let identity = unsafe {
            if self.identity.is_in_finalizer() {
                OF_FINALIZER
            } else {
                self.identity
                    .of_stack(self.span, MARK.load(Ordering::Relaxed))
            }
        };
        let row = match self.sums.row_of(identity, kind) {
            Some(row) => Ok(Some(row)),
            None if identity == OF_FINALIZER => self.add_finalizer(kind).map(Some),
            None => self.timed(|run| run.read(identity, kind)),
        };
        if kind == Kind::Copy {
            if let Ok(Some(row)) = row {
                if self.sums.asks_why(row) {
                    let _ = self.timed(|run| run.explain(row, bytes));
                }
            }
        }
        let added = row.and_then(|row| match row {
            Some(row) => self.sums.allocate(row, kind, address, bytes).map(|()| true),
            None => Ok(false),
        });
        self.lost += u64::from(!added.unwrap_or(false));
        self.cost.end(start);
    }

    /// Does what takes longer than an ordinary event.
    fn timed<T>(&mut self, work: impl FnOnce(&mut Run) -> T) -> T {
        let start = Instant::now();
        let result = work(self);
        self.cost.add(start);
        result
    }

    /// The kind of vectors that this caller of R's allocator allocates now, and later.
    fn look_up(&mut self, caller: u64) -> Kind {
        let frames = Frames::of_this_thread();
        let kind = self.sites.kind_of(frames.from(self.way.site));
        self.sites.keep(caller, kind);
        kind
    }

    /// Adds the stack of finalizers. The calls that the garbage collection interrupts are not their callers.
    fn add_finalizer(&mut self, kind: Kind) -> Result<RowId> {
        let none = self.profile.strings.intern("")?;
        let frame = self.profile.frame(FINALIZER, none, 0)?;
        let key = Key {
            stack: self.profile.stacks.intern(&[frame])?,
            toplevel: None,
            span: None,
            is_conversion: kind == Kind::Conversion,
            mark: 0,
        };
        self.sums.add_stack(OF_FINALIZER, key)
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
            mark: MARK.load(Ordering::Relaxed),
        };
        self.sums.add_stack(identity, key).map(Some)
    }

    /// Looks for what refers to the object that is copied into a vector of this size. If it is not found, nothing is said.
    fn explain(&mut self, row: RowId, bytes: u64) -> Result<()> {
        let memory = &mut self.memory;
        let mut is_object = |address| is_vector(memory, address, bytes);
        let object = find_in_registers(self.way.site, self.sites.copying(), &mut is_object);
        let Some(object) = object else {
            return Ok(());
        };
        // SAFETY: R's thread is in its allocator, and the object is one that it copies.
        let mut own = unsafe { OwnMemory::new() };
        if let Some(reason) = holders::reason(&mut own, self.reader.r(), object)? {
            let reason = self.profile.strings.intern(&reason)?;
            self.sums.explain(row, reason);
        }
        Ok(())
    }

    /// Adds a call of `getrusage()`, which may be the start or the end of a garbage collection.
    pub fn look_at_clock(&mut self, stack_pointer: u64, site: u64) {
        if self.way.site == 0 {
            self.clock_events.add(&self.sites, stack_pointer, site);
            return;
        }
        let Some(clock) = self.clock else {
            return;
        };
        // SAFETY: of the call that R waits for.
        match unsafe { clock.side(stack_pointer, site) } {
            Some(Side::Start) => self.began = Some(Instant::now()),
            Some(Side::End) => {
                if let Some(began) = self.began.take() {
                    self.timed(|run| run.sums.share(nanoseconds_since(began)));
                }
            }
            None => {}
        }
    }

    pub fn free(&mut self, address: u64) {
        let start = self.cost.begin();
        self.sums.free(address);
        self.cost.end(start);
    }
}
