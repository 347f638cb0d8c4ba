//! R's objects: a header, then either three pointers or a length and data (`SEXPREC` and `VECTOR_SEXPREC`
//! in `Defn.h`).

use crate::memory::{self, Memory, at};

/// The type, in the lowest bits of the first word.
pub const TYPE: u64 = 31;
/// The pairlist of attributes.
pub const ATTRIBUTES: usize = 8;

/// The fields of most types after the header: three pointers, whose names depend on the type.
pub const FIRST: usize = 32;
pub const SECOND: usize = 40;
pub const THIRD: usize = 48;
/// The size of such an object.
pub const CELL: usize = 56;

/// An element of a pairlist or call: its value, the rest of the list, its name.
pub const CAR: usize = FIRST;
pub const CDR: usize = SECOND;
pub const TAG: usize = THIRD;
/// The name of a symbol, a `CHARSXP`.
pub const PRINTNAME: usize = FIRST;
/// The value of a symbol in the base environment.
pub const VALUE: usize = SECOND;
/// What an ALTREP object that wraps another one refers to (`R_altrep_data1()`).
pub const WRAPPED: usize = FIRST;
/// The value of a promise that was evaluated.
pub const VALUE_OF_PROMISE: usize = FIRST;
/// The code of a closure, and the environment in which it was defined.
pub const BODY: usize = SECOND;
pub const ENVIRONMENT: usize = THIRD;
/// The variables of an environment: a pairlist, or a hash table if there is one; and the enclosing environment.
pub const FRAME: usize = FIRST;
pub const ENCLOSING: usize = SECOND;
pub const HASHTAB: usize = THIRD;
/// Byte code: the instructions (an integer vector) and the constants (a list).
pub const CODE: usize = FIRST;
pub const CONSTANTS: usize = SECOND;

/// The number of elements of a vector, and its data.
pub const LENGTH: usize = 32;
pub const DATA: usize = 48;

/// The number of elements for which a growable vector has memory.
pub const TRUE_LENGTH: usize = 40;

/// Flags in the first word: the object has a class; it is a vector whose data is computed (ALTREP); the first flag of
/// its type, which marks growable vectors; it was in use at the last garbage collection.
pub const HAS_CLASS: u64 = 1 << 6;
pub const ALTREP: u64 = 1 << 7;
pub const GROWABLE: u64 = 1 << 13;
pub const MARK: u64 = 1 << 24;
/// In the upper bits of the first word: the number in a cell or promise, or 0 if it has a pointer to a value.
pub const EXTRA: u32 = 48;

/// A type of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type(pub u8);

impl Type {
    /// The type of an object with this first word.
    pub fn of(word: u64) -> Type {
        Type((word & TYPE) as u8)
    }

    /// The name of a type, as in R where users know it.
    pub fn name(self) -> &'static str {
        match self {
            NILSXP => "NULL",
            SYMSXP => "symbol",
            LISTSXP => "pairlist",
            CLOSXP => "function",
            ENVSXP => "environment",
            PROMSXP => "promise",
            LANGSXP => "call",
            SPECIALSXP | BUILTINSXP => "builtin",
            CHARSXP => "string",
            LGLSXP => "logical",
            INTSXP => "integer",
            REALSXP => "numeric",
            CPLXSXP => "complex",
            STRSXP => "character",
            DOTSXP => "dots",
            VECSXP => "list",
            EXPRSXP => "expression",
            BCODESXP => "byte code",
            EXTPTRSXP => "external pointer (native memory unknown)",
            WEAKREFSXP => "weak reference",
            RAWSXP => "raw",
            S4SXP => "S4 object",
            _ => "unknown type",
        }
    }
}

pub const NILSXP: Type = Type(0);
pub const SYMSXP: Type = Type(1);
pub const LISTSXP: Type = Type(2);
pub const CLOSXP: Type = Type(3);
pub const ENVSXP: Type = Type(4);
pub const PROMSXP: Type = Type(5);
pub const LANGSXP: Type = Type(6);
pub const SPECIALSXP: Type = Type(7);
pub const BUILTINSXP: Type = Type(8);
pub const CHARSXP: Type = Type(9);
pub const LGLSXP: Type = Type(10);
pub const INTSXP: Type = Type(13);
pub const REALSXP: Type = Type(14);
pub const CPLXSXP: Type = Type(15);
pub const STRSXP: Type = Type(16);
pub const DOTSXP: Type = Type(17);
pub const VECSXP: Type = Type(19);
pub const EXPRSXP: Type = Type(20);
pub const BCODESXP: Type = Type(21);
pub const EXTPTRSXP: Type = Type(22);
pub const WEAKREFSXP: Type = Type(23);
pub const RAWSXP: Type = Type(24);
pub const S4SXP: Type = Type(25);

/// The start of the object at an address, if it has this type.
pub fn object_of(memory: &mut impl Memory, address: u64, kind: Type) -> Option<[u8; CELL]> {
    let object = memory::array(memory, address)?;
    (Type::of(at(&object, 0)) == kind).then_some(object)
}

/// The longest text that [`has_text()`] compares.
const LONGEST_TEXT: usize = 16;

/// Whether there is a `CHARSXP` with this text at an address.
pub fn has_text(memory: &mut impl Memory, address: u64, text: &[u8]) -> bool {
    let mut bytes = [0; DATA + LONGEST_TEXT];
    let Some(bytes) = bytes.get_mut(..DATA + text.len()) else {
        return false;
    };
    memory.read(address, bytes)
        && Type::of(at(bytes, 0)) == CHARSXP
        && at(bytes, LENGTH) == text.len() as u64
        && bytes.get(DATA..) == Some(text)
}
