//! The names of functions that are known by their definition, where the call does not tell them apart: `self$run()` calls
//! a method of any class, and `FUN()` or an active binding any function.
//!
//! | what | how it is recognised | name |
//! |---|---|---|
//! | method of a Reference class | its attributes `refClassName` and `name` | `Account$deposit` |
//! | method of S7 | its class `S7_method`, its attributes `generic` and `signature` | `area(shapes::Circle)` |
//! | method or active binding of R6 | its environment has `self`, whose `.__enclos_env__` leads to it | `Counter$run` |
//! | method of ggproto | it is called by a function of class `ggproto_method` | `GeomPoint$draw_panel` |
//! | other function that is called as `FUN` or without a name | the environment in which it was defined, or one of that environment's variables, binds it | `clean` |
//!
//! The class is the one that defines the method, except for ggproto, where it is the one of the object.

use crate::stack::bindings::Bindings;
use crate::stack::cache::Cache;
use crate::stack::calls::Call;
use crate::stack::definition::{Function, MOST_MEMBERS, member};
use crate::stack::names::Names;
use crate::stack::snapshot::Snapshot;
use profile_core::error::Result;
use profile_core::limits::memory::written;
use profile_core::model::{StringId, Strings};
use profile_runtime::memory::{Memory, at};
use profile_runtime::objects::{
    ATTRIBUTES, BODY, CELL, CLOSXP, ENVIRONMENT, FIRST, SECOND, THIRD, Type,
};

/// Bounds on what is read of memory that may be damaged: classes that inherit from each other, and environments that a
/// function's environment binds.
const MOST_LEVELS: usize = 16;
const MOST_ENVIRONMENTS: usize = 8;

/// The maximum number of variables that are searched for one stack. The names of all other functions are found later.
const MOST_VARIABLES: usize = 4_000;
/// The maximum number of variables of an environment that is searched.
const MOST_OF_ENVIRONMENT: usize = 3_000;
const MOST_OF_INNER: usize = MOST_MEMBERS;

const ANONYMOUS: &str = "<Anonymous>";

/// The names of functions by their definition. R may free a function and use its address again, so its code and
/// environment have to be the same as well.
#[derive(Debug, Default)]
pub struct Identities {
    known: Cache<Key, Option<StringId>>,
    /// Methods, and functions that nothing binds. Each evaluation of a definition makes a new function with the same code.
    by_code: Cache<Code, Option<StringId>>,
    bindings: Bindings,
    /// The number of variables that were searched for the current stack.
    searched: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    function: u64,
    body: u64,
    environment: u64,
    called: StringId,
}

/// The code of a function: its address, and what it refers to, since R may use its address for other code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Code {
    body: u64,
    parts: [u64; 3],
    called: StringId,
}

/// What is known of a function by its definition.
enum Defined {
    /// A method, by its class, which all functions with the same code have.
    Method(String),
    Bound(String),
    Nothing,
}

impl Identities {
    pub fn keep(&mut self) {
        self.known.keep();
        self.by_code.keep();
        self.searched = 0;
    }

    pub fn forget(&mut self) {
        self.known.forget();
        self.by_code.forget();
        self.searched = 0;
    }

    /// The name by the definition of a function, `None` if it has none or is already known by the name of its call.
    pub fn find<M: Memory>(
        &mut self,
        memory: &mut Snapshot<M>,
        nil: u64,
        called: StringId,
        (call, caller): (Call, Option<Call>),
        names: &mut Names,
        texts: &mut Strings,
    ) -> Result<Option<StringId>> {
        let Some(object) = memory.object(call.function)? else {
            return Ok(None);
        };
        if Type::of(at(&object, 0)) != CLOSXP {
            return Ok(None);
        }
        let key = Key {
            function: call.function,
            body: at(&object, BODY),
            environment: at(&object, ENVIRONMENT),
            called,
        };
        let wrapper = match caller {
            Some(caller) => memory.object(caller.function)?,
            None => None,
        };
        let may_be_of_ggproto = wrapper.is_some_and(|wrapper| {
            Type::of(at(&wrapper, 0)) == CLOSXP && at(&wrapper, ATTRIBUTES) != nil
        });
        if let (Some(known), false) = (self.known.get(key), may_be_of_ggproto) {
            return Ok(known);
        }
        let parts = memory.object(key.body)?;
        let code = parts.map(|parts| Code {
            body: key.body,
            parts: [FIRST, SECOND, THIRD].map(|part| at(&parts, part)),
            called,
        });
        let mut function = Function {
            memory,
            nil,
            address: call.function,
            object,
            names,
            texts,
        };
        if let (true, Some(caller), Some(wrapper)) = (may_be_of_ggproto, caller, wrapper) {
            let called = written(format_args!("{}", function.texts.get(called)))?;
            if let Some(name) = function.of_ggproto(&called, caller, &wrapper)? {
                return texts.intern(&name).map(Some);
            }
        }
        let known = self.known.get(key);
        if let Some(known) = known.or_else(|| self.by_code.get(code?)) {
            return Ok(known);
        }
        let defined = self.name(&mut function, called, call)?;
        let (name, is_of_code) = match &defined {
            Defined::Method(name) => (Some(texts.intern(name)?), true),
            Defined::Bound(name) => (Some(texts.intern(name)?), false),
            // With more variables, it may be found.
            Defined::Nothing if self.searched >= MOST_VARIABLES => return Ok(None),
            Defined::Nothing => (None, true),
        };
        match code.filter(|_| is_of_code) {
            Some(code) => self.by_code.put(code, name)?,
            None => self.known.put(key, name)?,
        }
        Ok(name)
    }

    fn name<M: Memory>(
        &mut self,
        function: &mut Function<M>,
        called: StringId,
        call: Call,
    ) -> Result<Defined> {
        let called = written(format_args!("{}", function.texts.get(called)))?;
        if let Some(name) = function.by_attributes()? {
            return Ok(Defined::Method(name));
        }
        if let Some(name) = function.of_s3_for_s7(&called, call)? {
            return Ok(Defined::Method(name));
        }
        let is_common = Names::is_common(&called);
        if !is_common && member(&called).is_none() || function.is_wrapper()? {
            return Ok(Defined::Nothing);
        }
        if let Some(name) = self.of_r6(function)? {
            return Ok(Defined::Method(name));
        }
        let bound = match is_common {
            true => self.bound(function, called == ANONYMOUS)?,
            false => None,
        };
        Ok(bound.map_or(Defined::Nothing, Defined::Bound))
    }

    /// A method or an active binding of R6.
    fn of_r6<M: Memory>(&mut self, function: &mut Function<M>) -> Result<Option<String>> {
        let enclosing = at(&function.object, ENVIRONMENT);
        let Some(environment) = function.environment(enclosing) else {
            return Ok(None);
        };
        let Some(public) = function.environment_in(&environment, "self")? else {
            return Ok(None);
        };
        // The environment of the methods of each class, from the one of the object on.
        let (mut object, mut level) = (public, 0);
        loop {
            let of_methods = function.variable(&object, ".__enclos_env__")?;
            if of_methods == Some(enclosing) {
                break;
            }
            let methods = of_methods.and_then(|address| function.environment(address));
            let Some(methods) = methods else {
                return Ok(None);
            };
            let Some(inherited) = function.environment_in(&methods, "super")? else {
                return Ok(None);
            };
            level += 1;
            if level == MOST_LEVELS {
                return Ok(None);
            }
            object = inherited;
        }
        let Some(class) = function.class_at(&public, level)? else {
            return Ok(None);
        };
        let private = function.environment_in(&environment, "private")?;
        for members in [Some(public), private, Some(object)].into_iter().flatten() {
            if let Some(symbol) = self.symbol_in(function, &members, MOST_OF_INNER)? {
                if let Some(name) = function.name_of_symbol(symbol)? {
                    return written(format_args!("{class}${name}")).map(Some);
                }
            }
        }
        Ok(None)
    }

    /// The variable that has the function, in the environment in which it was defined or, if `is_nested`, in an environment
    /// that is there.
    fn bound<M: Memory>(
        &mut self,
        function: &mut Function<M>,
        is_nested: bool,
    ) -> Result<Option<String>> {
        let Some(environment) = function.environment(at(&function.object, ENVIRONMENT)) else {
            return Ok(None);
        };
        if let Some(symbol) = self.symbol_in(function, &environment, MOST_OF_ENVIRONMENT)? {
            return function.name_of_variable(symbol);
        }
        if !is_nested {
            return Ok(None);
        }
        let inner = std::mem::take(&mut self.bindings.environments);
        for &address in inner.iter().take(MOST_ENVIRONMENTS) {
            let Some(environment) = function.environment(address) else {
                continue;
            };
            if let Some(symbol) = self.symbol_in(function, &environment, MOST_OF_INNER)? {
                return function.name_of_variable(symbol);
            }
        }
        Ok(None)
    }

    fn symbol_in<M: Memory>(
        &mut self,
        function: &mut Function<M>,
        environment: &[u8; CELL],
        most: usize,
    ) -> Result<Option<u64>> {
        let most = most.min(MOST_VARIABLES.saturating_sub(self.searched));
        let mut left = most;
        let (memory, nil) = (&mut *function.memory, function.nil);
        let bindings = &mut self.bindings;
        let found = bindings.symbol_of(memory, nil, environment, function.address, &mut left);
        self.searched += most - left;
        found
    }
}
