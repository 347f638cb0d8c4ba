//! Reads R's stack at one moment: in one attempt (`attempt.rs`) if the process is kept where it is, and in several if it
//! goes on.

use crate::attempt::{Attempt, OneMoment};
use crate::calls::Calls;
use crate::frames::Stack;
use crate::innermost::Search;
use crate::memory::Mapping;
use crate::memory::{Limited, Memory};
use crate::moment::Moment;
use crate::names::Names;
use crate::places::Places;
use crate::snapshot::Snapshot;
use crate::spans;
use crate::target::Target;
use profile_core::error::Result;
use profile_core::model::Strings;
use std::thread;
use std::time::Duration;

pub use crate::attempt::Reader;

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
/// of a process that is stopped for it, or that is not. In a stack that is read again, a call takes about a unit. A stack
/// of 20,000 calls that is seen for the first time takes about a fifth of the last limit.
const MOST_TO_OPEN: u64 = 2 << 20;
const MOST_TO_PREPARE: u64 = 2 << 20;
const MOST_WHILE_STOPPED: u64 = 12_000;
const MOST_TO_READ: u64 = 1 << 20;

/// Whether a process goes on while its stack is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Motion {
    /// It has been stopped, and should not stand still for longer than necessary.
    Still,
    /// It sleeps, whether it is read or not.
    Asleep,
    /// It goes on, or is a file, which never does.
    Free,
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

    /// Finds the record of the active span, if the process uses this package. Its library may be loaded later.
    pub fn find_span(&mut self, mappings: &[Mapping]) -> Result<bool> {
        self.snapshot.limit(MOST_TO_OPEN);
        let found = spans::find(&mut self.snapshot, mappings)?;
        self.snapshot.set_span(found);
        Ok(found.is_some())
    }

    /// R in the process.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The last stack that was read.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Sets another clock than that of the system.
    pub fn set_clock(&mut self, clock: fn() -> Moment) {
        self.snapshot.set_clock(clock);
    }

    pub fn now(&self) -> Moment {
        self.snapshot.now()
    }

    /// A moment at which the process had the stack that was last read.
    pub fn moment(&self) -> Moment {
        self.snapshot.moment()
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
            Motion::Still => (1, MOST_WHILE_STOPPED),
            Motion::Asleep => (1, MOST_TO_READ),
            Motion::Free => (TRIES, MOST_TO_READ),
        };
        self.snapshot.limit(limit);
        for _ in 0..tries {
            let moment = match motion {
                Motion::Still | Motion::Asleep => OneMoment::Still,
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
}
