//! One attempt to read a stack: copies the records of R's calls and what they refer to, and looks up functions and
//! places.
//!
//! ```text
//! at one moment: innermost calls ──► their functions and places ──┬──► known from the last stack on (`trunk`) ──► stack
//!                                                                 └──► later: further calls ──► seam unchanged? ──► stack
//! ```
//!
//! In a deep stack, the calls further out are read after a process that was stopped goes on. They are right if the outermost
//! call of those that were read at one moment, the seam, is still there afterwards: calls end from the inside out. If it is
//! not, the stack lacks these calls.

use crate::stack::calls::{Calls, End};
use crate::stack::frames::{Cut, Frame, MOST_CALLS, OnStack, Stack, Where};
use crate::stack::kept::Kept;
use crate::stack::missing::{Missing, Read, split_missing};
use crate::stack::names::Found;
use crate::stack::packages::Packages;
use crate::stack::places::Root;
use crate::stack::trunk::{KnownCall, NEAR};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_core::model::StringId;
use profile_runtime::memory::Memory;
use std::time::Duration;

/// The limit on what is read of the memory for outer calls of a process that goes on. It suffices for ten times as many as
/// are read.
const MOST_LATER: u64 = 1 << 20;

/// The number of outer calls that are read before it is checked whether they are still those of that moment.
const LATER: usize = 1000;

/// How an attempt knows that the records and variables it has read are of one moment.
pub enum OneMoment<'h> {
    /// The process stands still until all is looked up, if this function confirms it then.
    Still(&'h mut dyn FnMut() -> bool),
    /// It was held until this is called, which returns whether it really was.
    Held(&'h mut dyn FnMut() -> bool),
    /// They are the same when they are read again.
    Twice,
}

/// How much an attempt reads at one moment. What is missing then is read later: [`Attempt::finish`].
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The number of calls.
    pub calls: usize,
    /// The limit on what is read of the memory, for the calls, and for what they refer to.
    pub memory: u64,
    /// The minimum time of a garbage collection. Within this time, the objects of a call still exist, even if the
    /// call has just returned.
    pub collection: Duration,
}

/// An attempt to read a stack: the calls that were read, and what was looked up for them. The next one reuses its memory.
#[derive(Debug, Default)]
pub struct Attempt {
    pub calls: Calls,
    /// The calls that were looked up, innermost first.
    known: Vec<KnownCall>,
    /// Where the innermost function is, and the builtin that it calls.
    inside: (Where, Option<StringId>),
    /// The row of the seam among the calls, if the stack lacks outer calls that can be read later.
    seam: Option<usize>,
}

impl Attempt {
    /// Reads the stack, or its inner calls. Returns what is missing, if there is no stack because the process has changed
    /// meanwhile, or its memory is damaged. Keeps the names and places that were looked up, if they are right.
    pub fn read<M: Memory>(
        &mut self,
        kept: &mut Kept<M>,
        moment: OneMoment,
        bounds: Bounds,
    ) -> Result<Option<Missing>> {
        self.seam = None;
        self.known.clear();
        let read = self.read_inner(kept, moment, bounds);
        let is_exhausted = kept.snapshot.is_exhausted();
        let missing = match split_missing(read)? {
            // What is beyond the limit looks like memory that cannot be read.
            Err(_) if is_exhausted => Some(Missing::TooMuch),
            read => read.err(),
        };
        // If the limit was reached, some places may be unknown only for that reason.
        if missing.is_none() && !is_exhausted {
            kept.keep()
        } else {
            kept.forget()
        }
        Ok(missing)
    }

    /// Reads the inner calls, and looks up what they refer to.
    fn read_inner<M: Memory>(
        &mut self,
        kept: &mut Kept<M>,
        mut moment: OneMoment,
        bounds: Bounds,
    ) -> Read<()> {
        kept.snapshot.limit(bounds.memory);
        self.read_calls(kept, &mut moment, bounds)?;
        kept.snapshot.limit(bounds.memory);
        self.look_up_inside(kept)?;
        match moment {
            OneMoment::Still(is_still) => {
                self.look_up(kept, None)?;
                if !is_still() {
                    return Err(Missing::OneMoment.into());
                }
            }
            OneMoment::Held(_) | OneMoment::Twice => {
                self.look_up_quickly(kept, bounds.collection)?
            }
        }
        if self.known.is_empty() && !self.calls.calls.is_empty() {
            return Err(Missing::TooMuch.into());
        }
        let is_more = self.calls.end == End::More && !self.calls.are_too_many();
        self.seam = match self.known.len() {
            known if known < self.calls.calls.len() => Some(known),
            known if is_more => known.checked_sub(1),
            _ => None,
        };
        Ok(())
    }

    /// Reads the records of the inner calls, of one moment.
    fn read_calls<M: Memory>(
        &mut self,
        kept: &mut Kept<M>,
        moment: &mut OneMoment,
        bounds: Bounds,
    ) -> Read<()> {
        let read = kept.read_calls(&mut self.calls, (NEAR, bounds.calls));
        let is_one_moment = match moment {
            OneMoment::Still(_) => true,
            // Whether they could be read or not, it goes on.
            OneMoment::Held(let_go) => let_go(),
            OneMoment::Twice => read.is_ok() && kept.snapshot.is_unchanged()?,
        };
        read?;
        if !is_one_moment {
            return Err(Missing::OneMoment.into());
        }
        Ok(())
    }

    /// Reads the outer calls that the last stack lacks, if they are still those of that moment. The process may go on. Returns
    /// whether the stack lacked any.
    pub fn finish<M: Memory>(&mut self, kept: &mut Kept<M>) -> Result<bool> {
        let Some(seam) = self.seam else {
            return Ok(false);
        };
        let known = self.known.len();
        kept.snapshot.complete();
        kept.snapshot.limit(MOST_LATER);
        let read = self.read_outer(kept, seam);
        if split_missing(read)?.is_ok() {
            self.seam = None;
            kept.keep();
        } else {
            self.known.truncate(known);
            kept.trunk.keep(0);
            kept.forget();
        }
        Ok(true)
    }

    /// Reads the calls outside of the seam, as long as it has not changed.
    fn read_outer<M: Memory>(&mut self, kept: &mut Kept<M>, seam: usize) -> Read<()> {
        let seam = self.calls.calls.get(seam).copied();
        let seam = seam.ok_or(Missing::OneMoment)?;
        loop {
            self.look_up(kept, None)?;
            if !kept.snapshot.is_still(seam.record.address, seam.identity) {
                return Err(Missing::OneMoment.into());
            }
            let calls = &mut self.calls;
            if calls.end != End::More || calls.are_too_many() {
                return Ok(());
            }
            let most = MOST_CALLS.min(calls.calls.len() + LATER);
            calls.read_on(&mut kept.snapshot, &kept.r, most, &mut kept.trunk)?;
        }
    }

    /// Looks up where the innermost function is.
    fn look_up_inside<M: Memory>(&mut self, kept: &mut Kept<M>) -> Result<()> {
        let Some(site) = self.calls.innermost else {
            self.inside = (Where::default(), None);
            return Ok(());
        };
        let root = kept.root(site)?;
        let called_at = match self.calls.calls.first() {
            Some(call) => kept.root(call.site)?,
            None => Root::Nothing,
        };
        // When a function has just been called, R's position is still that of its caller, at the call.
        let is_at_call = matches!(root, Root::Code { .. }) && called_at == root;
        self.inside = if is_at_call {
            (Where::default(), None)
        } else {
            kept.place_of(root, 0)?
        };
        Ok(())
    }

    /// Looks up the functions and places of calls of a process that goes on.
    fn look_up_quickly<M: Memory>(&mut self, kept: &mut Kept<M>, collection: Duration) -> Read<()> {
        // The objects that the calls refer to existed when the records were read. If that is recent, they have not been
        // freed since. Otherwise, they still exist if the call does, which all calls further out then do as well.
        self.look_up(kept, Some(collection))?;
        let first_late = self.calls.calls.get(self.known.len()).copied();
        let are_all_late = self.known.is_empty() && kept.snapshot.age() >= collection;
        let read = self.look_up(kept, None);
        let do_exist = match first_late {
            _ if are_all_late => kept.snapshot.is_unchanged()?,
            Some(call) => kept.snapshot.is_still(call.record.address, call.identity),
            None => true,
        };
        if !do_exist {
            return Err(Missing::OneMoment.into());
        }
        read
    }

    /// Looks up the functions and places of further calls, as far as the limit allows, and before the snapshot has this age,
    /// if one is given.
    fn look_up<M: Memory>(&mut self, kept: &mut Kept<M>, age: Option<Duration>) -> Read<()> {
        for number in self.known.len()..self.calls.calls.len() {
            let Some(&call) = self.calls.calls.get(number) else {
                break;
            };
            let name = match kept.name_of_call(call.call)? {
                Found::Name(name) => {
                    let caller = self.calls.calls.get(number + 1).copied();
                    Some((kept.defined_name(name, call, caller)?, name))
                }
                // Like `Rprof()`, omits what is not a call.
                Found::Nothing => None,
                Found::Damaged if kept.snapshot.is_exhausted() => break,
                Found::Damaged => return Err(Missing::Call(number).into()),
            };
            let package = kept.package_of(call)?;
            let name = match name {
                Some((name, called)) => {
                    Some((kept.with_title(name, package, call.environment)?, called))
                }
                None => None,
            };
            let called_at = kept.root(call.site)?;
            let (at, builtin) = kept.place_of(called_at, call.call)?;
            let is_late = age.is_some_and(|age| kept.snapshot.age() >= age);
            if is_late || kept.snapshot.is_exhausted() {
                break;
            }
            self.known.try_push(KnownCall {
                record: call.record,
                identity: call.identity,
                name,
                package,
                builtin,
                at,
            })?;
        }
        Ok(())
    }

    /// Puts the stack together.
    pub fn assemble<M: Memory>(&self, kept: &mut Kept<M>, stack: &mut Stack) -> Result<()> {
        let (known, trunk) = (&self.known, &mut kept.trunk);
        let is_finished = self.seam.is_none();
        if is_finished {
            let shared = match self.calls.end {
                End::Known(shared) => shared,
                End::Outermost | End::More => 0,
            };
            trunk.keep(shared);
            for &call in known.iter().skip(NEAR).rev() {
                trunk.push(call)?;
            }
            if self.calls.end == End::More {
                trunk.set_cut();
            }
        }
        stack.frames.clear();
        stack.records.clear();
        stack.span = match kept.snapshot.span() {
            Some(record) => record.parse(&mut kept.texts)?,
            None => None,
        };
        let (near, far) = if is_finished {
            (NEAR, trunk.count())
        } else {
            (known.len(), 0)
        };
        let is_too_deep = trunk.is_cut() || far > MOST_CALLS - NEAR;
        stack.cut = if is_finished {
            is_too_deep.then_some(Cut::TooDeep)
        } else {
            Some(Cut::Late)
        };
        let calls = known.iter().take(near).chain(trunk.calls().take(far));
        let (mut at, builtin) = self.inside;
        let of_builtins = Packages::of_builtins(&mut kept.texts)?;
        let mut add = |(name, called), at: Where, package, record| {
            stack.frames.try_push(Frame {
                name,
                called,
                place: at.place,
                code: at.code,
                package,
            })?;
            stack.records.try_push(record)
        };
        if let Some(name) = builtin {
            add(
                (name, name),
                Where::default(),
                of_builtins,
                OnStack::default(),
            )?;
        }
        for call in calls.take(MOST_CALLS) {
            if let Some(name) = call.name {
                add(name, at, call.package, call.record)?;
            }
            if let Some(name) = call.builtin {
                add(
                    (name, name),
                    Where::default(),
                    of_builtins,
                    OnStack::default(),
                )?;
            }
            at = call.at;
        }
        stack.toplevel = at.place.filter(|_| stack.cut.is_none());
        // A stack that grows further and further is read anew now and then.
        if trunk.count() > 2 * MOST_CALLS {
            trunk.keep(0);
        }
        Ok(())
    }
}
