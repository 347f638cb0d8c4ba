//! Finds the builtin function that byte code calls at a position.
//!
//! While a builtin runs, the position of its caller is the instruction that calls it. A builtin is only reported if
//! all of these conditions hold:
//!
//! - The operand of the instruction is the number of its expression in the table. This is true for instructions that
//!   evaluate this expression, and false for those that fetch the function or evaluate an argument.
//! - The expression is a call of a function that is given by a symbol.
//! - The value of the symbol in package base is a builtin.
//! - The compiler does not replace calls of this builtin with an instruction that does the same, as for `x + y`.
//!   `Rprof()` does not report such builtins either.

use crate::byte_code::{Code, Tables, constant, entry, object_of};
use crate::memory::{self, Memory, at};
use crate::names::{Found, Names};
use profile_core::error::Result;
use profile_core::model::{StringId, Strings};
use profile_runtime::objects::{BUILTINSXP, CAR, LANGSXP, SYMSXP, Type, VALUE};

/// Builtins that the compiler replaces with special instructions, which have the call as their operand (see the
/// functions `cmp...()` and the variable `math1funs` of R's package compiler). Sorted.
const REPLACED: [&str; 43] = [
    "!",
    "!=",
    "&",
    "*",
    "+",
    "-",
    "/",
    ":",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "^",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceiling",
    "cos",
    "cosh",
    "cospi",
    "digamma",
    "exp",
    "expm1",
    "floor",
    "gamma",
    "lgamma",
    "log1p",
    "seq_along",
    "seq_len",
    "sign",
    "sin",
    "sinh",
    "sinpi",
    "sqrt",
    "tan",
    "tanh",
    "tanpi",
    "trigamma",
    "|",
];

/// The call of a builtin function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    pub name: StringId,
    /// The address of the call.
    pub call: u64,
}

/// The builtin that is called at this position, if it is known.
pub fn at_position(
    memory: &mut impl Memory,
    code: Code,
    tables: Tables,
    position: u64,
    names: &mut Names,
    texts: &mut Strings,
) -> Result<Option<Builtin>> {
    let Some((call, symbol)) = call_of_builtin(memory, code, tables, position) else {
        return Ok(None);
    };
    let Found::Name(name) = names.symbol(memory, symbol, texts)? else {
        return Ok(None);
    };
    let is_replaced = REPLACED.binary_search(&texts.get(name)).is_ok();
    Ok((!is_replaced).then_some(Builtin { name, call }))
}

/// The call that an instruction evaluates, and the symbol of the builtin that it calls.
fn call_of_builtin(
    memory: &mut impl Memory,
    code: Code,
    tables: Tables,
    position: u64,
) -> Option<(u64, u64)> {
    let number = entry(memory, tables.expressions, position)?;
    // A word of the instructions takes two integers, of which an operand is the first.
    let operand = position.checked_add(1)?.checked_mul(2)?;
    if entry(memory, code.instructions, operand)? != number {
        return None;
    }
    let call = constant(memory, code, number)?;
    let symbol = at(&object_of(memory, call, LANGSXP)?, CAR);
    let value = at(&object_of(memory, symbol, SYMSXP)?, VALUE);
    let function = memory::word(memory, value)?;
    (Type::of(function) == BUILTINSXP).then_some((call, symbol))
}
