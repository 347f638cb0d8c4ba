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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{NIL, Objects, address};
    use crate::objects::LANGSXP;

    fn found(r: &mut Objects, environment: usize) -> Vec<(u64, u64)> {
        let variables = variables(r, address(NIL), address(environment)).unwrap();
        variables
            .iter()
            .map(|variable| (variable.symbol, variable.value))
            .collect()
    }

    #[test]
    fn variables_are_in_a_list_or_in_a_hash_table() {
        let mut r = Objects::new();
        let [one, two] = [0, 1].map(|flag| r.flag(flag));
        let plain = r.environment(&[("a", one), ("b", two)]);
        let values = |found: &[(u64, u64)]| -> Vec<u64> { found.iter().map(|row| row.1).collect() };
        let all = found(&mut r, plain);
        assert_eq!(values(&all), [address(one), address(two)]);
        let list = (r.0[plain][4] >> 20) as usize - 1;
        let table = r.list(&[NIL, list, NIL]);
        let hashed = r.environment(&[]);
        r.0[hashed][6] = address(table);
        assert_eq!(found(&mut r, hashed), all);
        assert_eq!(found(&mut r, one), []);
        // A cell that contains a number, and a list that is circular.
        r.0[list][0] |= 1 << EXTRA;
        assert_eq!(values(&found(&mut r, hashed)), [address(two)]);
        assert_eq!(variables(&mut r, address(NIL), 0).unwrap(), []);
    }

    #[test]
    fn a_promise_that_was_evaluated_stands_for_its_value() {
        let mut r = Objects::new();
        let value = r.flag(1);
        let call = r.add(LANGSXP, &[]);
        let promise = r.promise(Some(value), call);
        let environment = r.environment(&[("a", promise)]);
        assert_eq!(found(&mut r, environment)[0].1, address(value));
        // It contains a number.
        r.0[promise][0] |= 1 << EXTRA;
        assert_eq!(found(&mut r, environment)[0].1, 0);
        let symbol = r.add(SYMSXP, &[0, address(value)]);
        let variable = variable_of_base(&mut r, address(symbol)).unwrap();
        assert_eq!(variable.value, address(value));
        assert_eq!(variable_of_base(&mut r, address(value)), None);
    }

    #[test]
    fn only_functions_that_were_compiled_are_found() {
        let mut r = Objects::new();
        let expression = r.add(LANGSXP, &[]);
        let code = r.byte_code(&[12, 1 << 40], &[expression]);
        let home = r.environment(&[]);
        let [done, plain] = [code, expression].map(|body| r.closure(body, home));
        let value = r.flag(1);
        let environment = r.environment(&[("done", done), ("plain", plain), ("value", value)]);
        let variables = variables(&mut r, address(NIL), address(environment)).unwrap();
        let found = variables
            .iter()
            .filter_map(|&variable| compiled(&mut r, variable).unwrap());
        let found: Vec<Compiled> = found.collect();
        assert_eq!(found.len(), 1);
        let name = r.0[(variables[0].symbol >> 20) as usize - 1][4];
        assert_eq!(found[0].name, name);
        assert_eq!(found[0].closure, address(done));
        assert_eq!(found[0].environment, address(home));
        assert_eq!(found[0].code.0, address(code));
    }
}
