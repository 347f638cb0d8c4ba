//! All compiled functions in environments, without evaluating anything: a function of a package that was never used is
//! a promise, whose code cannot have run.

use crate::byte_code::length;
use crate::compiled::{self, At};
use crate::memory::{self, Memory, at};
use crate::objects::{
    CAR, CDR, CELL, CLOSXP, DATA, ENVIRONMENT, ENVSXP, EXTRA, FRAME, HASHTAB, LISTSXP, PRINTNAME,
    PROMSXP, SYMSXP, TAG, Type, VALUE, VALUE_OF_PROMISE, VECSXP, object_of,
};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;

/// More lists than a hash table has, and more variables than an environment has.
const MOST_LISTS: u64 = 1 << 24;
const MOST_VARIABLES: usize = 1 << 24;

/// A variable: its symbol and its value. A promise that was evaluated stands for its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    pub symbol: u64,
    pub value: u64,
}

/// A function that was compiled.
#[derive(Debug, Clone, Copy)]
pub struct Compiled {
    /// The name of its variable, a `CHARSXP`.
    pub name: u64,
    pub closure: u64,
    pub environment: u64,
    pub code: At,
}

/// The variables of an environment.
pub fn variables(memory: &mut impl Memory, nil: u64, environment: u64) -> Result<Vec<Variable>> {
    let mut found = Vec::new();
    let Some(environment) = object_of(memory, environment, ENVSXP) else {
        return Ok(found);
    };
    let table = at(&environment, HASHTAB);
    if table == nil {
        add_list(memory, at(&environment, FRAME), &mut found)?;
        return Ok(found);
    }
    let count = length(memory, table, VECSXP).unwrap_or(0).min(MOST_LISTS);
    for number in 0..count {
        let list = table.wrapping_add(DATA as u64 + 8 * number);
        if let Some(list) = memory::word(memory, list) {
            add_list(memory, list, &mut found)?;
        }
    }
    Ok(found)
}

fn add_list(memory: &mut impl Memory, list: u64, found: &mut Vec<Variable>) -> Result<()> {
    let (mut cell, mut left) = (list, MOST_VARIABLES);
    while left > 0 {
        let Some(variable) = object_of(memory, cell, LISTSXP) else {
            break;
        };
        // Else the cell contains a number.
        if has_pointer(&variable) {
            found.try_push(Variable {
                symbol: at(&variable, TAG),
                value: evaluated(memory, at(&variable, CAR)),
            })?;
        }
        left -= 1;
        cell = at(&variable, CDR);
    }
    Ok(())
}

/// The variable of the base environment that a symbol names.
pub fn variable_of_base(memory: &mut impl Memory, symbol: u64) -> Option<Variable> {
    let object = object_of(memory, symbol, SYMSXP)?;
    Some(Variable {
        symbol,
        value: evaluated(memory, at(&object, VALUE)),
    })
}

fn evaluated(memory: &mut impl Memory, value: u64) -> u64 {
    if memory::word(memory, value).map(Type::of) != Some(PROMSXP) {
        return value;
    }
    match object_of(memory, value, PROMSXP) {
        Some(promise) if has_pointer(&promise) => at(&promise, VALUE_OF_PROMISE),
        _ => 0,
    }
}

/// Whether a cell or promise refers to its value, which is not a number in it.
fn has_pointer(object: &[u8; CELL]) -> bool {
    at(object, 0) >> EXTRA == 0
}

/// The function of a variable, if it was compiled.
pub fn compiled(memory: &mut impl Memory, variable: Variable) -> Result<Option<Compiled>> {
    // Most values are functions, or are not read any further.
    if memory::word(memory, variable.value).map(Type::of) != Some(CLOSXP) {
        return Ok(None);
    }
    let Some(closure) = object_of(memory, variable.value, CLOSXP) else {
        return Ok(None);
    };
    let symbol = object_of(memory, variable.symbol, SYMSXP);
    let code = compiled::code_of(memory, variable.value)?;
    let both = symbol.zip(code);
    Ok(both.map(|(symbol, code)| Compiled {
        name: at(&symbol, PRINTNAME),
        closure: variable.value,
        environment: at(&closure, ENVIRONMENT),
        code,
    }))
}
