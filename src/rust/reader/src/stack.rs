//! R's stack at one moment: functions, files and lines.

use crate::ahead::{Ahead, Reading, Was};
use crate::byte_code::Builtin;
use crate::calls::{Calls, OnStack, Site};
use crate::chain::{Called, Known};
use crate::innermost::{Registers, Search};
use crate::memory::{self, Limited, Memory};
use crate::names::{Found, Names};
use crate::places::{Place, Places, Root};
use crate::target::{Mapping, Target};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_core::model::{StringId, Strings};
use std::thread;
use std::time::Duration;

/// How often a stack is read until it did not change meanwhile. An attempt takes about 30 microseconds, and one of
/// twenty fails in a program whose functions take ten.
const TRIES: usize = 8;
/// How often R is looked at to prepare the reading, and after how many stacks whose innermost function is no byte
/// code this ends. A process that sleeps always has the same stack.
const PREPARATIONS: usize = 40;
const UNNEEDED: usize = 12;
const PAUSE: Duration = Duration::from_micros(500);

/// A small collection of a fresh R takes 600 microseconds: symbols and base functions have to be marked.
const SHORTEST_COLLECTION: Duration = Duration::from_micros(200);

/// The most that is read of the memory, in units of about a microsecond: to find R, to prepare, for a stack. A stack
/// of 20,000 calls that is seen for the first time takes about a fifth of the last.
const MOST_TO_OPEN: u64 = 2 << 20;
const MOST_TO_PREPARE: u64 = 2 << 20;
const MOST_TO_READ: u64 = 1 << 20;

/// A call on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    pub name: StringId,
    /// Where the function is, if its code has places.
    pub place: Option<Place>,
}

/// A stack, innermost frame first.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Stack {
    pub frames: Vec<Frame>,
    /// Where R has recorded each frame. Builtins of byte code have no record.
    pub records: Vec<OnStack>,
    /// Where the outermost function was called.
    pub toplevel: Option<Place>,
    /// Whether outer frames were left out, because the stack is too deep.
    pub is_cut: bool,
}

/// Reads the stack of R in a process, again and again.
#[derive(Debug)]
pub struct Reader<M> {
    memory: Limited<Ahead<M>>,
    target: Target,
    calls: Calls,
    known: Known,
    names: Names,
    places: Places,
    search: Search,
    registers: Option<Registers>,
    /// What tells where the innermost function is, and the calls.
    innermost: Root,
    roots: Vec<Called>,
    stack: Stack,
    /// The names of functions and files.
    pub texts: Strings,
    /// Whether what was read is read again. Tests show what happens otherwise.
    check: bool,
    /// In less time R does not collect garbage, so that what a call refers to is still there when it has just returned.
    pub shortest_collection: Duration,
}

impl<M: Memory> Reader<M> {
    /// R in the process.
    pub fn target(&self) -> &Target {
        &self.target
    }

    pub fn open(memory: M, mappings: &[Mapping], check: bool) -> Result<Reader<M>> {
        let mut memory = Limited::new(memory, MOST_TO_OPEN);
        let target = Target::open(&mut memory, mappings)?;
        Ok(Reader {
            memory: Limited::new(Ahead::new(memory.into_inner()), 0),
            target,
            calls: Calls::default(),
            known: Known::default(),
            names: Names::default(),
            places: Places::default(),
            search: Search::default(),
            registers: None,
            innermost: Root::Nothing,
            roots: Vec::new(),
            stack: Stack::default(),
            texts: Strings::default(),
            check,
            shortest_collection: SHORTEST_COLLECTION,
        })
    }

    /// Finds out where R keeps the place of the innermost function, if its code is byte code. Without this, the first
    /// stacks do not have it.
    pub fn prepare(&mut self) -> Result<()> {
        self.prepare_with(|| thread::sleep(PAUSE))
    }

    /// The same with something else than a pause between two looks.
    pub fn prepare_with(&mut self, mut pause: impl FnMut()) -> Result<()> {
        self.memory.limit(MOST_TO_PREPARE);
        self.calls.only_inner = true;
        let result = self.look_for_registers(&mut pause);
        self.calls.only_inner = false;
        result
    }

    fn look_for_registers(&mut self, pause: &mut impl FnMut()) -> Result<()> {
        let mut unneeded = 0;
        for _ in 0..PREPARATIONS {
            if self.read_within_limit()? {
                unneeded += usize::from(self.calls.innermost.is_some());
            }
            if self.registers.is_some() || unneeded == UNNEEDED || self.memory.is_exhausted() {
                break;
            }
            pause();
        }
        Ok(())
    }

    /// The present stack; `None` if it changed during all attempts to read it.
    pub fn read(&mut self) -> Result<Option<&Stack>> {
        self.memory.limit(MOST_TO_READ);
        Ok(match self.read_within_limit()? {
            true => Some(&self.stack),
            false => None,
        })
    }

    fn read_within_limit(&mut self) -> Result<bool> {
        for _ in 0..TRIES {
            if self.attempt()? {
                return Ok(true);
            }
            if self.memory.is_exhausted() {
                break;
            }
        }
        Ok(false)
    }

    fn attempt(&mut self) -> Result<bool> {
        let ahead = self.memory.inner();
        if !self.check {
            ahead.do_not_copy();
            return self.attempt_with(Reading::Second);
        }
        let variables = self.target.addresses.of_stack(self.registers);
        let candidates = self.search.candidates();
        ahead.copy(variables.into_iter().chain(candidates))?;
        Ok(self.attempt_with(Reading::Second)? || self.attempt_with(Reading::First)?)
    }

    fn attempt_with(&mut self, reading: Reading) -> Result<bool> {
        self.memory.inner().begin(reading);
        let is_read = self.read_roots()?;
        self.search.observe(self.memory.inner(), &self.target)?;
        let were = self.memory.inner().begin_lookup();
        // What the calls refer to was there when they were copied, and has not been freed since then.
        let is_recent = self.memory.inner().age() < self.shortest_collection;
        let are_right = match were {
            Was::Copied | Was::Late if is_recent => true,
            _ => !self.check || self.calls_are_unchanged()?,
        };
        if !is_read || !are_right || !self.is_stack()? {
            return Ok(false);
        }
        let is_found = self.look_up()?;
        let is_right = match self.memory.inner().end() {
            Was::Copied => true,
            Was::Late | Was::Read => !self.check || self.roots_exist(),
        };
        // If the limit was reached, some places are unknown for no other reason.
        if !is_found || !is_right || self.memory.is_exhausted() {
            self.names.forget();
            self.places.forget();
            return Ok(false);
        }
        self.names.keep();
        self.places.keep();
        if self.registers.is_none() && self.calls.innermost.is_none() {
            let (memory, target) = (&mut self.memory, &self.target);
            self.registers = self.search.look(memory, target, &self.calls)?;
        }
        Ok(true)
    }

    /// Whether the calls belong together, if their records have moved on meanwhile. Otherwise learns how they look.
    fn is_stack(&mut self) -> Result<bool> {
        let moved = self.memory.inner().moved();
        if moved.is_empty() {
            self.known.learn(&self.roots, &self.innermost)?;
            return Ok(true);
        }
        Ok(self.known.is_stack(&self.roots, &self.innermost, moved))
    }

    fn calls_are_unchanged(&mut self) -> Result<bool> {
        self.calls.are_unchanged(&mut self.memory, &self.target)
    }

    /// Reads the calls, and what may be freed when they return. Returns `false` if they are not what they should be.
    fn read_roots(&mut self) -> Result<bool> {
        let (memory, target) = (&mut self.memory, &self.target);
        if !self.calls.read(memory, target, self.registers)? {
            return Ok(false);
        }
        memory.inner().begin_position(self.calls.records())?;
        let site = self.calls.innermost.unwrap_or(Site::Unknown);
        self.innermost = Root::of(memory, target, site);
        memory.inner().begin_calls();
        self.roots.clear();
        for &call in &self.calls.calls {
            let Some(cell) = memory::array(memory, call.call) else {
                return Ok(false);
            };
            let called_at = Root::of(memory, target, call.site);
            let called = Called {
                call,
                cell,
                called_at,
            };
            self.roots.try_push(called, "a stack")?;
        }
        Ok(true)
    }

    /// Finds what the calls say: what does not change while they are there. Returns `false` if something is not
    /// what it should be.
    fn look_up(&mut self) -> Result<bool> {
        self.stack.frames.clear();
        self.stack.records.clear();
        self.stack.is_cut = self.calls.is_cut;
        // While a function begins, its caller is still where R evaluates, at the call.
        let called_at = self.roots.first().map(|root| root.called_at);
        let is_at_call =
            matches!(self.innermost, Root::Code { .. }) && called_at == Some(self.innermost);
        let mut place = match is_at_call {
            true => None,
            false => self.called_at(self.innermost, 0)?,
        };
        for number in 0..self.roots.len() {
            let Some(&Called {
                call,
                cell,
                called_at,
            }) = self.roots.get(number)
            else {
                break;
            };
            let found = self
                .names
                .of_call(&mut self.memory, &cell, &mut self.texts)?;
            match found {
                Found::Name(name) => {
                    let frame = Frame { name, place };
                    self.stack.frames.try_push(frame, "a stack")?;
                    self.stack.records.try_push(call.record, "a stack")?;
                }
                // `Rprof()` leaves out what is not a call as well.
                Found::Nothing => {}
                Found::Damaged => return Ok(false),
            }
            place = self.called_at(called_at, call.call)?;
        }
        self.stack.toplevel = place;
        Ok(true)
    }

    /// The place of a site. If a builtin is called there, it becomes a frame, unless it is the function whose
    /// call was recorded: `inner` is the address of that call.
    fn called_at(&mut self, site: Root, inner: u64) -> Result<Option<Place>> {
        let (place, builtin) = self.places.of(
            &mut self.memory,
            &self.target,
            site,
            &mut self.names,
            &mut self.texts,
        )?;
        let is_frame = |builtin: &Builtin| builtin.call != inner;
        if let Some(builtin) = builtin.filter(is_frame) {
            let frame = Frame {
                name: builtin.name,
                place: None,
            };
            self.stack.frames.try_push(frame, "a stack")?;
            self.stack.records.try_push(OnStack::default(), "a stack")?;
        }
        Ok(place)
    }

    /// Whether the objects that were the calls and their code are still there, so that all that they refer to was
    /// theirs when it was read. The functions may have returned.
    fn roots_exist(&mut self) -> bool {
        let memory = &mut self.memory;
        self.innermost.exists(memory)
            && self.roots.iter().all(|called| {
                memory::array(memory, called.call.call) == Some(called.cell)
                    && called.called_at.exists(memory)
            })
    }
}
