//! Reads R's stack at one moment: in one attempt (`attempt.rs`) if the process is kept where it is, and in several if it
//! goes on.

use crate::running_r::{MOST_TO_OPEN, Named, RunningR};
use crate::stack::attempt::{Attempt, Bounds, OneMoment};
use crate::stack::calls::PositionVariables;
use crate::stack::frames::{MOST_CALLS, Stack};
use crate::stack::innermost::{self, PositionSearch, Seen};
use crate::stack::kept::Kept;
use crate::stack::missing::{Missing, split_missing};
use crate::stack::moment::Moment;
use crate::stack::names::Found;
use crate::stack::snapshot::Snapshot;
use crate::stack::spans;
use crate::stack::trunk::NEAR;
use profile_core::error::Result;
use profile_core::model::{StringId, Strings};
use profile_runtime::contexts::Record;
use profile_runtime::memory::Mapping;
use profile_runtime::memory::{Limited, Memory};
use std::thread;
use std::time::Duration;

/// The maximum number of attempts to read a stack of a process that goes on.
const TRIES: usize = 5;
/// The maximum number of stacks that are read in preparation, and the number of those whose innermost function is not
/// byte code after which the preparation ends. A sleeping process always has the same stack.
const PREPARATIONS: usize = 40;
const UNNEEDED: usize = 12;
const PAUSE: Duration = Duration::from_micros(500);
/// The number of calls that are read if only the innermost function matters.
const FEW_CALLS: usize = 20;

/// The minimum time of a garbage collection. A small one in a fresh R session takes 600 microseconds: symbols and
/// base functions have to be marked.
const SHORTEST_COLLECTION: Duration = Duration::from_micros(200);

/// The limits on what is read of the memory, in units of about a microsecond: to find out where R runs, to prepare, and
/// at one moment of a process that is stopped, or that is not.
const MOST_TO_LOCATE: u64 = 8_000;
const MOST_TO_PREPARE: u64 = 2 << 20;
const MOST_WHILE_STOPPED: u64 = 8_000;
const MOST_TO_READ: u64 = 1 << 20;
/// The same for the code of one stack whose digests are not known yet. The rest is left for the next stacks.
const MOST_TO_NAME: u64 = 20_000;

/// The maximum number of calls that are read while a process is stopped for it.
const CALLS_WHILE_STOPPED: usize = 3000;

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

/// Reads the stack of R in a process, repeatedly.
#[derive(Debug)]
pub struct StackReader<M> {
    kept: Kept<M>,
    attempt: Attempt,
    /// What was missing in the last attempt.
    missing: Option<Missing>,
    /// The last stack that was read.
    stack: Stack,
    /// The search for the position of the innermost function.
    search: PositionSearch,
    /// The number of stacks for which the variable `R_Srcref` was unknown.
    without_srcref: u32,
    /// See [`Bounds::collection`].
    pub shortest_collection: Duration,
}

impl<M: Memory> StackReader<M> {
    /// Finds R in a process.
    pub fn open(memory: M, mappings: &[Mapping], named: &Named) -> Result<StackReader<M>> {
        let mut memory = Limited::new(memory, MOST_TO_OPEN);
        let r = RunningR::open(&mut memory, mappings, named)?;
        StackReader::of(r, None, memory)
    }

    /// A reader of a fork of this process, or of another fork of the same one, which has R at the same addresses: so nothing
    /// has to be searched again. `None` if it has not, because the memory is of another process.
    pub fn of_fork(&self, memory: M) -> Result<Option<StackReader<M>>> {
        let mut memory = Limited::new(memory, MOST_TO_OPEN);
        if !self.kept.r.is_there(&mut memory) {
            return Ok(None);
        }
        StackReader::of(self.kept.r.clone(), self.kept.registers, memory).map(Some)
    }

    fn of(
        r: RunningR,
        registers: Option<PositionVariables>,
        mut memory: Limited<M>,
    ) -> Result<StackReader<M>> {
        memory.inner().keep_at_hand(&r.variables)?;
        memory
            .inner()
            .keep_at_hand(std::slice::from_ref(&r.node_stack))?;
        let snapshot = Snapshot::new(memory, r.head.clone());
        Ok(StackReader {
            kept: Kept::new(snapshot, r, registers),
            attempt: Attempt::default(),
            missing: None,
            stack: Stack::default(),
            search: PositionSearch::default(),
            without_srcref: 0,
            shortest_collection: SHORTEST_COLLECTION,
        })
    }

    /// Finds the record of the active span, if the process uses this package. Its library may be loaded later.
    pub fn find_span(&mut self, mappings: &[Mapping]) -> Result<bool> {
        self.kept.snapshot.limit(MOST_TO_OPEN);
        let found = spans::find(&mut self.kept.snapshot, mappings)?;
        self.kept.snapshot.set_span(found);
        Ok(found.is_some())
    }

    /// The address of this record.
    pub fn span_at(&self) -> Option<u64> {
        self.kept.snapshot.span_at()
    }

    /// R in the process.
    pub fn r(&self) -> &RunningR {
        &self.kept.r
    }

    /// Finds out where R runs, with its R and its memory.
    pub fn locate<T>(&mut self, locate: impl FnOnce(&mut RunningR, &mut Snapshot<M>) -> T) -> T {
        self.kept.snapshot.limit(MOST_TO_LOCATE);
        locate(&mut self.kept.r, &mut self.kept.snapshot)
    }

    /// Notes that no stack can be read, since the thread that runs R was not found.
    pub fn lose_thread(&mut self) {
        self.missing = Some(Missing::Thread);
    }

    /// The names of functions and files in stacks.
    pub fn texts(&self) -> &Strings {
        &self.kept.texts
    }

    pub fn into_texts(self) -> Strings {
        self.kept.texts
    }

    /// The last stack that was read.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Sets another clock than that of the system.
    pub fn set_clock(&mut self, clock: fn() -> Moment) {
        self.kept.snapshot.set_clock(clock);
    }

    pub fn now(&self) -> Moment {
        self.kept.snapshot.now()
    }

    /// A moment at which the process had the stack that was last read.
    pub fn moment(&self) -> Moment {
        self.kept.snapshot.moment()
    }

    /// Finds the variables in which R keeps the position of the innermost function, if its code is byte code. Without
    /// them, the first stacks lack this position.
    pub fn prepare(&mut self) -> Result<()> {
        self.prepare_with(|| thread::sleep(PAUSE))
    }

    /// Like `prepare()`, but calls `pause` between two attempts.
    pub fn prepare_with(&mut self, mut pause: impl FnMut()) -> Result<()> {
        self.kept.snapshot.limit(MOST_TO_PREPARE);
        let mut unneeded = 0;
        for _ in 0..PREPARATIONS {
            unneeded += usize::from(self.search()? && self.attempt.calls.innermost.is_some());
            if self.kept.registers.is_some()
                || unneeded == UNNEEDED
                || self.kept.snapshot.is_exhausted()
            {
                break;
            }
            pause();
        }
        Ok(())
    }

    /// Finds these variables by their values. The innermost function of R calls native code, which calls this.
    pub fn find_positions(&mut self, seen: &mut Seen) -> Result<Option<PositionVariables>> {
        let (snapshot, r) = (&mut self.kept.snapshot, &self.kept.r);
        snapshot.limit(MOST_TO_PREPARE);
        let innermost = r.head.read(snapshot).map(|head| head.1);
        if let Some(record) = innermost.and_then(|address| Record::read(snapshot, address)) {
            self.kept.registers = innermost::find_now(snapshot, r, record.function(), seen)?;
        }
        Ok(self.kept.registers)
    }

    /// Reads positions in byte code without source references.
    pub fn read_positions(&mut self) {
        self.kept.positions = true;
    }

    /// Replaces the positions in byte code of the last stack with places that stand for them. The process may go on.
    pub fn name_positions(&mut self) -> Result<()> {
        self.kept.snapshot.limit(MOST_TO_NAME);
        for frame in &mut self.stack.frames {
            if let Some(at) = frame.code.take() {
                frame.place = self.kept.place_in_code(at)?;
            }
        }
        Ok(())
    }

    /// Gives functions no other names than `Rprof()` does, except for titles.
    pub fn use_plain_names(&mut self) {
        self.kept.plain_names = true;
    }

    /// Continues the search for these variables, if the last stack lacks the position of the innermost function. The
    /// process may go on meanwhile.
    pub fn search_further(&mut self) -> Result<()> {
        if self.kept.r.srcrefs.is_empty() && !self.attempt.calls.calls.is_empty() {
            // All variables are read for this, so it is done less and less often.
            self.without_srcref += 1;
            if self.without_srcref.is_power_of_two() {
                self.kept.snapshot.limit(MOST_TO_PREPARE);
                self.kept.r.find_srcref(&mut self.kept.snapshot)?;
            }
        }
        if self.kept.registers.is_none() && self.attempt.calls.innermost.is_none() {
            self.kept.snapshot.limit(MOST_TO_PREPARE);
            self.search()?;
        }
        Ok(())
    }

    /// Whether the search for these variables cannot make the last stack more complete.
    pub fn is_settled(&self) -> bool {
        let calls = &self.attempt.calls;
        let lacks_srcref = self.kept.r.srcrefs.is_empty() && !calls.calls.is_empty();
        !lacks_srcref && (self.kept.registers.is_some() || calls.innermost.is_some())
    }

    /// Returns whether the innermost calls were read.
    fn search(&mut self) -> Result<bool> {
        let (kept, calls) = (&mut self.kept, &mut self.attempt.calls);
        let are_read = kept.read_calls(calls, (FEW_CALLS, FEW_CALLS));
        if split_missing(are_read)?.is_err() {
            return Ok(false);
        }
        self.search.observe(&mut kept.snapshot, &kept.r)?;
        if !kept.snapshot.is_unchanged()? {
            return Ok(false);
        }
        if kept.registers.is_none() && calls.innermost.is_none() {
            kept.registers = self.search.look(&mut kept.snapshot, &kept.r, calls)?;
        }
        Ok(true)
    }

    /// Prepares to read the next stack, so that this takes less time.
    pub fn plan(&mut self) -> Result<()> {
        self.kept.snapshot.plan()
    }

    /// The current stack; `None` if a part of it is missing, see [`StackReader::why_missing()`]. If the process goes on, it is
    /// read in several attempts. If it stands still, outer calls of a deep stack are left out; [`StackReader::finish`] adds
    /// them when it goes on.
    pub fn read(&mut self, motion: Motion) -> Result<Option<&Stack>> {
        self.read_while(motion, || true)
    }

    /// The current stack, which is read as long as the process stands still, if it should: `is_still` is whether it has
    /// done so, and is asked before anything of the stack is kept.
    pub fn read_while(
        &mut self,
        motion: Motion,
        mut is_still: impl FnMut() -> bool,
    ) -> Result<Option<&Stack>> {
        let (tries, calls, memory) = match motion {
            Motion::Still => (1, CALLS_WHILE_STOPPED, MOST_WHILE_STOPPED),
            Motion::Asleep => (1, MOST_CALLS, MOST_TO_READ),
            Motion::Free => (TRIES, NEAR, MOST_TO_READ),
        };
        for _ in 0..tries {
            let moment = match motion {
                Motion::Still | Motion::Asleep => OneMoment::Still(&mut is_still),
                Motion::Free => OneMoment::Twice,
            };
            if self.attempt(moment, calls, memory)? {
                if motion != Motion::Still {
                    self.finish()?;
                }
                return Ok(Some(&self.stack));
            }
            if self.kept.snapshot.is_exhausted() {
                break;
            }
        }
        Ok(None)
    }

    /// The current stack of a process that is held. `let_go` lets it go on as soon as the records of inner calls were read,
    /// and returns whether it was held until then. `None` if it was not, or if it takes too long to look up what they refer
    /// to.
    pub fn read_held(&mut self, let_go: impl FnOnce() -> bool) -> Result<Option<&Stack>> {
        let mut let_go = Some(let_go);
        let mut let_go = || let_go.take().is_some_and(|let_go| let_go());
        if !self.attempt(OneMoment::Held(&mut let_go), NEAR, MOST_TO_READ)? {
            return Ok(None);
        }
        self.finish()?;
        Ok(Some(&self.stack))
    }

    /// Returns whether the stack, or its inner calls, could be read.
    fn attempt(&mut self, moment: OneMoment, calls: usize, memory: u64) -> Result<bool> {
        let bounds = Bounds {
            calls,
            memory,
            collection: self.shortest_collection,
        };
        self.missing = self.attempt.read(&mut self.kept, moment, bounds)?;
        if self.missing.is_some() {
            return Ok(false);
        }
        self.attempt.assemble(&mut self.kept, &mut self.stack)?;
        Ok(true)
    }

    /// Adds the outer calls that the last stack lacks, if they are still those of that moment. The process may go on.
    pub fn finish(&mut self) -> Result<()> {
        if self.attempt.finish(&mut self.kept)? {
            self.attempt.assemble(&mut self.kept, &mut self.stack)?;
        }
        Ok(())
    }

    /// Whether the last stack could not be read because the process did not stand still.
    pub fn has_moved(&self) -> bool {
        self.missing == Some(Missing::OneMoment)
    }

    /// What was missing when a stack could not be read, in words.
    pub fn why_missing(&mut self) -> Result<String> {
        let missing = self.missing.unwrap_or(Missing::OneMoment);
        let inner = match missing {
            Missing::Context(count) | Missing::Call(count) => self.name_of_call(count)?,
            _ => None,
        };
        Ok(missing.in_words(inner.map(|name| self.kept.texts.get(name))))
    }

    /// The name of the last one of so many calls.
    fn name_of_call(&mut self, count: usize) -> Result<Option<StringId>> {
        let Some(call) = self.attempt.calls.calls.get(count.wrapping_sub(1)).copied() else {
            return Ok(None);
        };
        self.kept.snapshot.limit(MOST_TO_READ);
        let found = self.kept.name_of_call(call.call);
        // The process may have gone on, so these names are not kept.
        self.kept.forget();
        match found? {
            Found::Name(name) => Ok(Some(name)),
            Found::Nothing | Found::Damaged => Ok(None),
        }
    }
}
