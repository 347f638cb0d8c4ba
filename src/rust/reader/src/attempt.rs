//! One attempt to read a stack: copies the records of R's calls and what they refer to, and looks up functions and
//! places.

use crate::builtin::Builtin;
use crate::calls::{Calls, MOST_CALLS, OnStack, Registers};
use crate::frames::{Frame, Place, Stack};
use crate::innermost::Search;
use crate::memory::Memory;
use crate::names::{Found, Names};
use crate::places::{Places, Root};
use crate::snapshot::Snapshot;
use crate::target::Target;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_core::model::{StringId, Strings};
use std::time::Duration;

/// How an attempt knows that the records and variables it has read are of one moment.
pub enum OneMoment<'h> {
    /// The process stands still.
    Still,
    /// It was held until this is called, which returns whether it really was.
    Held(&'h mut dyn FnMut() -> bool),
    /// They are the same when they are read again.
    Twice,
}

/// The result of an attempt to read a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    Whole,
    /// Outer calls were left out.
    Partial,
    /// The process has changed meanwhile, or its memory is damaged.
    Changed,
}

/// Reads the stack of R in a process, repeatedly.
#[derive(Debug)]
pub struct Reader<M> {
    pub(crate) snapshot: Snapshot<M>,
    pub(crate) target: Target,
    pub(crate) calls: Calls,
    pub(crate) names: Names,
    pub(crate) places: Places,
    pub(crate) search: Search,
    pub(crate) registers: Option<Registers>,
    pub(crate) stack: Stack,
    /// The names of functions and files.
    pub texts: Strings,
    /// The minimum time of a garbage collection. Within this time, the objects of a call still exist, even if the
    /// call has just returned.
    pub shortest_collection: Duration,
}

impl<M: Memory> Reader<M> {
    /// Keeps the names and places that were looked up, if they are right.
    pub(crate) fn attempt(&mut self, moment: OneMoment) -> Result<Attempt> {
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
        self.stack.span = self.snapshot.span();
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
                Found::Name(name) => {
                    let name = self.told_apart(name, call.function)?;
                    self.add(Frame { name, place }, call.record)?;
                }
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

    /// The name of a function. If many have it, the place where this one was defined is added.
    fn told_apart(&mut self, name: StringId, function: u64) -> Result<StringId> {
        if !Names::is_common(self.texts.get(name)) {
            return Ok(name);
        }
        let definition = self.places.of_definition(
            &mut self.snapshot,
            &self.target,
            function,
            &mut self.names,
            &mut self.texts,
        )?;
        match definition {
            Some(place) => self.names.at(place, name, &mut self.texts),
            None => Ok(name),
        }
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
