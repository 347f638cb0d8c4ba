//! R's byte code in memory.
//!
//! The compiler stores two tables among the constants of a function. They have an entry for each word of its
//! instructions: the number of the constant that is the `srcref` of the instruction, and the number of the one that
//! is the expression it evaluates.

use crate::memory::{self, Memory, at};
use crate::objects::{
    ATTRIBUTES, BCODESXP, BODY, BUILTINSXP, CAR, CELL, CLOSXP, CODE, CONSTANTS, DATA, INTSXP,
    LANGSXP, LENGTH, LISTSXP, STRSXP, SYMSXP, Type, VALUE, VECSXP, has_text, object_of,
};
use profile_core::error::Result;
use std::ops::Range;

/// The compiler's tables are among this many constants at the end.
const TABLES: u64 = 4;
const SRCREFS: &[u8] = b"srcrefsIndex";
const EXPRESSIONS: &[u8] = b"expressionsIndex";

/// Identifies the byte code of a function. R may free it, and reuse the addresses of its instructions and constants
/// for other code of the same size, such as the next loop. This code was compiled from another expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code {
    pub instructions: u64,
    constants: u64,
    /// The first constant.
    expression: u64,
}

impl Code {
    /// The byte code at an address; `None` if there is none. `object` reads the start of an object.
    pub fn read(
        address: u64,
        mut object: impl FnMut(u64) -> Result<Option<[u8; CELL]>>,
    ) -> Result<Option<Code>> {
        let code = object(address)?;
        let Some(code) = code.filter(|code| Type::of(at(code, 0)) == BCODESXP) else {
            return Ok(None);
        };
        let [instructions, constants] = [CODE, CONSTANTS].map(|field| at(&code, field));
        let first = object(constants)?;
        let first = first.filter(|first| Type::of(at(first, 0)) == VECSXP);
        Ok(first.map(|first| Code {
            instructions,
            constants,
            expression: at(&first, DATA),
        }))
    }

    /// A number that other code at the same address would hardly have.
    pub fn number(self) -> u64 {
        let words = [self.instructions, self.constants, self.expression];
        let words = words.into_iter();
        words.fold(0, |sum: u64, word| {
            let mixed = (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ mixed >> 29
        })
    }

    /// The number of constants.
    pub fn constants(self, memory: &mut impl Memory) -> u64 {
        length(memory, self.constants, VECSXP).unwrap_or(0)
    }

    /// The position of an instruction.
    pub fn position(self, instruction: u64) -> Option<u64> {
        let first = self.instructions.checked_add(DATA as u64)?;
        Some(instruction.checked_sub(first)? / 8)
    }
}

/// The addresses of the tables of a function; 0 for those that it does not have.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tables {
    pub srcrefs: u64,
    pub expressions: u64,
}

/// An element of an integer vector.
pub fn entry(memory: &mut impl Memory, vector: u64, number: u64) -> Option<u64> {
    if vector == 0 || number >= length(memory, vector, INTSXP)? {
        return None;
    }
    let element = data(vector, number.checked_mul(4)?);
    let number = memory::array(memory, element).map(i32::from_le_bytes)?;
    u64::try_from(number).ok()
}

/// The constant with this number.
pub fn constant(memory: &mut impl Memory, code: Code, number: u64) -> Option<u64> {
    if number >= length(memory, code.constants, VECSXP)? {
        return None;
    }
    memory::word(memory, data(code.constants, number.checked_mul(8)?))
}

fn data(vector: u64, offset: u64) -> u64 {
    vector.wrapping_add(DATA as u64).wrapping_add(offset)
}

/// The number of elements of a vector of this type.
pub fn length(memory: &mut impl Memory, vector: u64, of: Type) -> Option<u64> {
    let header = memory::array::<DATA>(memory, vector)?;
    (Type::of(at(&header, 0)) == of).then(|| at(&header, LENGTH))
}

/// Finds the tables among the constants of byte code: integer vectors of the classes `SRCREFS` and `EXPRESSIONS`.
pub fn find_tables(memory: &mut impl Memory, code: Code) -> Tables {
    let mut tables = Tables::default();
    let constants = code.constants;
    let count = length(memory, constants, VECSXP).unwrap_or(0);
    for number in count.saturating_sub(TABLES)..count {
        let Some(vector) = memory::word(memory, data(constants, number.wrapping_mul(8))) else {
            break;
        };
        if let Some(class) = class_of(memory, vector) {
            if has_text(memory, class, SRCREFS) {
                tables.srcrefs = vector;
            } else if has_text(memory, class, EXPRESSIONS) {
                tables.expressions = vector;
            }
        }
    }
    tables
}

/// The first attribute of an integer vector, which is its class if it has no other one: the address of the first string.
fn class_of(memory: &mut impl Memory, vector: u64) -> Option<u64> {
    let vector = object_of(memory, vector, INTSXP)?;
    let attribute = object_of(memory, at(&vector, ATTRIBUTES), LISTSXP)?;
    let class = object_of(memory, at(&attribute, CAR), STRSXP)?;
    Some(at(&class, DATA))
}

/// The byte code of a closure: its address, and the addresses of its instructions.
pub fn code_of_closure(memory: &mut impl Memory, closure: u64) -> Option<(u64, Range<u64>)> {
    let code = at(&object_of(memory, closure, CLOSXP)?, BODY);
    let instructions = at(&object_of(memory, code, BCODESXP)?, CODE);
    let length = length(memory, instructions, INTSXP)?;
    let first = instructions.checked_add(DATA as u64)?;
    let end = first.checked_add(length.checked_mul(4)?)?;
    Some((code, first..end))
}

/// The call of a builtin that an instruction evaluates: the addresses of the call, and of the symbol of the builtin.
///
/// While a builtin runs, the position of its caller is the instruction that calls it. All of these conditions must hold:
///
/// - The operand of the instruction is the number of its expression in the table. This is true for instructions that
///   evaluate this expression, and false for those that fetch the function or evaluate an argument.
/// - The expression is a call of a function that is given by a symbol.
/// - The value of the symbol in package base is a builtin.
pub fn call_of_builtin(
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

/// Whether the compiler replaces calls of this builtin with an instruction that does the same, as for `x + y`. `Rprof()`
/// does not report such builtins either.
pub fn is_replaced(builtin: &str) -> bool {
    REPLACED.binary_search(&builtin).is_ok()
}

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
