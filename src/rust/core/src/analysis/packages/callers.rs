//! Finds the environments of the functions in a stack, by looking each name up in the environments of its callers.
//!
//! A name alone does not say which function was called: several namespaces may have one of this name. R looks it up where
//! the call is written. This is usually the function of the next outer frame. It is one further out if the call is an
//! argument, which R evaluates when a function that was called in between uses it. Where the environment of a caller is
//! not known, as for `FUN` and `<Anonymous>`, it may be any environment of the profile.

use super::environments::{EnvironmentId, Environments, GLOBAL, Home, NameId, has};
use super::found::Found;
use super::known::{Known, known, known_of_function, name_in_package};
use crate::collections::{Interner, Lists};
use crate::error::Result;
use crate::limits::memory::{TryGrow, TryPut, with_room};
use crate::model::{Function, LocationId, Profile};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The package of R itself.
const BASE: &str = "base";
/// Functions of R that call methods.
const STANDARD_GENERIC: &str = "standardGeneric";
const LOCAL: &str = ".local";
const INITIALIZE: &str = "initialize";

/// The environments that a function may belong to, `None` if it may be any.
pub type Candidates = Option<u32>;

#[derive(Debug, Clone, Copy)]
struct Frame {
    location: LocationId,
    candidates: Candidates,
    /// Where its code is known: the row of its own, or of the function in which it is defined.
    code: Option<usize>,
}

/// Walks along stacks.
pub struct Callers<'a> {
    profile: &'a Profile,
    environments: &'a Environments<'a>,
    known: Vec<Known>,
    /// The names of functions without their package, by location.
    texts: Vec<&'a str>,
    /// Environments to which functions of the profile belong.
    in_use: Vec<EnvironmentId>,
    /// Whether anything depended on them.
    pub used_any: bool,
    sets: Interner<Lists<EnvironmentId>>,
    /// The frames of the current stack that look names up, outermost first, and their number at each location.
    frames: Vec<Frame>,
    path: Vec<(LocationId, usize)>,
    base: Option<EnvironmentId>,
    /// For names that the current stack has, the number of its outermost frames that do not see them.
    unseen: HashMap<NameId, usize, RandomState>,
    /// What functions with unknown callers may be.
    by_any: HashMap<NameId, Option<Candidates>, RandomState>,
}

impl<'a> Callers<'a> {
    pub fn new(profile: &'a Profile, environments: &'a Environments<'a>) -> Result<Callers<'a>> {
        let mut callers = Callers {
            profile,
            environments,
            known: with_room(profile.locations.len())?,
            texts: with_room(profile.locations.len())?,
            in_use: Vec::new(),
            used_any: false,
            sets: Interner::default(),
            frames: Vec::new(),
            path: Vec::new(),
            base: environments.of_package(BASE),
            unseen: HashMap::default(),
            by_any: HashMap::default(),
        };
        callers.add(GLOBAL)?;
        callers.add(environments.start)?;
        for id in profile.locations.ids() {
            let function = profile.function_of(id);
            let text = function.map_or("", |function| name_in_package(profile, &function));
            let known = known(profile, environments, id);
            if let Known::Environment(Some(environment)) | Known::Called(environment) = known {
                callers.add(environment)?;
            }
            callers.known.try_push(known)?;
            callers.texts.try_push(text)?;
        }
        Ok(callers)
    }

    pub fn known(&self, id: LocationId) -> Known {
        self.known.get(id.row()).copied().unwrap_or(Known::Nothing)
    }

    /// The number of environments that functions belong to as far as is known by now. If it grows, what depends on them
    /// may change.
    pub fn in_use(&self) -> usize {
        self.in_use.len()
    }

    /// Forgets the current stack.
    pub fn restart(&mut self) {
        self.path.clear();
        self.frames.clear();
    }

    fn add(&mut self, environment: EnvironmentId) -> Result<()> {
        if !self.in_use.contains(&environment) {
            self.in_use.try_push(environment)?;
            self.by_any.clear();
        }
        Ok(())
    }

    /// Writes to `homes` what is found for the locations of a stack, both innermost first: `None` for those that are not
    /// looked up, otherwise the namespace to which the function belongs, if this is certain.
    pub fn walk(&mut self, stack: &[LocationId], homes: &mut Vec<Option<Home>>) -> Result<()> {
        let outermost = stack.iter().rev();
        let same = outermost
            .zip(&self.path)
            .take_while(|(id, (known, _))| *id == known);
        let same = same.count();
        self.path.truncate(same);
        self.frames
            .truncate(self.path.last().map_or(0, |&(_, frames)| frames));
        self.unseen.clear();
        for &location in stack.iter().rev().skip(same) {
            let frame = match self.known(location) {
                Known::Nothing => None,
                Known::Environment(home) => {
                    let candidates = home.map(|home| self.only(home)).transpose()?;
                    let name = self.environments.name(self.texts[location.row()]);
                    Some(self.frame(location, name, candidates))
                }
                Known::Name(Some(name)) => Some(self.find(name, location)?),
                Known::Called(home) => Some(self.called_from(home, location)?),
                Known::Name(None) => Some(self.frame(location, None, None)),
            };
            if let Some(frame) = frame {
                self.frames.try_push(frame)?;
            }
            self.path.try_push((location, self.frames.len()))?;
        }
        homes.clear();
        for &(location, frames) in self.path.iter().rev() {
            let known = self.known(location);
            let is_looked_up = matches!(known, Known::Name(_) | Known::Called(_));
            let frame = frames.checked_sub(1).filter(|_| is_looked_up);
            homes.try_push(frame.map(|at| self.namespace(self.frames[at].candidates)))?;
        }
        Ok(())
    }

    /// The environment of a function without a stack, if all callers would find the same one.
    pub fn without_caller(&mut self, name: NameId) -> Result<Home> {
        let found = self.by_any(name)?;
        Ok(self.namespace(found.flatten()))
    }

    /// What is known of a function that is R code.
    pub fn known_of_function(&self, function: &Function) -> Known {
        known_of_function(self.profile, self.environments, function)
    }

    /// The only candidate, if it is a namespace.
    fn namespace(&self, candidates: Candidates) -> Home {
        let home = self.single(candidates)?;
        self.environments.package(home).map(|_| home)
    }

    fn single(&self, candidates: Candidates) -> Home {
        match *self.sets.get(candidates?) {
            [only] => Some(only),
            _ => None,
        }
    }

    fn only(&mut self, environment: EnvironmentId) -> Result<u32> {
        self.sets.intern(&[environment])
    }

    /// A frame of a function of an environment that may have code.
    fn frame(&self, location: LocationId, name: Option<NameId>, candidates: Candidates) -> Frame {
        let home = self.single(candidates);
        let code = home.zip(name);
        Frame {
            location,
            candidates,
            code: code.and_then(|(home, name)| self.environments.code(home, name)),
        }
    }

    /// The frame of a function whose call contains its namespace.
    fn called_from(&mut self, home: EnvironmentId, location: LocationId) -> Result<Frame> {
        let text = self.texts[location.row()];
        let name = self.environments.name(text);
        let caller = self
            .frames
            .last()
            .map(|caller| self.texts[caller.location.row()]);
        if let (Some(STANDARD_GENERIC), Some(name)) = (caller, name) {
            let candidates = self.s4_method(name, text)?;
            return Ok(self.frame(location, None, candidates));
        }
        let candidates = Some(self.only(home)?);
        Ok(self.frame(location, name, candidates))
    }

    /// The frame of the function with this name that the current frames call.
    fn find(&mut self, name: NameId, location: LocationId) -> Result<Frame> {
        let frame = self.called(name, location)?;
        if let Some(set) = frame.candidates {
            for row in 0..self.sets.get(set).len() {
                self.add(self.sets.get(set)[row])?;
            }
        }
        Ok(frame)
    }

    fn called(&mut self, name: NameId, location: LocationId) -> Result<Frame> {
        let text = self.texts[location.row()];
        let without_code = |candidates| Frame {
            location,
            candidates,
            code: None,
        };
        if let Some(caller) = self.frames.last().copied() {
            let generic = self.texts[caller.location.row()];
            // Defined by `setMethod()` in each method whose arguments differ from the generic's.
            if text == LOCAL {
                return Ok(without_code(caller.candidates));
            }
            if generic == STANDARD_GENERIC {
                return self.s4_method(name, text).map(without_code);
            }
            // `new()` of R6 calls a method of the class.
            if text == INITIALIZE && generic.ends_with("$new") {
                return Ok(without_code(None));
            }
            let class = text.strip_prefix(generic);
            let code = caller
                .code
                .and_then(|row| self.environments.code_table(row));
            let dispatches = code.is_none_or(|code| code.dispatches);
            if dispatches && class.is_some_and(|class| class.starts_with('.')) {
                if let Some(found) = self.dispatched(name, caller)? {
                    return Ok(self.frame(location, Some(name), found));
                }
            }
        }
        if let Some(found) = self.seen(name, location)? {
            return Ok(found);
        }
        // Methods need not be visible where their generic is called.
        let methods = Found::of(self.environments.methods(name))?;
        let found = self.candidates(methods)?.flatten();
        Ok(self.frame(location, Some(name), found))
    }

    /// What the innermost frame that can call a function of this name finds. `None` if no frame can.
    fn seen(&mut self, name: NameId, location: LocationId) -> Result<Option<Frame>> {
        let is_contested = self.environments.is_contested(name);
        let limit = self.unseen.get(&name).copied().unwrap_or(0);
        for at in (limit..self.frames.len()).rev() {
            let caller = self.frames[at];
            let Some(set) = caller.candidates else {
                if let Some(found) = self.by_any(name)? {
                    return Ok(Some(self.frame(location, Some(name), found)));
                }
                continue;
            };
            let code = caller
                .code
                .and_then(|row| self.environments.code_table(row));
            if code.is_some_and(|code| has(code.locals, name)) {
                // Its code is a part of its caller's.
                return Ok(Some(Frame { location, ..caller }));
            }
            let is_silent = is_contested && code.is_some_and(|code| !has(code.mentions, name));
            let is_argument = code.is_some_and(|code| has(code.arguments, name));
            let found = self.found_from(set, name)?;
            // R does not call an argument that is not a function, and arguments rarely have the name of a visible one.
            if is_argument && (is_contested || !found.is_of_package()) {
                return Ok(Some(self.frame(location, Some(name), None)));
            }
            if is_silent {
                continue;
            }
            if let Some(found) = self.candidates(found)? {
                return Ok(Some(self.frame(location, Some(name), found)));
            }
        }
        self.unseen.try_put(name, self.frames.len())?;
        let from_start = self.environments.visible(self.environments.start, name);
        let mut found = Found::of(from_start.into_iter())?;
        if is_contested {
            // Code that does not mention the name may construct the call.
            for at in 0..self.frames.len() {
                let set = self.frames[at].candidates;
                let set = set.filter(|&set| self.sets.get(set) != self.base.as_slice());
                if let Some(set) = set {
                    found.add_all(&self.found_from(set, name)?)?;
                }
            }
        }
        let found = self.candidates(found)?;
        Ok(found.map(|found| self.frame(location, Some(name), found)))
    }

    /// What functions of these environments find.
    fn found_from(&self, set: u32, name: NameId) -> Result<Found> {
        let all = self.sets.get(set).iter();
        Found::of(all.filter_map(|&environment| self.environments.visible(environment, name)))
    }

    /// What a function of any environment of the profile finds; `None` if none of them finds anything.
    fn by_any(&mut self, name: NameId) -> Result<Option<Candidates>> {
        if !self.environments.is_bound(name) {
            return Ok(None);
        }
        self.used_any = true;
        if let Some(&known) = self.by_any.get(&name) {
            return Ok(known);
        }
        let all = self.in_use.iter();
        let found = all.filter_map(|&environment| self.environments.visible(environment, name));
        let found = Found::of(found)?;
        let found = self.candidates(found)?;
        self.by_any.try_put(name, found)?;
        Ok(found)
    }

    /// The method that `UseMethod()` of the generic `caller` finds: where the generic was called, then among those that
    /// are registered for it.
    fn dispatched(&mut self, name: NameId, generic: Frame) -> Result<Option<Candidates>> {
        let environments = self.environments;
        let before = self.frames.len().checked_sub(2);
        let outer = match before.map(|at| self.frames[at].candidates) {
            None => Some(self.only(environments.start)?),
            Some(candidates) => candidates,
        };
        let mut found = Found::default();
        for at in 0..self.count(outer) {
            let environment = self.environment(outer, at);
            found.add_bound(environments.own(environment, name))?;
        }
        // If the caller is not known, it need not see a method.
        if outer.is_none() || found.is_empty() {
            for at in 0..self.count(generic.candidates) {
                let environment = self.environment(generic.candidates, at);
                found.add_bound(environments.method(environment, name))?;
            }
        }
        self.candidates(found)
    }

    /// The method of an S4 generic, which has the name of the generic and is called by its `standardGeneric()`.
    fn s4_method(&mut self, name: NameId, text: &str) -> Result<Candidates> {
        let generic = self.frames.len().checked_sub(2).map(|at| self.frames[at]);
        let set = generic.filter(|generic| self.texts[generic.location.row()] == text);
        let Some(set) = set.and_then(|generic| generic.candidates) else {
            return Ok(None);
        };
        let mut found = Found::default();
        for &environment in self.sets.get(set) {
            for home in self.environments.s4_methods(environment, name) {
                found.add(home)?;
            }
        }
        Ok(self.candidates(found)?.flatten())
    }

    fn count(&mut self, candidates: Candidates) -> usize {
        match candidates {
            Some(set) => self.sets.get(set).len(),
            None => {
                self.used_any = true;
                self.in_use.len()
            }
        }
    }

    fn environment(&self, candidates: Candidates, at: usize) -> EnvironmentId {
        match candidates {
            Some(set) => self.sets.get(set)[at],
            None => self.in_use[at],
        }
    }

    /// `None` if nothing was found.
    fn candidates(&mut self, mut found: Found) -> Result<Option<Candidates>> {
        if found.is_empty() {
            return Ok(None);
        }
        if found.is_unknown {
            return Ok(Some(None));
        }
        found.environments.sort_unstable();
        self.sets
            .intern(&found.environments)
            .map(|set| Some(Some(set)))
    }
}
