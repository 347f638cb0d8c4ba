//! R's stack at one moment: functions, files and lines.

use crate::ahead::{Ahead, Reading, Was};
use crate::byte_code::Builtin;
use crate::calls::{Calls, OnStack, Order, Site};
use crate::chain::{Called, Known};
use crate::innermost::{Registers, Search};
use crate::memory::{self, Limited, Memory};
use crate::names::{Found, Names};
use crate::objects::is_same;
use crate::outer::Outer;
use crate::pieces::Kind;
use crate::places::{Place, Places, Root};
use crate::target::{Mapping, Target};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_core::model::{StringId, Strings};
use std::thread;
use std::time::{Duration, Instant};

/// How often a stack is read until it did not change meanwhile, or is known to be one nevertheless.
const TRIES: usize = 8;
/// How often the records are copied in an attempt until all of them were.
const COPIES: usize = 8;
/// How often R is looked at to prepare the reading, and after how many stacks whose innermost function is no byte
/// code this ends. A process that sleeps always has the same stack.
const PREPARATIONS: usize = 40;
const UNNEEDED: usize = 12;
const PAUSE: Duration = Duration::from_micros(500);

const WAIT: Duration = Duration::from_micros(500);
/// How often the list of records may be none while the innermost one is waited for.
const UNREAD: usize = 2;

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
    /// Whether inner frames are missing, because they changed too fast.
    pub lacks_inner: bool,
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
    outer: Outer,
    /// The names of functions and files.
    pub texts: Strings,
    /// Whether what was read is read again. Tests show what happens otherwise.
    check: bool,
    /// In less time R does not collect garbage, so that what a call refers to is still there when it has just returned.
    pub shortest_collection: Duration,
    /// How long the innermost record that was seen first is waited for, if it is gone.
    pub wait: Duration,
}

impl<M: Memory> Reader<M> {
    /// R in the process.
    pub fn target(&self) -> &Target {
        &self.target
    }

    pub fn open(memory: M, mappings: &[Mapping], check: bool) -> Result<Reader<M>> {
        let mut memory = Limited::new(memory, MOST_TO_OPEN);
        let target = Target::open(&mut memory, mappings)?;
        memory.inner().keep_at_hand(&target.variables)?;
        memory
            .inner()
            .keep_at_hand(std::slice::from_ref(&target.node_stack))?;
        Ok(Reader {
            memory: Limited::new(Ahead::new(memory.into_inner(), Order::of(&target)), 0),
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
            outer: Outer::default(),
            texts: Strings::default(),
            check,
            shortest_collection: SHORTEST_COLLECTION,
            wait: WAIT,
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
        self.outer.clear();
        if self.check {
            // The first copy after a pause takes three times as long as the next one.
            self.copy()?;
            if self.read_first()? {
                return Ok(true);
            }
        }
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

    /// Reads a stack of another process with the innermost record that was seen first. If it changes meanwhile, this
    /// record is often there again soon, since most calls are made in loops. To take the next stack that can be read
    /// would give more samples to those that last longer.
    fn read_first(&mut self) -> Result<bool> {
        let begin = Instant::now();
        let Some(innermost) = self.memory.inner().innermost() else {
            return Ok(false);
        };
        let (mut copies, mut unread) = (0, 0);
        let mut outer = None;
        while copies < COPIES
            && unread < UNREAD
            && begin.elapsed() < self.wait
            && !self.memory.is_exhausted()
        {
            // What was noted is only compared with what there is now.
            if outer.is_none() && !self.outer.is_empty() {
                self.copy()?;
            } else if !self.memory.inner().copy_if(innermost)? {
                continue;
            }
            copies += 1;
            let is_read = self.follow(Reading::Second)?;
            unread += usize::from(!is_read);
            if self.calls.head() == innermost && self.finish(is_read)? {
                return Ok(true);
            }
            if outer.is_none() && self.note(is_read)? {
                if !self.stack.lacks_inner {
                    return Ok(true);
                }
                outer = Some(self.stack.clone());
            }
        }
        let Some(outer) = outer else {
            return Ok(false);
        };
        self.stack = outer;
        Ok(true)
    }

    fn attempt(&mut self) -> Result<bool> {
        if !self.check {
            self.memory.inner().do_not_copy();
            let is_read = self.follow(Reading::Second)?;
            return self.finish(is_read);
        }
        let mut is_read = false;
        for number in 1..=COPIES {
            self.copy()?;
            is_read = self.follow(Reading::Second)?;
            if is_read && self.is_settled(number) || number == COPIES {
                break;
            }
            if self.note(is_read)? {
                return Ok(true);
            }
        }
        if self.finish(is_read)? {
            // What was read first counts, if one of its functions has returned.
            if self.outer.goes_on_in(&self.calls) {
                return Ok(true);
            }
            let stack = self.stack.clone();
            if !self.take_outer()? {
                self.stack = stack;
            }
            return Ok(true);
        }
        if self.note(is_read)? {
            return Ok(true);
        }
        let is_read = self.follow(Reading::First)?;
        Ok(self.finish(is_read)? || self.note(is_read)?)
    }

    /// Whether all was copied. What is at hand should also be the same both times, since it takes less time to copy it
    /// again than to find out whether it is a stack.
    fn is_settled(&mut self, number: usize) -> bool {
        let ahead = self.memory.inner();
        let may_move = !ahead.is_own() || number > COPIES / 2;
        ahead.is_complete() && (may_move || ahead.moved().is_empty())
    }

    /// Remembers calls that are not known to be a stack. At the second time, takes those which are, if there are any.
    fn note(&mut self, is_read: bool) -> Result<bool> {
        if !is_read || self.calls.is_cut || self.memory.inner().is_own() {
            return Ok(false);
        }
        if self.outer.is_empty() {
            if self.read_roots()? {
                let age = self.memory.inner().age();
                self.outer.note(&self.roots, self.innermost, age)?;
            }
            return Ok(false);
        }
        self.take_outer()
    }

    fn take_outer(&mut self) -> Result<bool> {
        let Some(innermost) = self.outer.take(&self.calls, &self.known, &mut self.roots)? else {
            return Ok(false);
        };
        self.innermost = innermost;
        self.calls.innermost = None;
        let is_recent = self.outer.age() < self.shortest_collection;
        self.memory.inner().begin_lookup();
        if !is_recent || !self.resolve()? {
            return Ok(false);
        }
        self.stack.lacks_inner = self.outer.lacks_inner;
        Ok(true)
    }

    fn copy(&mut self) -> Result<()> {
        let variables = self.target.addresses.of_stack(self.registers);
        let candidates = self.search.candidates();
        let ahead = self.memory.inner();
        ahead.copy(variables.into_iter().chain(candidates))
    }

    /// Reads the calls. Returns `false` if they are not what they should be.
    fn follow(&mut self, reading: Reading) -> Result<bool> {
        let (memory, target) = (&mut self.memory, &self.target);
        memory.inner().begin(reading);
        if !self.calls.read(memory, target, self.registers)? {
            return Ok(false);
        }
        let ahead = memory.inner();
        ahead.begin_position(self.calls.records())?;
        if let Some(variable) = self.calls.innermost.and_then(Site::variable) {
            ahead.begin_word((Kind::Position, variable))?;
        }
        for variable in self
            .calls
            .calls
            .iter()
            .filter_map(|call| call.site.variable())
        {
            ahead.begin_word((Kind::Caller, variable))?;
        }
        Ok(true)
    }

    /// Finds what the calls say. Returns `false` if they are not those of one moment.
    fn finish(&mut self, is_read: bool) -> Result<bool> {
        let is_read = is_read && self.read_roots()?;
        self.search.observe(self.memory.inner(), &self.target)?;
        let were = self.memory.inner().begin_lookup();
        // What the calls refer to was there when they were copied, and has not been freed since then.
        let is_recent = self.memory.inner().age() < self.shortest_collection;
        let are_right = match were {
            Was::Copied | Was::Late if is_recent => true,
            _ => !self.check || self.calls_are_unchanged()?,
        };
        if !is_read || !are_right || !self.is_stack()? || !self.resolve()? {
            return Ok(false);
        }
        if self.registers.is_none() && self.calls.innermost.is_none() {
            let (memory, target) = (&mut self.memory, &self.target);
            self.registers = self.search.look(memory, target, &self.calls)?;
        }
        Ok(true)
    }

    /// Finds the functions and places, and whether they are those of the calls.
    fn resolve(&mut self) -> Result<bool> {
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

    /// Reads what may be freed when the calls return. Returns `false` if it is not what it should be.
    fn read_roots(&mut self) -> Result<bool> {
        let (memory, target) = (&mut self.memory, &self.target);
        let sites = self.calls.innermost.iter();
        let sites = sites.chain(self.calls.calls.iter().map(|call| &call.site));
        let calls = self.calls.calls.iter().map(|call| call.call);
        let objects = calls.chain(sites.map(|site| site.object()));
        let objects = objects.filter(|&object| object != 0 && object != target.values.nil);
        memory.inner().copy_objects(objects)?;
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
        self.stack.lacks_inner = false;
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
                memory::array(memory, called.call.call)
                    .is_some_and(|cell| is_same(&cell, &called.cell))
                    && called.called_at.exists(memory)
            })
    }
}
