//! Who else refers to an object that R copies before it modifies it. Variables of the running calls, of the functions around
//! them and of the global environment are compared with the object, and so are elements of lists and variables of
//! environments one level deep, attributes and `...`.

use super::names;
use super::reasons::{Holder, MODIFIED, MOST_NAMED, Scope, sentence};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned, written};
use profile_reader::running_r::{Environments, RunningR};
use profile_runtime::byte_code::length;
use profile_runtime::contexts::{CALL, CALLFUN, CLOENV, Walk};
use profile_runtime::memory::{self, Memory, at};
use profile_runtime::objects::{
    ALTREP, CAR, CDR, CELL, CHARSXP, CLOSXP, DATA, DOTSXP, ENCLOSING, ENVSXP, EXTRA, FRAME,
    HASHTAB, LENGTH, LISTSXP, PROMSXP, SYMSXP, TAG, Type, VALUE_OF_PROMISE, VECSXP, WRAPPED,
    object_of,
};
use profile_runtime::variables::SRCREF_NAME;

/// The number of holders that are looked for, and bounds of the search: calls, environments, environments around a call,
/// variables, elements of all lists, promises of promises.
const MOST_FOUND: usize = 12;
const MOST_CALLS: usize = 100;
const MOST_ENVIRONMENTS: usize = 100;
const MOST_AROUND: usize = 3;
const MOST_VARIABLES: usize = 5_000;
const MOST_ELEMENTS: u64 = 20_000;
const MOST_PROMISES: usize = 5;
/// R's own variable for the object that an assignment such as `x[i] <- value` modifies.
const OF_ASSIGNMENT: &str = "*tmp*";
/// The number of references to an object, as far as R counts.
const REFERENCES: u32 = 32;

/// A call that runs, or code that is evaluated in an environment.
#[derive(Debug, Clone, Copy)]
struct Call {
    environment: u64,
    call: u64,
    is_closure: bool,
    /// Whether its code has lines.
    has_lines: bool,
}

struct Search<'m, M> {
    memory: &'m mut M,
    nil: u64,
    environments: Option<Environments>,
    object: u64,
    /// The innermost first, with different environments.
    calls: Vec<Call>,
    found: Vec<Holder>,
    seen: Vec<u64>,
    /// The numbers of variables and elements that may still be looked at.
    left: usize,
    elements_left: u64,
}

/// The reason as a sentence, such as "`x` is also `y`". `None` if no reference to the object is found.
pub fn reason(memory: &mut impl Memory, r: &RunningR, object: u64) -> Result<Option<String>> {
    let Some((_, innermost)) = r.head.read(memory) else {
        return Ok(None);
    };
    let mut search = Search {
        memory,
        nil: r.values.nil,
        environments: r.environments,
        object,
        calls: Vec::new(),
        found: Vec::new(),
        seen: Vec::new(),
        left: MOST_VARIABLES,
        elements_left: MOST_ELEMENTS,
    };
    search.find_calls(innermost)?;
    search.search()?;
    sentence(search.found)
}

impl<M: Memory> Search<'_, M> {
    fn is_enough(&self) -> bool {
        self.found.len() >= MOST_FOUND || self.left == 0 || self.seen.len() >= MOST_ENVIRONMENTS
    }

    fn is_global(&self, environment: u64) -> bool {
        self.environments
            .is_some_and(|own| own.global == environment)
    }

    /// Lists the calls that run.
    fn find_calls(&mut self, innermost: u64) -> Result<()> {
        let mut walk = Walk::new(innermost);
        while let Some((record, head)) = walk.next_head(self.memory) {
            if self.calls.len() >= MOST_CALLS {
                break;
            }
            if !head.is_call_of_closure() {
                continue;
            }
            let words =
                [CALL, CLOENV, CALLFUN].map(|field| memory::word(self.memory, record + field));
            let [Some(call), Some(environment), Some(function)] = words else {
                continue;
            };
            let closure = object_of(self.memory, function, CLOSXP);
            let has_lines = match &closure {
                Some(closure) => {
                    names::attribute(self.memory, closure, |name, _| name == SRCREF_NAME)?.is_some()
                }
                // Code outside of functions.
                None => self.is_global(environment),
            };
            let found = Call {
                environment,
                call,
                is_closure: closure.is_some(),
                has_lines,
            };
            let known = |known: &&mut Call| known.environment == environment;
            match self.calls.iter_mut().find(known) {
                // `eval()` has evaluated code in the environment of this call.
                Some(known) if found.is_closure && !known.is_closure => *known = found,
                Some(_) => {}
                None => self.calls.try_push(found)?,
            }
        }
        Ok(())
    }

    /// Searches the variables of the calls, up to the one whose line is shown, and further if few are found.
    fn search(&mut self) -> Result<()> {
        let shown = self.calls.iter().position(|call| call.has_lines);
        let shown = shown.unwrap_or(0);
        for number in 0..self.calls.len() {
            if self.is_enough() || number > shown && self.found.len() >= MOST_NAMED {
                break;
            }
            self.search_call(number, number == shown)?;
        }
        Ok(())
    }

    /// Searches the environment of a call, and those around it that do not belong to another call.
    fn search_call(&mut self, number: usize, is_shown: bool) -> Result<()> {
        let Some(&call) = self.calls.get(number) else {
            return Ok(());
        };
        let mut environment = call.environment;
        for around in 0..=MOST_AROUND {
            let object = object_of(self.memory, environment, ENVSXP);
            let Some(object) = object.filter(|_| !self.seen.contains(&environment)) else {
                break;
            };
            let mut others = self.calls.iter().enumerate();
            if others.any(|(other, call)| other != number && call.environment == environment) {
                break;
            }
            self.seen.try_push(environment)?;
            let is_global = self.is_global(environment);
            let is_hashed = at(&object, HASHTAB) != self.nil;
            // Namespaces and packages are hashed, and no copy is made because of them.
            if is_hashed && !is_global && around > 0 {
                break;
            }
            let scope = if is_global {
                Scope::Global
            } else if around > 0 {
                Scope::Enclosing
            } else {
                let name = names::of_call(self.memory, call.call)?;
                Scope::Call { number, name }
            };
            let before = self.found.len();
            let is_of_assignment =
                self.search_environment(&object, &mut |search, value, name| match search
                    .name_within(value, name)?
                {
                    Some(holder) => search.found.try_push(Holder {
                        scope: scope.clone(),
                        is_shown,
                        ..holder
                    }),
                    None => Ok(()),
                })?;
            if is_of_assignment && self.found.len() == before {
                let holder = self.holder(owned(MODIFIED)?, self.object, None);
                self.found.try_push(Holder {
                    scope,
                    is_shown,
                    ..holder
                })?;
            }
            if is_global || self.is_enough() {
                break;
            }
            environment = at(&object, ENCLOSING);
        }
        Ok(())
    }

    /// Passes the variables of an environment: their values and names. Returns whether an assignment modifies the object.
    fn search_environment(
        &mut self,
        environment: &[u8; CELL],
        visit: &mut dyn FnMut(&mut Self, u64, String) -> Result<()>,
    ) -> Result<bool> {
        let table = at(environment, HASHTAB);
        let mut is_of_assignment = false;
        if table != self.nil {
            let count = length(self.memory, table, VECSXP).unwrap_or(0);
            for number in 0..count {
                let chain = memory::word(self.memory, table + DATA as u64 + 8 * number);
                is_of_assignment |= self.search_variables(chain.unwrap_or(0), visit)?;
            }
        }
        Ok(is_of_assignment | self.search_variables(at(environment, FRAME), visit)?)
    }

    /// Passes a list of variables.
    fn search_variables(
        &mut self,
        mut cell: u64,
        visit: &mut dyn FnMut(&mut Self, u64, String) -> Result<()>,
    ) -> Result<bool> {
        let mut is_of_assignment = false;
        while let Some(variable) = object_of(self.memory, cell, LISTSXP) {
            if self.is_enough() {
                break;
            }
            self.left -= 1;
            cell = at(&variable, CDR);
            if let Some(value) = self.value_of(&variable) {
                let name = names::of_symbol(self.memory, at(&variable, TAG))?;
                if name != OF_ASSIGNMENT {
                    visit(self, value, name)?;
                } else if value == self.object {
                    is_of_assignment = true;
                }
            }
        }
        Ok(is_of_assignment)
    }

    /// The value in a cell: that of a promise, if there is one. `None` for a number that has no object.
    fn value_of(&mut self, cell: &[u8; CELL]) -> Option<u64> {
        if at(cell, 0) >> EXTRA != 0 {
            return None;
        }
        let mut value = at(cell, CAR);
        for _ in 0..MOST_PROMISES {
            let Some(promise) = object_of(self.memory, value, PROMSXP) else {
                return Some(value);
            };
            if at(&promise, 0) >> EXTRA != 0 {
                return None;
            }
            value = at(&promise, VALUE_OF_PROMISE);
        }
        None
    }

    /// Whether R counts several references to an object.
    fn is_shared(&mut self, object: u64) -> bool {
        let word = memory::word(self.memory, object).unwrap_or(0);
        (word >> REFERENCES) & 0xffff > 1
    }

    /// Whether a value is the object. R wraps an object that it may have to copy, and copies it when it is modified: then the
    /// wrapper refers to it.
    fn is_object(&mut self, value: u64) -> bool {
        value == self.object
            || memory::array::<CELL>(self.memory, value).is_some_and(|object| {
                at(&object, 0) & ALTREP != 0 && at(&object, WRAPPED) == self.object
            })
    }

    /// A holder of the object, without its scope.
    fn holder(&mut self, name: String, value: u64, environment: Option<String>) -> Holder {
        Holder {
            name,
            scope: Scope::Enclosing,
            is_shown: false,
            is_shared: self.is_shared(value),
            environment,
        }
    }

    /// How a variable with this value refers to the object, if it does.
    fn name_within(&mut self, value: u64, name: String) -> Result<Option<Holder>> {
        if self.is_object(value) {
            let name = written(format_args!("`{name}`"))?;
            return Ok(Some(self.holder(name, value, None)));
        }
        let Some(object) = memory::array::<CELL>(self.memory, value) else {
            return Ok(None);
        };
        let wanted = self.object;
        let found = match Type::of(at(&object, 0)) {
            DOTSXP => {
                let mut cell = value;
                loop {
                    let Some(element) = object_of(self.memory, cell, DOTSXP) else {
                        break None;
                    };
                    if self.value_of(&element) == Some(wanted) {
                        break Some(owned("`...`")?);
                    }
                    cell = at(&element, CDR);
                }
            }
            VECSXP if at(&object, 0) & ALTREP == 0 => {
                let count = at(&object, LENGTH).min(self.elements_left);
                self.elements_left -= count;
                let element = (0..count).find(|number| {
                    let element = memory::word(self.memory, value + DATA as u64 + 8 * number);
                    element == Some(wanted)
                });
                match element {
                    Some(number) => Some(names::of_element(self.memory, &object, number, &name)?),
                    None => self.attribute(&object, &name)?,
                }
            }
            ENVSXP => return self.name_in_environment(value, &object, &name),
            SYMSXP | CHARSXP | PROMSXP => None,
            _ => self.attribute(&object, &name)?,
        };
        Ok(found.map(|name| self.holder(name, wanted, None)))
    }

    /// A variable of an environment that is a variable's value, such as `private$field`.
    fn name_in_environment(
        &mut self,
        address: u64,
        environment: &[u8; CELL],
        name: &str,
    ) -> Result<Option<Holder>> {
        // Those of calls and of functions are searched themselves.
        if self.seen.contains(&address)
            || self.is_global(address)
            || self.calls.iter().any(|call| call.environment == address)
        {
            return Ok(None);
        }
        self.seen.try_push(address)?;
        let shared = self.is_shared(address).then(|| owned(name)).transpose()?;
        let mut found = None;
        self.search_environment(environment, &mut |search, value, variable| {
            if found.is_none() && search.is_object(value) {
                let name = written(format_args!("`{name}${variable}`"))?;
                found = Some(search.holder(name, value, shared.clone()));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The attribute that is the object.
    fn attribute(&mut self, object: &[u8; CELL], name: &str) -> Result<Option<String>> {
        let wanted = self.object;
        let found = names::attribute(self.memory, object, |_, value| value == wanted)?;
        let text = |(attribute, _)| written(format_args!("attribute `{attribute}` of `{name}`"));
        found.map(text).transpose()
    }
}
