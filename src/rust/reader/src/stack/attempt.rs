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

use crate::running_r::RunningR;
use crate::stack::builtin::Builtin;
use crate::stack::calls::Call;
use crate::stack::calls::{Calls, End, PositionVariables};
use crate::stack::frames::{Cut, Frame, MOST_CALLS, OnStack, Package, Place, Stack};
use crate::stack::innermost::PositionSearch;
use crate::stack::missing::{Missing, Read, split_missing};
use crate::stack::names::{Found, Names};
use crate::stack::packages::Packages;
use crate::stack::places::{Places, Root};
use crate::stack::snapshot::Snapshot;
use crate::stack::trunk::{Known, NEAR, Trunk};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_core::model::{StringId, Strings};
use profile_runtime::contexts::BUILTIN;
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

/// How much an attempt reads at one moment. What is missing then is read later: [`StackReader::finish`].
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The number of calls.
    pub calls: usize,
    /// The limit on what is read of the memory, for the calls, and for what they refer to.
    pub memory: u64,
}

/// Reads the stack of R in a process, repeatedly.
#[derive(Debug)]
pub struct StackReader<M> {
    pub(crate) snapshot: Snapshot<M>,
    pub(crate) r: RunningR,
    pub(crate) calls: Calls,
    /// The calls that were looked up, innermost first.
    pub(crate) known: Vec<Known>,
    /// Where the innermost function is, and the builtin that it calls.
    pub(crate) inside: (Option<Place>, Option<StringId>),
    pub(crate) trunk: Trunk,
    /// The row of the seam among the calls, if the stack lacks outer calls that can be read later.
    pub(crate) seam: Option<usize>,
    pub(crate) names: Names,
    pub(crate) places: Places,
    pub(crate) packages: Packages,
    pub(crate) search: PositionSearch,
    pub(crate) registers: Option<PositionVariables>,
    /// The number of stacks for which the variable `R_Srcref` was unknown.
    pub(crate) without_srcref: u32,
    pub(crate) stack: Stack,
    /// What was missing in the last attempt.
    pub(crate) missing: Option<Missing>,
    /// The names of functions and files.
    pub texts: Strings,
    /// The minimum time of a garbage collection. Within this time, the objects of a call still exist, even if the
    /// call has just returned.
    pub shortest_collection: Duration,
}

impl<M: Memory> StackReader<M> {
    /// Reads the stack, or its inner calls. Returns `false` if a part of it is missing, because the process has changed
    /// meanwhile, or its memory is damaged. Keeps the names and places that were looked up, if they are right.
    pub(crate) fn attempt(&mut self, moment: OneMoment, bounds: Bounds) -> Result<bool> {
        self.seam = None;
        self.known.clear();
        let read = self.read_inner(moment, bounds);
        self.missing = match split_missing(read)? {
            // What is beyond the limit looks like memory that cannot be read.
            Err(_) if self.snapshot.is_exhausted() => Some(Missing::TooMuch),
            read => read.err(),
        };
        let is_read = self.missing.is_none();
        // If the limit was reached, some places may be unknown only for that reason.
        if is_read && !self.snapshot.is_exhausted() {
            self.keep()
        } else {
            self.forget()
        }
        if is_read {
            self.assemble()?;
        }
        Ok(is_read)
    }

    /// Reads the inner calls, and looks up what they refer to.
    fn read_inner(&mut self, mut moment: OneMoment, bounds: Bounds) -> Read<()> {
        self.snapshot.limit(bounds.memory);
        self.read_calls(&mut moment, bounds)?;
        self.snapshot.limit(bounds.memory);
        self.look_up_inside()?;
        match moment {
            OneMoment::Still(is_still) => {
                self.look_up(None)?;
                if !is_still() {
                    return Err(Missing::OneMoment.into());
                }
            }
            OneMoment::Held(_) | OneMoment::Twice => self.look_up_quickly()?,
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
    fn read_calls(&mut self, moment: &mut OneMoment, bounds: Bounds) -> Read<()> {
        let (snapshot, r) = (&mut self.snapshot, &self.r);
        let (registers, trunk) = (self.registers, &mut self.trunk);
        let depth = (NEAR, bounds.calls);
        let read = self.calls.read(snapshot, r, registers, depth, trunk);
        let is_one_moment = match moment {
            OneMoment::Still(_) => true,
            // Whether they could be read or not, it goes on.
            OneMoment::Held(let_go) => let_go(),
            OneMoment::Twice => read.is_ok() && snapshot.is_unchanged()?,
        };
        read?;
        if !is_one_moment {
            return Err(Missing::OneMoment.into());
        }
        Ok(())
    }

    /// Reads the outer calls that the last stack lacks, if they are still those of that moment. The process may go on.
    pub fn finish(&mut self) -> Result<()> {
        let Some(seam) = self.seam else {
            return Ok(());
        };
        let known = self.known.len();
        self.snapshot.complete();
        self.snapshot.limit(MOST_LATER);
        let read = self.read_outer(seam);
        if split_missing(read)?.is_ok() {
            self.seam = None;
            self.keep();
        } else {
            self.known.truncate(known);
            self.trunk.keep(0);
            self.forget();
        }
        self.assemble()
    }

    /// Reads the calls outside of the seam, as long as it has not changed.
    fn read_outer(&mut self, seam: usize) -> Read<()> {
        let seam = self.calls.calls.get(seam).copied();
        let seam = seam.ok_or(Missing::OneMoment)?;
        loop {
            self.look_up(None)?;
            if !self.snapshot.is_still(seam.record.address, seam.identity) {
                return Err(Missing::OneMoment.into());
            }
            let (calls, trunk) = (&mut self.calls, &mut self.trunk);
            if calls.end != End::More || calls.are_too_many() {
                return Ok(());
            }
            let most = MOST_CALLS.min(calls.calls.len() + LATER);
            calls.read_on(&mut self.snapshot, &self.r, most, trunk)?;
        }
    }

    fn keep(&mut self) {
        self.names.keep();
        self.places.keep();
        self.packages.keep();
    }

    fn forget(&mut self) {
        self.names.forget();
        self.places.forget();
        self.packages.forget();
    }

    /// Looks up where the innermost function is.
    fn look_up_inside(&mut self) -> Result<()> {
        let Some(site) = self.calls.innermost else {
            self.inside = (None, None);
            return Ok(());
        };
        let root = Root::find(&mut self.snapshot, &self.r, site)?;
        let called_at = match self.calls.calls.first() {
            Some(call) => Root::find(&mut self.snapshot, &self.r, call.site)?,
            None => Root::Nothing,
        };
        // When a function has just been called, R's position is still that of its caller, at the call.
        let is_at_call = matches!(root, Root::Code { .. }) && called_at == root;
        self.inside = if is_at_call {
            (None, None)
        } else {
            self.place_of(root, 0)?
        };
        Ok(())
    }

    /// Looks up the functions and places of calls of a process that goes on.
    fn look_up_quickly(&mut self) -> Read<()> {
        // The objects that the calls refer to existed when the records were read. If that is recent, they have not been
        // freed since. Otherwise, they still exist if the call does, which all calls further out then do as well.
        let most = self.shortest_collection;
        self.look_up(Some(most))?;
        let first_late = self.calls.calls.get(self.known.len()).copied();
        let are_all_late = self.known.is_empty() && self.snapshot.age() >= most;
        let read = self.look_up(None);
        let do_exist = match first_late {
            _ if are_all_late => self.snapshot.is_unchanged()?,
            Some(call) => self.snapshot.is_still(call.record.address, call.identity),
            None => true,
        };
        if !do_exist {
            return Err(Missing::OneMoment.into());
        }
        read
    }

    /// Looks up the functions and places of further calls, as far as the limit allows, and before the snapshot has this age,
    /// if one is given.
    fn look_up(&mut self, age: Option<Duration>) -> Read<()> {
        for number in self.known.len()..self.calls.calls.len() {
            let Some(&call) = self.calls.calls.get(number) else {
                break;
            };
            let found = self
                .names
                .name_of_call(&mut self.snapshot, call.call, &mut self.texts)?;
            let name = match found {
                Found::Name(name) => Some(self.unique_name(name, call.function)?),
                // Like `Rprof()`, omits what is not a call.
                Found::Nothing => None,
                Found::Damaged if self.snapshot.is_exhausted() => break,
                Found::Damaged => return Err(Missing::Call(number).into()),
            };
            let package = self.package_of(call)?;
            let called_at = Root::find(&mut self.snapshot, &self.r, call.site)?;
            let (place, builtin) = self.place_of(called_at, call.call)?;
            let is_late = age.is_some_and(|age| self.snapshot.age() >= age);
            if is_late || self.snapshot.is_exhausted() {
                break;
            }
            self.known.try_push(Known {
                record: call.record,
                identity: call.identity,
                name,
                package,
                builtin,
                place,
            })?;
        }
        Ok(())
    }

    /// The name of a function. If many have it, the place where this one was defined is added.
    fn unique_name(&mut self, name: StringId, function: u64) -> Result<StringId> {
        if !Names::is_common(self.texts.get(name)) {
            return Ok(name);
        }
        let definition = self.places.find_definition(
            &mut self.snapshot,
            &self.r,
            function,
            &mut self.names,
            &mut self.texts,
        )?;
        match definition {
            Some(place) => self.names.at(place, name, &mut self.texts),
            None => Ok(name),
        }
    }

    /// The package of the function that was called.
    fn package_of(&mut self, call: Call) -> Result<Package> {
        if u32::from(call.record.flags) & BUILTIN != 0 {
            return Packages::of_builtins(&mut self.texts);
        }
        let (snapshot, r) = (&mut self.snapshot, &self.r);
        self.packages
            .find(snapshot, r, call.function, &mut self.texts)
    }

    /// The place of a site, and the builtin that is called there, unless this call has a record: `inner` is the address of
    /// the recorded call.
    fn place_of(&mut self, site: Root, inner: u64) -> Result<(Option<Place>, Option<StringId>)> {
        let (place, builtin) = self.places.find(
            &mut self.snapshot,
            &self.r,
            site,
            &mut self.names,
            &mut self.texts,
        )?;
        let builtin = builtin.filter(|builtin: &Builtin| builtin.call != inner);
        Ok((place, builtin.map(|builtin| builtin.name)))
    }

    /// Puts the stack together.
    fn assemble(&mut self) -> Result<()> {
        let (known, trunk, stack) = (&self.known, &mut self.trunk, &mut self.stack);
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
        stack.span = match self.snapshot.span() {
            Some(record) => record.parse(&mut self.texts)?,
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
        let (mut place, builtin) = self.inside;
        let of_builtins = Packages::of_builtins(&mut self.texts)?;
        let mut add = |name, place, package, record| {
            stack.frames.try_push(Frame {
                name,
                place,
                package,
            })?;
            stack.records.try_push(record)
        };
        if let Some(name) = builtin {
            add(name, None, of_builtins, OnStack::default())?;
        }
        for call in calls.take(MOST_CALLS) {
            if let Some(name) = call.name {
                add(name, place, call.package, call.record)?;
            }
            if let Some(name) = call.builtin {
                add(name, None, of_builtins, OnStack::default())?;
            }
            place = call.place;
        }
        stack.toplevel = place.filter(|_| stack.cut.is_none());
        // A stack that grows further and further is read anew now and then.
        if trunk.count() > 2 * MOST_CALLS {
            trunk.keep(0);
        }
        Ok(())
    }
}
