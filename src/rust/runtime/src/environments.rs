//! Environments: the variable with a name, and the name of a namespace (`envir.c`, `namespace.R`).
//!
//! An environment has its variables in a pairlist, or in a hash table of pairlists. A namespace has a variable
//! `.__NAMESPACE__.`, an environment, in which `spec` is a character vector of its name and version. It is enclosed by the
//! environment of its imports, which the namespace of base encloses.

use crate::byte_code::length;
use crate::memory::{self, Memory, at};
use crate::objects::{
    CAR, CDR, CELL, DATA, ENVSXP, FRAME, HASHTAB, LISTSXP, PRINTNAME, STRSXP, SYMSXP, TAG, VECSXP,
    has_text, object_of,
};

/// What describes a namespace, and the variable with its name.
pub const NAMESPACE: &str = ".__NAMESPACE__.";
pub const SPEC: &str = "spec";
/// The name of the package with R's own functions.
pub const BASE_NAME: &str = "base";

/// More variables than there are in an environment without a hash table that is searched, or in one list of a hash table.
const MOST_VARIABLES: usize = 64;

/// The value of a variable, given the environment.
pub fn variable(
    memory: &mut impl Memory,
    nil: u64,
    environment: &[u8; CELL],
    name: &str,
) -> Option<u64> {
    variable_among(memory, nil, environment, name, MOST_VARIABLES)
}

/// The same, in an environment without a hash table or with one whose lists have up to so many variables.
pub fn variable_among(
    memory: &mut impl Memory,
    nil: u64,
    environment: &[u8; CELL],
    name: &str,
    most: usize,
) -> Option<u64> {
    let table = at(environment, HASHTAB);
    let mut cell = at(environment, FRAME);
    if table != nil {
        let count = length(memory, table, VECSXP).filter(|count| *count > 0)?;
        let chain = table.wrapping_add(DATA as u64 + 8 * (hash(name) % count));
        cell = memory::word(memory, chain)?;
    }
    for _ in 0..most {
        let variable = object_of(memory, cell, LISTSXP)?;
        let symbol = object_of(memory, at(&variable, TAG), SYMSXP)?;
        if has_text(memory, at(&symbol, PRINTNAME), name.as_bytes()) {
            return Some(at(&variable, CAR));
        }
        cell = at(&variable, CDR);
    }
    None
}

/// The first string of a variable, a `CHARSXP`.
pub fn text_variable(
    memory: &mut impl Memory,
    nil: u64,
    environment: &[u8; CELL],
    name: &str,
) -> Option<u64> {
    let value = variable(memory, nil, environment, name)?;
    let value = object_of(memory, value, STRSXP)?;
    Some(at(&value, DATA))
}

/// The name of a namespace, a `CHARSXP`; `None` if the environment is none.
pub fn name_of_namespace(
    memory: &mut impl Memory,
    nil: u64,
    environment: &[u8; CELL],
) -> Option<u64> {
    let description = variable(memory, nil, environment, NAMESPACE)?;
    let description = object_of(memory, description, ENVSXP)?;
    text_variable(memory, nil, &description, SPEC)
}

/// The hash of a name, which determines its list in a hash table (`R_Newhashpjw()`).
pub fn hash(name: &str) -> u64 {
    let hash = name.bytes().fold(0_u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(byte.into());
        let high = hash & 0xf000_0000;
        hash ^ (high >> 24) ^ high
    });
    hash.into()
}
