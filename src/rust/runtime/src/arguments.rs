//! The titles of calls: the text of an argument, read from the environment of a running call, see [`titled`]. Any memory
//! will do, also that of this process in a signal handler: nothing is allocated, and the number of reads is limited.
//!
//! An argument is a promise until the function assigns to it, as `loadNamespace()` and `library()` soon do. Its value is
//! the text then. If it has not been evaluated yet, its expression may be a constant or, where the function quotes the
//! argument, a symbol.
//!
//! [`titled`]: profile_core::model::titled

use crate::environments::name_of_namespace;
use crate::memory::{self, Memory, at};
use crate::objects::{
    ALTREP, BCODESXP, CAR, CDR, CELL, CONSTANTS, DATA, ENVSXP, EXTRA, FRAME, LENGTH, LGLSXP,
    LISTSXP, PRINTNAME, PROMSXP, STRSXP, SYMSXP, TAG, Type, VALUE_OF_PROMISE, VECSXP, has_text,
    object_of,
};
use profile_core::model::titled::Titled;

/// The expression of a promise.
const EXPRESSION: usize = crate::objects::SECOND;

/// More variables than a call has. `loadNamespace()` has about sixty.
const MOST_VARIABLES: usize = 250;

/// More names than there are in the table.
const MOST_NAMES: usize = 16;

/// The addresses of symbols by their names, as far as they were seen. R never frees a symbol, and has one for each name.
#[derive(Debug, Default)]
pub struct Symbols([(&'static str, u64); MOST_NAMES]);

impl Symbols {
    /// Whether this is the symbol with a name.
    fn is(&mut self, memory: &mut impl Memory, symbol: u64, name: &'static str) -> bool {
        let free = |(known, _): &&mut (&str, u64)| known.is_empty() || *known == name;
        let Some((known, address)) = self.0.iter_mut().find(free) else {
            return false;
        };
        if *address != 0 {
            return *address == symbol;
        }
        let object = object_of(memory, symbol, SYMSXP);
        let is =
            object.is_some_and(|object| has_text(memory, at(&object, PRINTNAME), name.as_bytes()));
        if is {
            (*known, *address) = (name, symbol);
        }
        is
    }
}

/// The title of a call, a `CHARSXP`, given the environment of the call. `None` if it is unknown.
pub fn title(
    memory: &mut impl Memory,
    environment: u64,
    titled: &Titled,
    symbols: &mut Symbols,
) -> Option<u64> {
    let value = variable(memory, environment, titled.argument, symbols)?;
    let mut object = Object::read(memory, value)?;
    for &name in titled.path {
        let environment = object.evaluated(memory)?.address;
        let value = variable(memory, environment, name, symbols)?;
        object = Object::read(memory, value)?;
    }
    if let Some(value) = object.evaluated(memory) {
        return value.text(memory);
    }
    let expression = object.expression(memory)?;
    match (expression.kind(), titled.unquoted_by) {
        (STRSXP, _) => expression.text(memory),
        (SYMSXP, Some(by)) => {
            let by = variable(memory, environment, by, symbols)?;
            let is_quoted = Object::read(memory, by)?.is_false(memory);
            is_quoted.then(|| expression.word(PRINTNAME))
        }
        _ => None,
    }
}

/// The value of a variable of an environment without a hash table, as those of calls are.
fn variable(
    memory: &mut impl Memory,
    environment: u64,
    name: &'static str,
    symbols: &mut Symbols,
) -> Option<u64> {
    let environment = object_of(memory, environment, ENVSXP)?;
    let mut cell = at(&environment, FRAME);
    for _ in 0..MOST_VARIABLES {
        let variable = object_of(memory, cell, LISTSXP)?;
        if symbols.is(memory, at(&variable, TAG), name) {
            // Otherwise the cell contains a number.
            let has_object = at(&variable, 0) >> EXTRA == 0;
            return has_object.then(|| at(&variable, CAR));
        }
        cell = at(&variable, CDR);
    }
    None
}

/// The start of an object.
#[derive(Clone, Copy)]
struct Object {
    address: u64,
    bytes: [u8; CELL],
}

impl Object {
    fn read(memory: &mut impl Memory, address: u64) -> Option<Object> {
        let bytes = memory::array(memory, address)?;
        Some(Object { address, bytes })
    }

    fn word(&self, offset: usize) -> u64 {
        at(&self.bytes, offset)
    }

    fn kind(&self) -> Type {
        Type::of(self.word(0))
    }

    /// The value, if this is a promise that was evaluated, and else the object itself.
    fn evaluated(&self, memory: &mut impl Memory) -> Option<Object> {
        if self.kind() != PROMSXP {
            return Some(*self);
        }
        // Otherwise the promise contains a number.
        let has_object = self.word(0) >> EXTRA == 0;
        let value = has_object.then(|| Object::read(memory, self.word(VALUE_OF_PROMISE)))??;
        // The value of a promise that was not evaluated is a symbol that stands for that.
        (value.kind() != SYMSXP).then_some(value)
    }

    /// The expression of a promise, a constant or a symbol as it was compiled.
    fn expression(&self, memory: &mut impl Memory) -> Option<Object> {
        if self.kind() != PROMSXP {
            return None;
        }
        let expression = Object::read(memory, self.word(EXPRESSION))?;
        if expression.kind() != BCODESXP {
            return Some(expression);
        }
        let constants = Object::read(memory, expression.word(CONSTANTS))?;
        constants.first(memory, VECSXP)
    }

    /// The first element of a vector of pointers.
    fn first(&self, memory: &mut impl Memory, kind: Type) -> Option<Object> {
        let address = self.first_address(kind)?;
        Object::read(memory, address)
    }

    fn first_address(&self, kind: Type) -> Option<u64> {
        let has_data = self.kind() == kind && self.word(0) & ALTREP == 0 && self.word(LENGTH) > 0;
        has_data.then(|| self.word(DATA))
    }

    /// The first string, also of a list that has it as its first element, as packages with a version are imported; or the
    /// name of a namespace.
    fn text(&self, memory: &mut impl Memory) -> Option<u64> {
        match self.kind() {
            // Namespaces have hash tables, so that the address of `NULL` is not needed.
            ENVSXP => name_of_namespace(memory, 0, &self.bytes),
            VECSXP => self.first(memory, VECSXP)?.first_address(STRSXP),
            _ => self.first_address(STRSXP),
        }
    }

    /// Whether it is `FALSE`, or the constant `FALSE` as a promise.
    fn is_false(&self, memory: &mut impl Memory) -> bool {
        let value = match self.evaluated(memory) {
            Some(value) => Some(value),
            None => self.expression(memory),
        };
        let first = |value: Object| value.word(DATA) as u32;
        let is_flag = |value: &Object| value.kind() == LGLSXP && value.word(LENGTH) == 1;
        value.filter(is_flag).map(first) == Some(0)
    }
}
