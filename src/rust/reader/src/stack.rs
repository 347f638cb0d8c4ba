//! R's stack at one moment: functions, files and lines.
//!
//! A stack is read in attempts. An attempt copies the records of R's calls and what they refer to ([`Snapshot`]), and
//! looks up functions and places. Its result is whole, lacks outer calls because there are too many, or is of several
//! moments, because the process has changed meanwhile.

use crate::byte_code::Builtin;
use crate::calls::{Calls, MOST_CALLS, OnStack};
use crate::innermost::{Registers, Search};
use crate::memory::{Limited, Memory};
use crate::names::{Found, Names};
use crate::places::{Place, Places, Root};
use crate::snapshot::Snapshot;
use crate::target::{Mapping, Target};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_core::model::{StringId, Strings};
use std::thread;
use std::time::Duration;

/// The maximum number of attempts to read a stack of a process that goes on.
const TRIES: usize = 5;
/// The maximum number of stacks that are read in preparation, and the number of those whose innermost function is not
/// byte code after which the preparation ends. A sleeping process always has the same stack.
const PREPARATIONS: usize = 40;
const UNNEEDED: usize = 12;
const PAUSE: Duration = Duration::from_micros(500);
/// The maximum number of calls that are read if only the innermost function matters.
const FEW_CALLS: usize = 20;

/// The minimum time of a garbage collection. A small one in a fresh R session takes 600 microseconds: symbols and
/// base functions have to be marked.
const SHORTEST_COLLECTION: Duration = Duration::from_micros(200);

/// The limits on what is read of the memory, in units of about a microsecond: to find R, to prepare, and for one stack
/// of a process that stands still for it, or that goes on. A stack of 20,000 calls that is seen for the first time
/// takes about a fifth of the last limit.
const MOST_TO_OPEN: u64 = 2 << 20;
const MOST_TO_PREPARE: u64 = 2 << 20;
const MOST_WHILE_STILL: u64 = 2000;
const MOST_TO_READ: u64 = 1 << 20;

/// A call on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    pub name: StringId,
    /// The place of the function, if its code has source references.
    pub place: Option<Place>,
}

/// A stack, innermost frame first.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Stack {
    pub frames: Vec<Frame>,
    /// The record of each frame. Builtins called by byte code have no record.
    pub records: Vec<OnStack>,
    /// Where the outermost function was called.
    pub toplevel: Option<Place>,
    /// Whether outer frames were left out, because the stack is too deep.
    pub is_cut: bool,
}

/// Whether a process goes on while its stack is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Motion {
    /// It has been stopped, or sleeps. It should not stand still for longer than necessary.
    Still,
    /// It goes on, or is a file, which never does.
    Free,
}

/// How an attempt knows that the records and variables it has read are of one moment.
enum OneMoment<'h> {
    /// The process stands still.
    Still,
    /// It was held until this is called, which returns whether it really was.
    Held(&'h mut dyn FnMut() -> bool),
    /// They are the same when they are read again.
    Twice,
}

/// The result of an attempt to read a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Whole,
    /// Outer calls were left out.
    Partial,
    /// The process has changed meanwhile, or its memory is damaged.
    Changed,
}

/// Reads the stack of R in a process, repeatedly.
#[derive(Debug)]
pub struct Reader<M> {
    snapshot: Snapshot<M>,
    target: Target,
    calls: Calls,
    names: Names,
    places: Places,
    search: Search,
    registers: Option<Registers>,
    stack: Stack,
    /// The names of functions and files.
    pub texts: Strings,
    /// The minimum time of a garbage collection. Within this time, the objects of a call still exist, even if the
    /// call has just returned.
    pub shortest_collection: Duration,
}

impl<M: Memory> Reader<M> {
    /// Finds R in a process.
    pub fn open(memory: M, mappings: &[Mapping]) -> Result<Reader<M>> {
        let mut memory = Limited::new(memory, MOST_TO_OPEN);
        let target = Target::open(&mut memory, mappings)?;
        memory.inner().keep_at_hand(&target.variables)?;
        memory
            .inner()
            .keep_at_hand(std::slice::from_ref(&target.node_stack))?;
        Ok(Reader {
            snapshot: Snapshot::new(memory, target.addresses.head),
            target,
            calls: Calls::default(),
            names: Names::default(),
            places: Places::default(),
            search: Search::default(),
            registers: None,
            stack: Stack::default(),
            texts: Strings::default(),
            shortest_collection: SHORTEST_COLLECTION,
        })
    }

    /// R in the process.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The last stack that was read.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Finds the variables in which R keeps the position of the innermost function, if its code is byte code. Without
    /// them, the first stacks lack this position.
    pub fn prepare(&mut self) -> Result<()> {
        self.prepare_with(|| thread::sleep(PAUSE))
    }

    /// Like `prepare()`, but calls `pause` between two attempts.
    pub fn prepare_with(&mut self, mut pause: impl FnMut()) -> Result<()> {
        self.snapshot.limit(MOST_TO_PREPARE);
        let mut unneeded = 0;
        for _ in 0..PREPARATIONS {
            unneeded += usize::from(self.search()? && self.calls.innermost.is_some());
            if self.registers.is_some() || unneeded == UNNEEDED || self.snapshot.is_exhausted() {
                break;
            }
            pause();
        }
        Ok(())
    }

    /// Continues the search for these variables, if the last stack lacks the position of the innermost function. The
    /// process may go on meanwhile.
    pub fn search_further(&mut self) -> Result<()> {
        if self.registers.is_none() && self.calls.innermost.is_none() {
            self.snapshot.limit(MOST_TO_PREPARE);
            self.search()?;
        }
        Ok(())
    }

    /// Returns whether the innermost calls were read.
    fn search(&mut self) -> Result<bool> {
        let (snapshot, target) = (&mut self.snapshot, &self.target);
        let (registers, calls) = (self.registers, &mut self.calls);
        if !calls.read(snapshot, target, registers, FEW_CALLS)? {
            return Ok(false);
        }
        self.search.observe(snapshot, target)?;
        if !snapshot.is_unchanged()? {
            return Ok(false);
        }
        if registers.is_none() && calls.innermost.is_none() {
            self.registers = self.search.look(snapshot, target, calls)?;
        }
        Ok(true)
    }

    /// Prepares to read the next stack, so that this takes less time.
    pub fn plan(&mut self) -> Result<()> {
        self.snapshot.plan()
    }

    /// The current stack. `None` if it takes too long to read while the process stands still, or changes during all
    /// attempts.
    pub fn read(&mut self, motion: Motion) -> Result<Option<&Stack>> {
        let (tries, limit) = match motion {
            Motion::Still => (1, MOST_WHILE_STILL),
            Motion::Free => (TRIES, MOST_TO_READ),
        };
        self.snapshot.limit(limit);
        for _ in 0..tries {
            let moment = match motion {
                Motion::Still => OneMoment::Still,
                Motion::Free => OneMoment::Twice,
            };
            if self.attempt(moment)? != Attempt::Changed {
                return Ok(Some(&self.stack));
            }
            if self.snapshot.is_exhausted() {
                break;
            }
        }
        Ok(None)
    }

    /// The current stack of a process that is held. `let_go` lets it go on as soon as its records were read, and returns
    /// whether it was held until then. `None` if it was not, or if it takes too long to look up what they refer to.
    pub fn read_held(&mut self, let_go: impl FnOnce() -> bool) -> Result<Option<&Stack>> {
        self.snapshot.limit(MOST_TO_READ);
        let mut let_go = Some(let_go);
        let mut let_go = || let_go.take().is_some_and(|let_go| let_go());
        let attempt = self.attempt(OneMoment::Held(&mut let_go))?;
        Ok((attempt != Attempt::Changed).then_some(&self.stack))
    }

    /// Keeps the names and places that were looked up, if they are right.
    fn attempt(&mut self, moment: OneMoment) -> Result<Attempt> {
        let attempt = self.take(moment)?;
        // If the limit was reached, some places may be unknown only for that reason.
        if attempt == Attempt::Changed || self.snapshot.is_exhausted() {
            self.names.forget();
            self.places.forget();
            return Ok(Attempt::Changed);
        }
        self.names.keep();
        self.places.keep();
        Ok(attempt)
    }

    fn take(&mut self, moment: OneMoment) -> Result<Attempt> {
        let (snapshot, target) = (&mut self.snapshot, &self.target);
        let calls = &mut self.calls;
        let is_list = calls.read(snapshot, target, self.registers, MOST_CALLS)?;
        let goes_on = !matches!(moment, OneMoment::Still);
        let is_moment = match moment {
            OneMoment::Still => true,
            OneMoment::Held(let_go) => let_go(),
            OneMoment::Twice => is_list && snapshot.is_unchanged()?,
        };
        if !is_list || !is_moment || !self.look_up()? {
            return Ok(Attempt::Changed);
        }
        // The objects that the calls refer to existed when the records were read. If that is recent, they have not
        // been freed since.
        let is_recent = self.snapshot.age() < self.shortest_collection;
        if goes_on && !is_recent && !self.snapshot.is_unchanged()? {
            return Ok(Attempt::Changed);
        }
        Ok(match self.calls.is_cut {
            true => Attempt::Partial,
            false => Attempt::Whole,
        })
    }

    /// Looks up the functions and places of the calls. Returns `false` if an object is damaged.
    fn look_up(&mut self) -> Result<bool> {
        self.stack.frames.clear();
        self.stack.records.clear();
        self.stack.is_cut = self.calls.is_cut;
        let innermost = match self.calls.innermost {
            Some(site) => Root::of(&mut self.snapshot, &self.target, site)?,
            None => Root::Nothing,
        };
        let mut place = None;
        for number in 0..self.calls.calls.len() {
            let Some(&call) = self.calls.calls.get(number) else {
                break;
            };
            let called_at = Root::of(&mut self.snapshot, &self.target, call.site)?;
            // When a function has just been called, R's position is still that of its caller, at the call.
            let is_at_call = matches!(innermost, Root::Code { .. }) && called_at == innermost;
            if number == 0 && !is_at_call {
                place = self.add_builtin_at(innermost, 0)?;
            }
            let (names, snapshot) = (&mut self.names, &mut self.snapshot);
            match names.of_call(snapshot, call.call, &mut self.texts)? {
                Found::Name(name) => self.add(Frame { name, place }, call.record)?,
                // Like `Rprof()`, omits what is not a call.
                Found::Nothing => {}
                Found::Damaged => return Ok(false),
            }
            place = self.add_builtin_at(called_at, call.call)?;
        }
        if self.calls.calls.is_empty() {
            place = self.add_builtin_at(innermost, 0)?;
        }
        self.stack.toplevel = place;
        Ok(true)
    }

    fn add(&mut self, frame: Frame, record: OnStack) -> Result<()> {
        self.stack.frames.try_push(frame)?;
        self.stack.records.try_push(record)
    }

    /// The place of a site. If a builtin is called there, a frame is added for it, unless this call has a record of
    /// its own: `inner` is the address of the recorded call.
    fn add_builtin_at(&mut self, site: Root, inner: u64) -> Result<Option<Place>> {
        let (place, builtin) = self.places.of(
            &mut self.snapshot,
            &self.target,
            site,
            &mut self.names,
            &mut self.texts,
        )?;
        let is_frame = |builtin: &Builtin| builtin.call != inner;
        if let Some(Builtin { name, .. }) = builtin.filter(is_frame) {
            let place = None;
            self.add(Frame { name, place }, OnStack::default())?;
        }
        Ok(place)
    }
}
