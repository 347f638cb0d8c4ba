//! R's stack at one moment: functions, files and lines.

use crate::ahead::{Ahead, Reading, Was};
use crate::byte_code::Builtin;
use crate::calls::{Calls, OnStack, Order, Site};
use crate::chain::{Called, Known};
use crate::innermost::{Registers, Search};
use crate::memory::{self, Limited, Memory};
use crate::names::{Found, Names};
use crate::objects::is_same;
use crate::part::Held;
use crate::pieces::Kind;
use crate::places::{Place, Places, Root};
use crate::recent::Recent;
use crate::target::{Mapping, Target};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_core::model::{StringId, Strings};
use std::thread;
use std::time::Duration;

/// The maximum number of attempts to read a stack that either did not change meanwhile, or is known to be consistent
/// nevertheless.
const TRIES: usize = 8;
/// The maximum number of copies in one attempt, until all records were copied.
const COPIES: usize = 8;
/// The maximum number of stacks that are read in preparation, and the number of those whose innermost function is not
/// byte code after which the preparation ends. A sleeping process always has the same stack.
const PREPARATIONS: usize = 40;
const UNNEEDED: usize = 12;
const PAUSE: Duration = Duration::from_micros(500);

/// The minimum time of a garbage collection. A small one in a fresh R session takes 600 microseconds: symbols and
/// base functions have to be marked.
const SHORTEST_COLLECTION: Duration = Duration::from_micros(200);

/// Programs that consist of small functions usually call a function again within this time.
const WAIT: Duration = Duration::from_micros(150);

/// The limits on what is read of the memory, in units of about a microsecond: to find R, to prepare, and for one
/// stack. A stack of 20,000 calls that is seen for the first time takes about a fifth of the last limit.
const MOST_TO_OPEN: u64 = 2 << 20;
const MOST_TO_PREPARE: u64 = 2 << 20;
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
    /// Whether inner frames are missing, because they changed too fast.
    pub lacks_inner: bool,
}

/// Reads the stack of R in a process, repeatedly.
#[derive(Debug)]
pub struct Reader<M> {
    pub(crate) memory: Limited<Ahead<M>>,
    pub(crate) target: Target,
    pub(crate) calls: Calls,
    pub(crate) known: Known,
    names: Names,
    places: Places,
    search: Search,
    registers: Option<Registers>,
    /// The object that determines the place of the innermost function, and the calls.
    pub(crate) innermost: Root,
    pub(crate) roots: Vec<Called>,
    /// The addresses of the objects that places depend on.
    objects: Vec<u64>,
    pub(crate) stack: Stack,
    pub(crate) held: Held,
    pub(crate) recent: Recent,
    /// The names of functions and files.
    pub texts: Strings,
    /// Whether each stack is read a second time and compared. Only tests disable this.
    check: bool,
    /// The minimum time of a garbage collection. Within this time, the objects of a call still exist, even if the
    /// call has just returned.
    pub shortest_collection: Duration,
    /// How long to wait, if only the outer calls of a stack are known, for a stack that begins with the same calls.
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
            objects: Vec::new(),
            stack: Stack::default(),
            held: Held::default(),
            recent: Recent::default(),
            texts: Strings::default(),
            check,
            shortest_collection: SHORTEST_COLLECTION,
            wait: WAIT,
        })
    }

    /// Finds the variables in which R keeps the position of the innermost function, if its code is byte code. Without
    /// them, the first stacks lack this position.
    pub fn prepare(&mut self) -> Result<()> {
        self.prepare_with(|| thread::sleep(PAUSE))
    }

    /// Like `prepare()`, but calls `pause` between two attempts.
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

    /// The current stack; `None` if it changed during all attempts to read it.
    pub fn read(&mut self) -> Result<Option<&Stack>> {
        self.memory.limit(MOST_TO_READ);
        Ok(match self.read_within_limit()? {
            true => Some(&self.stack),
            false => None,
        })
    }

    fn read_within_limit(&mut self) -> Result<bool> {
        if self.check && !self.memory.inner().is_own() {
            return self.read_other();
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

    /// Copies the calls and looks up their functions and places. Returns `false` if they are not a stack.
    pub(crate) fn attempt(&mut self) -> Result<bool> {
        if !self.check {
            self.memory.inner().do_not_copy();
            let is_read = self.follow(Reading::First)?;
            return self.finish(is_read);
        }
        if !self.memory.inner().is_own() {
            self.copy()?;
            let is_read = self.follow(Reading::First)?;
            return self.finish(is_read);
        }
        let mut is_read = false;
        for number in 1..=COPIES {
            self.copy()?;
            is_read = self.follow(Reading::Second)?;
            if is_read && self.is_settled(number) {
                break;
            }
        }
        if self.finish(is_read)? {
            return Ok(true);
        }
        let is_read = self.follow(Reading::First)?;
        self.finish(is_read)
    }

    /// Whether all records and variables were copied and did not change meanwhile. Copying again takes less time than
    /// checking whether changed records are a stack nevertheless, so changes are accepted only after half of the
    /// copies.
    fn is_settled(&mut self, number: usize) -> bool {
        let ahead = self.memory.inner();
        ahead.is_complete() && (number > COPIES / 2 || ahead.moved().is_empty())
    }

    pub(crate) fn copy(&mut self) -> Result<()> {
        let variables = self.target.addresses.of_stack(self.registers);
        let candidates = self.search.candidates();
        let ahead = self.memory.inner();
        ahead.copy(variables.into_iter().chain(candidates))
    }

    /// Reads the calls. Returns `false` if they are invalid.
    fn follow(&mut self, reading: Reading) -> Result<bool> {
        let (memory, target) = (&mut self.memory, &self.target);
        memory.inner().begin(reading);
        self.roots.clear();
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

    /// Looks up the functions and places of the calls. Returns `false` if the calls are not those of one moment.
    fn finish(&mut self, is_read: bool) -> Result<bool> {
        if !is_read || !self.read_roots()? {
            return Ok(false);
        }
        self.search.observe(self.memory.inner(), &self.target)?;
        let were = self.memory.inner().begin_lookup();
        // The objects that the calls refer to existed when the calls were copied. If that is recent, they have not
        // been freed since.
        let is_recent = self.memory.inner().age() < self.shortest_collection;
        let are_right = match were {
            Was::Copied | Was::Late if is_recent => true,
            _ => !self.check || self.calls_are_unchanged()?,
        };
        if !are_right || self.is_later() || !self.is_stack(were)? || !self.resolve()? {
            return Ok(false);
        }
        if self.registers.is_none() && self.calls.innermost.is_none() {
            let (memory, target) = (&mut self.memory, &self.target);
            self.registers = self.search.look(memory, target, &self.calls)?;
        }
        Ok(true)
    }

    /// Finds the functions and places. Returns `false` if they may not be those of the calls.
    pub(crate) fn resolve(&mut self) -> Result<bool> {
        let is_found = self.look_up()?;
        let is_right = match self.memory.inner_ref().was() {
            Was::Copied => true,
            Was::Late | Was::Read => !self.check || self.roots_exist()?,
        };
        self.memory.inner().end();
        // If the limit was reached, some places may be unknown only for that reason.
        if !is_found || !is_right || self.memory.is_exhausted() {
            self.names.forget();
            self.places.forget();
            return Ok(false);
        }
        self.names.keep();
        self.places.keep();
        Ok(true)
    }

    /// Whether the calls belong together, if their records have changed meanwhile. Remembers those that have not.
    fn is_stack(&mut self, were: Was) -> Result<bool> {
        let ahead = self.memory.inner_ref();
        let moved = ahead.moved();
        if were != Was::Read || moved.is_empty() {
            let innermost = ahead.is_steady().then_some(&self.innermost);
            self.known.learn(&self.roots, innermost, &moved.records)?;
        }
        let (known, records) = (&self.known, &moved.records);
        Ok(moved.is_empty() || known.is_stack(&self.roots, &self.innermost, records))
    }

    /// The byte code or the srcref of the innermost function, according to R's variables; 0 if it has none.
    pub(crate) fn code(&self) -> u64 {
        let object = self.calls.innermost.map_or(0, Site::object);
        if object == self.target.values.nil {
            return 0;
        }
        object
    }

    /// Whether the innermost record may be that of a later call than R's variables, which say in which code R is.
    pub(crate) fn is_later(&self) -> bool {
        let code = self.code();
        let may_be_in = |first| code != 0 && self.known.may_be_in(first, code);
        let first = self.roots.first();
        first.is_some_and(|first| !self.memory.inner_ref().is_steady() && !may_be_in(first))
    }

    fn calls_are_unchanged(&mut self) -> Result<bool> {
        self.calls.are_unchanged(&mut self.memory, &self.target)
    }

    /// Reads the objects that may be freed when the calls return. Returns `false` if a call cannot be read.
    fn read_roots(&mut self) -> Result<bool> {
        let (memory, target) = (&mut self.memory, &self.target);
        self.objects.clear();
        let calls = &self.calls.calls;
        let sites = self
            .calls
            .innermost
            .iter()
            .chain(calls.iter().map(|call| &call.site));
        for &site in sites {
            let others = self.places.depends_on(memory, site);
            for object in [Some(site.object())].into_iter().chain(others).flatten() {
                self.objects.try_push(object)?;
            }
        }
        let names = &self.names;
        let calls = calls.iter().map(|call| call.call);
        let heads = calls.clone().flat_map(|call| names.depends_on(call));
        let objects = calls.chain(heads).chain(self.objects.iter().copied());
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
            self.roots.try_push(called)?;
        }
        Ok(true)
    }

    /// Looks up the functions and places of the calls, which do not change while the calls exist. Returns `false` if
    /// an object is damaged.
    fn look_up(&mut self) -> Result<bool> {
        self.stack.frames.clear();
        self.stack.records.clear();
        self.stack.is_cut = self.calls.is_cut;
        self.stack.lacks_inner = false;
        // When a function has just been called, R's position is still that of its caller, at the call.
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
                .of_call(&mut self.memory, call.call, &cell, &mut self.texts)?;
            match found {
                Found::Name(name) => {
                    let frame = Frame { name, place };
                    self.stack.frames.try_push(frame)?;
                    self.stack.records.try_push(call.record)?;
                }
                // Like `Rprof()`, omits what is not a call.
                Found::Nothing => {}
                Found::Damaged => return Ok(false),
            }
            place = self.called_at(called_at, call.call)?;
        }
        self.stack.toplevel = place;
        Ok(true)
    }

    /// The place of a site. If a builtin is called there, a frame is added for it, unless this call has a record of
    /// its own: `inner` is the address of the recorded call.
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
            self.stack.frames.try_push(frame)?;
            self.stack.records.try_push(OnStack::default())?;
        }
        Ok(place)
    }

    /// Whether the objects of the calls and of their code still exist, so that everything that was read from them
    /// belonged to them at that time. The functions may have returned.
    fn roots_exist(&mut self) -> Result<bool> {
        let calls = self.roots.iter().map(|called| called.call.call);
        let sites = self.roots.iter().map(|called| &called.called_at);
        let objects = sites.chain([&self.innermost]).flat_map(Root::objects);
        let memory = &mut self.memory;
        // One system call instead of up to three for each call.
        memory.inner().copy_objects(calls.chain(objects))?;
        let exist = self.innermost.exists(memory)
            && self.roots.iter().all(|called| {
                memory::array(memory, called.call.call)
                    .is_some_and(|cell| is_same(&cell, &called.cell))
                    && called.called_at.exists(memory)
            });
        Ok(exist)
    }
}
