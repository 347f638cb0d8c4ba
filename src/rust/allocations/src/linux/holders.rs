//! Why R copies an object before it modifies it: who else refers to it. Variables of the running calls, of the functions
//! around them and of the global environment are compared with the object, and so are elements of lists one level deep,
//! attributes and `...`.

use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned, written};
use profile_core::text::decode;
use profile_reader::running_r::{Environments, RunningR};
use profile_runtime::byte_code::length;
use profile_runtime::contexts::{CALL, CLOENV, Walk};
use profile_runtime::memory::{self, Memory, at};
use profile_runtime::objects::{
    ALTREP, ATTRIBUTES, CAR, CDR, CELL, CHARSXP, DATA, DOTSXP, ENCLOSING, ENVSXP, EXTRA, FRAME,
    HASHTAB, LANGSXP, LENGTH, LISTSXP, PRINTNAME, PROMSXP, STRSXP, SYMSXP, TAG, Type,
    VALUE_OF_PROMISE, VECSXP, WRAPPED, object_of,
};

/// A variable or the like that refers to the object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    name: String,
    scope: Scope,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Scope {
    /// A variable of a call, with the name of its function.
    Call(String),
    /// A variable of an environment in which the function of a call was defined.
    Enclosing,
    Global,
}

/// The number of holders that are named, and bounds of the search: environments, environments around a call, variables,
/// elements of a list, promises of promises.
const MOST_NAMED: usize = 3;
const MOST_ENVIRONMENTS: usize = 100;
const MOST_AROUND: usize = 3;
const MOST_VARIABLES: usize = 5_000;
const MOST_ELEMENTS: u64 = 256;
const MOST_PROMISES: usize = 5;
const LONGEST_NAME: u64 = 60;
/// R's own variable for the object that a complex assignment modifies.
const OF_ASSIGNMENT: &str = "*tmp*";

struct Search<'m, M> {
    memory: &'m mut M,
    nil: u64,
    environments: Option<Environments>,
    object: u64,
    found: Vec<Holder>,
    seen: Vec<u64>,
    /// The number of variables that may still be looked at.
    left: usize,
}

/// The reason as a sentence, such as "`x` is also `y`". `None` if fewer than two references to the object are found.
pub fn reason(memory: &mut impl Memory, r: &RunningR, object: u64) -> Result<Option<String>> {
    let Some((_, innermost)) = r.head.read(memory) else {
        return Ok(None);
    };
    let mut search = Search {
        memory,
        nil: r.values.nil,
        environments: r.environments,
        object,
        found: Vec::new(),
        seen: Vec::new(),
        left: MOST_VARIABLES,
    };
    search.calls(innermost)?;
    sentence(&search.found)
}

/// The sentence about the first holder, and the others.
fn sentence(found: &[Holder]) -> Result<Option<String>> {
    let Some((first, others)) = found.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Ok(None);
    };
    let mut text = written(format_args!("{} is also ", first.name))?;
    for (number, other) in others.iter().enumerate() {
        let between = if number == 0 { "" } else { " and " };
        let place = match &other.scope {
            scope if *scope == first.scope => String::new(),
            Scope::Call(function) => written(format_args!(" in `{function}()`"))?,
            Scope::Enclosing => owned(" of the function around it")?,
            Scope::Global => owned(" of the global environment")?,
        };
        text = written(format_args!("{text}{between}{}{place}", other.name))?;
    }
    Ok(Some(text))
}

impl<M: Memory> Search<'_, M> {
    fn is_enough(&self) -> bool {
        self.found.len() >= MOST_NAMED || self.left == 0 || self.seen.len() >= MOST_ENVIRONMENTS
    }

    /// Searches the variables of running calls, the innermost first.
    fn calls(&mut self, innermost: u64) -> Result<()> {
        let mut walk = Walk::new(innermost);
        while let Some((record, head)) = walk.next_head(self.memory) {
            if self.is_enough() {
                break;
            }
            if !head.is_call_of_closure() {
                continue;
            }
            let words = [CALL, CLOENV].map(|field| memory::word(self.memory, record + field));
            if let [Some(call), Some(environment)] = words {
                self.environments(call, environment)?;
            }
        }
        Ok(())
    }

    /// Searches the environment of a call, and those around it.
    fn environments(&mut self, call: u64, mut environment: u64) -> Result<()> {
        for around in 0..=MOST_AROUND {
            let object = object_of(self.memory, environment, ENVSXP);
            let Some(object) = object.filter(|_| !self.seen.contains(&environment)) else {
                break;
            };
            self.seen.try_push(environment)?;
            let is_global = self
                .environments
                .is_some_and(|own| own.global == environment);
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
                Scope::Call(self.name_of_call(call)?)
            };
            if is_hashed {
                let table = at(&object, HASHTAB);
                let count = length(self.memory, table, VECSXP).unwrap_or(0);
                for number in 0..count {
                    let chain = memory::word(self.memory, table + DATA as u64 + 8 * number);
                    self.variables(chain.unwrap_or(0), &scope)?;
                    if self.is_enough() {
                        return Ok(());
                    }
                }
            }
            self.variables(at(&object, FRAME), &scope)?;
            if is_global || self.is_enough() {
                break;
            }
            environment = at(&object, ENCLOSING);
        }
        Ok(())
    }

    /// Searches a list of variables.
    fn variables(&mut self, mut cell: u64, scope: &Scope) -> Result<()> {
        while let Some(variable) = object_of(self.memory, cell, LISTSXP) {
            if self.is_enough() {
                return Ok(());
            }
            self.left -= 1;
            cell = at(&variable, CDR);
            if let Some(value) = self.value_of(&variable) {
                let name = self.name_of_symbol(at(&variable, TAG))?;
                if name != OF_ASSIGNMENT {
                    if let Some(name) = self.name_within(value, name)? {
                        let scope = scope.clone();
                        self.found.try_push(Holder { name, scope })?;
                    }
                }
            }
        }
        Ok(())
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

    /// How a variable with this value refers to the object, if it does.
    fn name_within(&mut self, value: u64, name: String) -> Result<Option<String>> {
        if value == self.object {
            return written(format_args!("`{name}`")).map(Some);
        }
        let Some(object) = memory::array::<CELL>(self.memory, value) else {
            return Ok(None);
        };
        // R wraps an object that it may have to copy, and copies it when it is modified: the wrapper refers to it.
        if at(&object, 0) & ALTREP != 0 && at(&object, WRAPPED) == self.object {
            return written(format_args!("`{name}`")).map(Some);
        }
        match Type::of(at(&object, 0)) {
            DOTSXP => {
                let mut cell = value;
                while let Some(element) = object_of(self.memory, cell, DOTSXP) {
                    if self.value_of(&element) == Some(self.object) {
                        return owned("`...`").map(Some);
                    }
                    cell = at(&element, CDR);
                }
                Ok(None)
            }
            VECSXP if at(&object, 0) & ALTREP == 0 => {
                let count = at(&object, LENGTH).min(MOST_ELEMENTS);
                for number in 0..count {
                    let element = memory::word(self.memory, value + DATA as u64 + 8 * number);
                    if element == Some(self.object) {
                        return self.name_of_element(&object, number, &name).map(Some);
                    }
                }
                self.attribute(&object, &name)
            }
            SYMSXP | CHARSXP | ENVSXP | PROMSXP => Ok(None),
            _ => self.attribute(&object, &name),
        }
    }

    /// `name$element`, or `name[[2]]`.
    fn name_of_element(&mut self, list: &[u8; CELL], number: u64, name: &str) -> Result<String> {
        let names = self.attribute_with(list, |attribute, _| attribute == "names")?;
        let names = names.map_or(0, |(_, names)| names);
        let has_texts = object_of(self.memory, names, STRSXP)
            .is_some_and(|names| number < at(&names, LENGTH) && at(&names, 0) & ALTREP == 0);
        let text = if has_texts {
            let text = memory::word(self.memory, names + DATA as u64 + 8 * number);
            self.text(text.unwrap_or(0))?
        } else {
            String::new()
        };
        if text.is_empty() {
            written(format_args!("`{name}[[{}]]`", number + 1))
        } else {
            written(format_args!("`{name}${text}`"))
        }
    }

    fn attribute(&mut self, object: &[u8; CELL], name: &str) -> Result<Option<String>> {
        let wanted = self.object;
        match self.attribute_with(object, |_, value| value == wanted)? {
            Some((attribute, _)) => {
                written(format_args!("attribute `{attribute}` of `{name}`")).map(Some)
            }
            None => Ok(None),
        }
    }

    /// The first attribute that is wanted: its name and its value.
    fn attribute_with(
        &mut self,
        object: &[u8; CELL],
        is_wanted: impl Fn(&str, u64) -> bool,
    ) -> Result<Option<(String, u64)>> {
        let mut cell = at(object, ATTRIBUTES);
        while let Some(attribute) = object_of(self.memory, cell, LISTSXP) {
            let name = self.name_of_symbol(at(&attribute, TAG))?;
            if is_wanted(&name, at(&attribute, CAR)) {
                return Ok(Some((name, at(&attribute, CAR))));
            }
            cell = at(&attribute, CDR);
        }
        Ok(None)
    }

    /// The name of the function of a call, `FUN` and the like included.
    fn name_of_call(&mut self, call: u64) -> Result<String> {
        match object_of(self.memory, call, LANGSXP) {
            Some(call) => match self.name_of_symbol(at(&call, CAR))? {
                name if name.is_empty() => owned("<Anonymous>"),
                name => Ok(name),
            },
            None => owned("<Anonymous>"),
        }
    }

    /// Empty if it is no symbol.
    fn name_of_symbol(&mut self, symbol: u64) -> Result<String> {
        match object_of(self.memory, symbol, SYMSXP) {
            Some(symbol) => self.text(at(&symbol, PRINTNAME)),
            None => Ok(String::new()),
        }
    }

    fn text(&mut self, address: u64) -> Result<String> {
        let Some(count) = length(self.memory, address, CHARSXP) else {
            return Ok(String::new());
        };
        let mut bytes = Vec::new();
        bytes.try_fill(count.min(LONGEST_NAME) as usize, 0)?;
        self.memory.read(address + DATA as u64, &mut bytes);
        owned(&decode(&bytes)?.text)
    }
}
