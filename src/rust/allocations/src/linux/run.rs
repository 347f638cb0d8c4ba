//! What a recording has, and what it does with each vector. Only R's thread uses it: other threads, and forks of the process,
//! see from a number that they are not it.

use super::cost::{Cost, nanoseconds_since};
use super::counts::{Counts, ProcessId};
use super::hash;
use super::holders;
use super::identity::{Identity, OF_FINALIZER};
use super::images::{Images, Pending};
use super::learn::{Clock, Events, Side, Way};
use super::memory::{OwnMemory, own_memory};
use super::native::{Frames, find_in_registers};
use super::record::{About, Writer};
use super::sites::{Kind, Sites};
use super::state::{MARK, SIZE, has_forked, is_r_thread, pass_all_on};
use super::sums::{RowId, Sums};
use super::table::Replaced;
use super::titles::Titles;
use crate::Settings;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::model::{FINALIZER, Strings};
use profile_reader::process::ProcessMemory;
use profile_reader::record::samples::{INNER, MOST_STACKS};
use profile_reader::stack::frames::{Frame, Package, Stack};
use profile_reader::stack::reader::{Motion, StackReader};
use profile_runtime::memory::{self, MEMORY_PAGE};
use profile_runtime::node::Node;
use profile_runtime::objects::DATA;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The time of a peak is noted if it is higher than the last one by this part.
const PEAK_STEP: u64 = 100;

/// The run, if there is one.
static RUN: AtomicPtr<Run> = AtomicPtr::new(std::ptr::null_mut());
/// Whether the hook uses it.
static IS_BUSY: AtomicBool = AtomicBool::new(false);

/// A recording, which R's thread owns.
pub struct Run {
    pub settings: Settings,
    pub counts: Counts,
    pub process: ProcessId,
    pub malloc: Replaced,
    pub free: Replaced,
    /// If R calls it through its table, the time of garbage collections is known.
    pub getrusage: Option<Replaced>,
    pub reader: StackReader<ProcessMemory>,
    /// For addresses that may be invalid.
    pub memory: ProcessMemory,
    pub identity: Identity,
    pub titles: Titles,
    pub span: Option<u64>,
    pub sites: Sites,
    pub events: Events,
    pub clock_events: Events,
    pub clock: Option<Clock>,
    /// When the current garbage collection began.
    pub began: Option<Instant>,
    pub way: Way,
    pub sums: Sums,
    pub writer: Writer,
    /// The size of the records of stacks.
    pub written: usize,
    /// The last peak whose time was noted.
    pub last_peak: u64,
    pub reasons: Strings,
    pub images: Option<Images>,
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
    let result = catch_unwind(AssertUnwindSafe(|| {
        if has_forked() && run.begin_fork().is_err() {
            run.counts.lose();
            pass_all_on();
        }
        use_it(run)
    }));
    if result.is_err() {
        pass_all_on();
    }
    IS_BUSY.store(false, Ordering::Release);
    result.ok()
}

/// Nanoseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
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
        if self.counts.has_ended() {
            // Without this process, which may be a fork or a worker.
            return pass_all_on();
        }
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
                let mark = MARK.load(Ordering::Relaxed);
                self.identity.of_stack(&mut self.titles, self.span, mark)
            }
        };
        if !self.count(identity, kind, address, bytes).unwrap_or(false) {
            self.counts.lose();
        }
        self.cost.end(start);
    }

    /// Counts a vector. `false` if there is no room for its stack, or it cannot be read.
    fn count(&mut self, identity: u64, kind: Kind, address: u64, bytes: u64) -> Result<bool> {
        let row = match self.sums.row_of(identity, kind) {
            Some(row) => Some(row),
            None if identity == OF_FINALIZER => self.add_finalizer(kind)?,
            None => self.timed(|run| run.read(identity, kind))?,
        };
        let Some(row) = row else {
            return Ok(false);
        };
        if kind == Kind::Copy && self.sums.asks_why(row) {
            // Without a reason, it is a copy nevertheless.
            let _ = self.timed(|run| run.explain(row, bytes));
        }
        let is_peak = self.sums.allocate(row, kind, address, bytes)?;
        self.put(row);
        if is_peak {
            self.note_peak();
            if self.is_image_due() {
                // The vector is counted, whether or not there is an image.
                let _ = self.timed(|run| run.take_image(bytes));
            }
        }
        Ok(true)
    }

    /// The kind of vectors that this caller of R's allocator allocates now, and later.
    fn look_up(&mut self, caller: u64) -> Kind {
        let frames = Frames::of_this_thread();
        let kind = self.sites.kind_of(frames.from(self.way.site));
        self.sites.keep(caller, kind);
        kind
    }

    /// Does what takes longer than an ordinary event.
    fn timed<T>(&mut self, work: impl FnOnce(&mut Run) -> T) -> T {
        let start = Instant::now();
        let result = work(self);
        self.cost.add(start);
        result
    }

    fn is_image_due(&mut self) -> bool {
        let in_use = self.sums.peak().bytes;
        let images = self.images.as_mut();
        images.is_some_and(|images| images.is_due(in_use))
    }

    /// Takes an image, when there is a peak by a vector of this size.
    fn take_image(&mut self, bytes: u64) -> Result<()> {
        let in_use = self.sums.peak().bytes;
        let Some(images) = &mut self.images else {
            return Ok(());
        };
        // The stack is known, but not kept as such.
        self.reader.read(Motion::Asleep)?;
        let (stack, texts) = (self.reader.stack(), self.reader.texts());
        let frames = &stack.frames;
        let frame = frames.iter().find(|frame| frame.place.is_some());
        let frame = frame.or_else(|| frames.first());
        let text = |id| owned(texts.get(id));
        let place = frame.and_then(|frame| frame.place);
        let pending = Pending {
            bytes,
            name: frame.map_or_else(|| Ok(String::new()), |frame| text(frame.name))?,
            file: place.map_or_else(|| Ok(String::new()), |place| text(place.file))?,
            line: place.map_or(0, |place| place.line),
        };
        images.take(in_use, &pending, now());
        Ok(())
    }

    /// Puts the numbers of a row where other processes can read them.
    fn put(&mut self, row: RowId) {
        let peak = self.sums.peak().number;
        if let Some(row) = self.sums.row(row) {
            self.counts
                .set(row.slot, row.values(peak), row.grows(), peak);
        }
    }

    /// Notes when there was a peak, unless it is hardly higher than the last one: this costs more than a vector.
    fn note_peak(&mut self) {
        let peak = self.sums.peak();
        if peak.bytes - peak.bytes / PEAK_STEP > self.last_peak {
            self.last_peak = peak.bytes;
            peak.at = now();
        }
        self.counts.set_peak(self.process, *peak);
    }

    /// Adds the stack of finalizers. The calls that the garbage collection interrupts are not their callers.
    fn add_finalizer(&mut self, kind: Kind) -> Result<Option<RowId>> {
        let mut texts = Strings::default();
        let mut stack = Stack::default();
        let name = texts.intern(FINALIZER)?;
        stack.frames.try_push(Frame {
            name,
            called: name,
            place: None,
            code: None,
            package: Package::Unknown,
        })?;
        let about = About {
            mark: 0,
            is_conversion: kind == Kind::Conversion,
        };
        let record = self.writer.write(about, &stack, 1, &texts)?;
        let number = hash::of_bytes(record);
        let slot = self.counts.add(self.process, record);
        slot.map(|slot| self.sums.add(number, OF_FINALIZER, kind, slot))
            .transpose()
    }

    /// Reads the stack, which is new.
    fn read(&mut self, identity: u64, kind: Kind) -> Result<Option<RowId>> {
        if self.reader.read(Motion::Asleep)?.is_none() {
            return Ok(None);
        }
        let about = About {
            mark: MARK.load(Ordering::Relaxed),
            is_conversion: kind == Kind::Conversion,
        };
        let most = if self.written > MOST_STACKS {
            INNER
        } else {
            usize::MAX
        };
        let (stack, texts) = (self.reader.stack(), self.reader.texts());
        let record = self.writer.write(about, stack, most, texts)?;
        let number = hash::of_bytes(record);
        if let Some(row) = self.sums.row_with(number, identity, kind)? {
            return Ok(Some(row));
        }
        let Some(slot) = self.counts.add(self.process, record) else {
            return Ok(None);
        };
        self.written = self.written.saturating_add(record.len());
        self.sums.add(number, identity, kind, slot).map(Some)
    }

    /// Begins to count for this process, a fork of the one that was counted.
    fn begin_fork(&mut self) -> Result<()> {
        let process = self.counts.add_process(now());
        self.process = process.ok_or(Error::Memory)?;
        self.last_peak = 0;
        self.cost = Cost::default();
        self.images = None;
        self.memory = own_memory();
        if let Some(reader) = self.reader.of_fork(own_memory())? {
            self.reader = reader;
        }
        self.sums = Sums::default();
        self.began = None;
        Ok(())
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
            let number = self.reasons.intern(&reason)?;
            if self.sums.explain(row, number) {
                if let Some(row) = self.sums.row(row) {
                    self.counts.explain(row.slot, &reason);
                }
            }
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
                    let time = nanoseconds_since(began);
                    self.timed(|run| run.share(time));
                }
            }
            None => {}
        }
    }

    /// Shares the time of a garbage collection.
    fn share(&mut self, time: u64) {
        let (counts, peak) = (&self.counts, self.sums.peak().number);
        self.sums.share(time, &mut |row| {
            counts.set(row.slot, row.values(peak), row.grows(), peak);
        });
        counts.set_peak(self.process, *self.sums.peak());
        counts.set_time(self.process, self.cost.nanoseconds());
    }

    pub fn free(&mut self, address: u64) {
        let start = self.cost.begin();
        if let Some(row) = self.sums.free(address) {
            self.put(row);
        }
        self.cost.end(start);
    }

    /// Ends the recording, after a garbage collection.
    pub fn complete(&self) {
        for row in self.sums.rows() {
            self.counts.complete(row.slot);
        }
        self.counts.set_time(self.process, self.cost.nanoseconds());
    }
}
