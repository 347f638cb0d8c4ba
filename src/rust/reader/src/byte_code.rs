//! R's byte code in memory.
//!
//! The compiler stores two tables among the constants of a function. They have an entry for each word of its
//! instructions: the number of the constant that is the `srcref` of the instruction, and the number of the one that
//! is the expression it evaluates.

use crate::memory::{self, Memory, at};
use crate::names::text;
use crate::snapshot::Snapshot;
use profile_core::error::Result;
use profile_runtime::objects::{
    ATTRIBUTES, BCODESXP, CAR, CELL, CODE, CONSTANTS, DATA, INTSXP, LENGTH, LISTSXP, STRSXP, Type,
    VECSXP,
};

/// The compiler's tables are among this many constants at the end.
const TABLES: u64 = 4;
const SRCREFS: &str = "srcrefsIndex";
const EXPRESSIONS: &str = "expressionsIndex";

/// Identifies the byte code of a function. R may free it, and reuse the addresses of its instructions and constants
/// for other code of the same size, such as that of the next loop. That code was compiled from another expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code {
    pub instructions: u64,
    constants: u64,
    /// The first constant.
    expression: u64,
}

impl Code {
    /// The byte code of an object; `None` if the object is not byte code.
    pub fn read<M: Memory>(snapshot: &mut Snapshot<M>, object: u64) -> Result<Option<Code>> {
        let code = snapshot.object(object)?;
        let Some(code) = code.filter(|code| Type::of(at(code, 0)) == BCODESXP) else {
            return Ok(None);
        };
        let [instructions, constants] = [CODE, CONSTANTS].map(|field| at(&code, field));
        let first = snapshot.object(constants)?;
        let first = first.filter(|first| Type::of(at(first, 0)) == VECSXP);
        Ok(first.map(|first| Code {
            instructions,
            constants,
            expression: at(&first, DATA),
        }))
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
pub fn find_tables(memory: &mut impl Memory, code: Code) -> Result<Tables> {
    let mut tables = Tables::default();
    let constants = code.constants;
    let count = length(memory, constants, VECSXP).unwrap_or(0);
    for number in count.saturating_sub(TABLES)..count {
        let Some(vector) = memory::word(memory, data(constants, number.wrapping_mul(8))) else {
            break;
        };
        match class_of(memory, vector)?.as_deref() {
            Some(SRCREFS) => tables.srcrefs = vector,
            Some(EXPRESSIONS) => tables.expressions = vector,
            _ => {}
        }
    }
    Ok(tables)
}

/// The first attribute of an integer vector, which is its class if it has no other one.
fn class_of(memory: &mut impl Memory, vector: u64) -> Result<Option<String>> {
    let Some(vector) = object_of(memory, vector, INTSXP) else {
        return Ok(None);
    };
    let Some(attribute) = object_of(memory, at(&vector, ATTRIBUTES), LISTSXP) else {
        return Ok(None);
    };
    let Some(class) = object_of(memory, at(&attribute, CAR), STRSXP) else {
        return Ok(None);
    };
    text(memory, at(&class, DATA))
}

/// What is at an address, if it is an object of this type.
pub fn object_of(memory: &mut impl Memory, address: u64, kind: Type) -> Option<[u8; CELL]> {
    let object = memory::array(memory, address)?;
    (Type::of(at(&object, 0)) == kind).then_some(object)
}
