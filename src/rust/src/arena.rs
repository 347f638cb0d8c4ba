//! Results in the making: R objects as values that functions pass and return.
//!
//! ```text
//! outcome(|arena| {
//!     let (ids, rows) = arena.integers(3)?;
//!     rows.copy_from_slice(&[1, 2, 3]);
//!     arena.list(&[("ids", ids), ("title", arena.text("three"))])
//! })
//! ```
//!
//! R's garbage collector frees what nothing refers to, so a new object must be referred to by
//! something that R knows. Here that is the arena, a list that lives as long as the call and
//! refers to every object made in it. So a [`Value`] is good until the call ends, whatever
//! happens to it, and so are the slices of its data.
//!
//! All objects are made inside [`guarded()`]: where R has no memory, that is an error.

use crate::argument::SEXPTYPE::{self, INTSXP, LGLSXP, RAWSXP, REALSXP, STRSXP, VECSXP};
use crate::guard::guarded;
use extendr_api::{GetSexp, Robj, SEXP};
use extendr_ffi::{
    INTEGER, LOGICAL, R_ClassSymbol, R_NaString, R_NamesSymbol, R_NilValue, R_RowNamesSymbol, RAW,
    REAL, Rf_allocVector, Rf_cons, Rf_mkCharLenCE, Rf_protect, Rf_setAttrib, Rf_unprotect,
    SET_STRING_ELT, SET_VECTOR_ELT, STRING_PTR_RO, VECTOR_ELT, cetype_t,
};
use profile_core::error::Result;
use std::marker::PhantomData;

/// Where the objects of one call are made.
#[derive(Debug, Clone, Copy)]
pub struct Arena<'call>(SEXP, PhantomData<&'call ()>);

/// An R object made in an arena, or R's NULL.
#[derive(Debug, Clone, Copy)]
pub struct Value<'call>(SEXP, PhantomData<&'call ()>);

/// What an entry point returns, `list(value, error)`, with the arena as a third element while
/// the call lasts.
#[derive(Debug)]
pub struct Root(Robj);

/// The elements that may be filled.
#[derive(Debug, Clone, Copy)]
pub enum Slot {
    Value = 0,
    Error = 1,
}

const ARENA: isize = 2;

impl Root {
    pub fn new() -> Result<Root> {
        // SAFETY: a type of vectors.
        let list = guarded(|| unsafe { Rf_allocVector(VECSXP, 3) })?;
        // SAFETY: a live object, which extendr protects from here on.
        Ok(Root(unsafe { Robj::from_sexp(list) }))
    }

    pub fn arena(&self) -> Arena<'_> {
        // SAFETY: the list lives as long as it is borrowed.
        Arena(unsafe { self.0.get() }, PhantomData)
    }

    pub fn set(&self, slot: Slot, value: Value) {
        // SAFETY: a live list that has this element; this does not jump.
        unsafe { SET_VECTOR_ELT(self.0.get(), slot as isize, value.0) };
    }

    /// The list, without the arena.
    pub fn finish(self) -> Robj {
        // SAFETY: as above.
        unsafe { SET_VECTOR_ELT(self.0.get(), ARENA, R_NilValue) };
        self.0
    }
}

impl Value<'_> {
    /// R's NULL.
    pub fn null() -> Self {
        // SAFETY: a constant of R's.
        Value(unsafe { R_NilValue }, PhantomData)
    }
}

impl<'call> Arena<'call> {
    /// What `make` returns, a new object, becomes part of the arena.
    fn add(self, make: impl FnOnce() -> SEXP + Copy) -> Result<Value<'call>> {
        let list = self.0;
        // SAFETY: a live list; the new object is protected until the list refers to it.
        let object = guarded(|| unsafe {
            let object = Rf_protect(make());
            SET_VECTOR_ELT(list, ARENA, Rf_cons(object, VECTOR_ELT(list, ARENA)));
            Rf_unprotect(1);
            object
        })?;
        Ok(Value(object, PhantomData))
    }

    /// A vector, and its data to be filled.
    fn vector<T>(
        self,
        kind: SEXPTYPE,
        len: usize,
        data: unsafe extern "C" fn(SEXP) -> *mut T,
    ) -> Result<(Value<'call>, &'call mut [T])> {
        // SAFETY: a type of vectors.
        let vector = self.add(|| unsafe { Rf_allocVector(kind, len as isize) })?;
        if len == 0 {
            return Ok((vector, &mut []));
        }
        // SAFETY: a new vector of `len` such elements that lives until the call ends, and
        // the only slice of it.
        let data = unsafe { std::slice::from_raw_parts_mut(data(vector.0), len) };
        Ok((vector, data))
    }

    pub fn integers(self, len: usize) -> Result<(Value<'call>, &'call mut [i32])> {
        self.vector(INTSXP, len, INTEGER)
    }

    /// Each is 0, 1 or NA, R's smallest integer.
    pub fn logicals(self, len: usize) -> Result<(Value<'call>, &'call mut [i32])> {
        self.vector(LGLSXP, len, LOGICAL)
    }

    pub fn doubles(self, len: usize) -> Result<(Value<'call>, &'call mut [f64])> {
        self.vector(REALSXP, len, REAL)
    }

    pub fn bytes(self, bytes: &[u8]) -> Result<Value<'call>> {
        let (vector, data) = self.vector(RAWSXP, bytes.len(), RAW)?;
        data.copy_from_slice(bytes);
        Ok(vector)
    }

    /// A vector of these numbers.
    pub fn numbers(self, numbers: &[f64]) -> Result<Value<'call>> {
        let (vector, data) = self.doubles(numbers.len())?;
        data.copy_from_slice(numbers);
        Ok(vector)
    }

    pub fn number(self, number: f64) -> Result<Value<'call>> {
        self.numbers(&[number])
    }

    pub fn flag(self, flag: bool) -> Result<Value<'call>> {
        let (vector, data) = self.logicals(1)?;
        data.fill(i32::from(flag));
        Ok(vector)
    }

    pub fn text(self, text: &str) -> Result<Value<'call>> {
        self.texts(&[text])
    }

    /// A character vector of these strings.
    pub fn texts(self, texts: &[&str]) -> Result<Value<'call>> {
        // SAFETY: inside `guarded()`.
        self.add(|| unsafe { character_vector(texts) })
    }

    /// A character vector whose elements repeat: each is one of `distinct`, or NA for -1.
    /// Each distinct string is made once, since it has to be looked up in R's cache.
    pub fn strings(self, distinct: &[&str], rows: &[i32]) -> Result<Value<'call>> {
        debug_assert!(rows.iter().all(|&row| row < distinct.len() as i32));
        // SAFETY: the vector has as many elements as `rows`, which index `distinct`.
        self.add(|| unsafe {
            let distinct = Rf_protect(character_vector(distinct));
            let strings = STRING_PTR_RO(distinct);
            let vector = Rf_protect(Rf_allocVector(STRSXP, rows.len() as isize));
            for (i, &row) in (0..).zip(rows) {
                let string = if row < 0 {
                    R_NaString
                } else {
                    *strings.add(row as usize)
                };
                SET_STRING_ELT(vector, i, string);
            }
            Rf_unprotect(2);
            vector
        })
    }

    /// A list of these fields.
    pub fn list(self, fields: &[(&str, Value<'call>)]) -> Result<Value<'call>> {
        // SAFETY: inside `guarded()`.
        self.add(|| unsafe { named_list(fields) })
    }

    /// A tibble of these columns, all of which have so many rows; `Tibble` makes them.
    pub fn tibble(self, rows: usize, columns: &[(&str, Value<'call>)]) -> Result<Value<'call>> {
        // SAFETY: inside `guarded()`; a new list is protected while it gets its attributes.
        self.add(|| unsafe {
            let list = Rf_protect(named_list(columns));
            Rf_setAttrib(list, R_RowNamesSymbol, Rf_protect(compact_row_names(rows)));
            Rf_setAttrib(list, R_ClassSymbol, Rf_protect(tibble_class()));
            Rf_unprotect(3);
            list
        })
    }

    /// A list of tibbles(location_id), one for each stack, shared by the rows: those of stack
    /// `i` are `frames[ends[i - 1]..ends[i]]`.
    pub fn stacks(self, frames: &[i32], ends: &[usize], rows: &[i32]) -> Result<Value<'call>> {
        // SAFETY: `ends` partitions `frames`, `rows` index `ends`.
        self.add(|| unsafe {
            let stacks = Rf_protect(Rf_allocVector(VECSXP, ends.len() as isize));
            let names = Rf_protect(character_vector(&["location_id"]));
            let class = Rf_protect(tibble_class());
            let mut start = 0;
            for (i, &end) in (0..).zip(ends) {
                let tibble = Rf_allocVector(VECSXP, 1);
                SET_VECTOR_ELT(stacks, i, tibble);
                let ids = Rf_allocVector(INTSXP, (end - start) as isize);
                SET_VECTOR_ELT(tibble, 0, ids);
                if end > start {
                    let stack = frames.as_ptr().add(start);
                    INTEGER(ids).copy_from_nonoverlapping(stack, end - start);
                }
                let row_names = Rf_protect(compact_row_names(end - start));
                Rf_setAttrib(tibble, R_NamesSymbol, names);
                Rf_setAttrib(tibble, R_RowNamesSymbol, row_names);
                Rf_setAttrib(tibble, R_ClassSymbol, class);
                Rf_unprotect(1);
                start = end;
            }
            let vector = Rf_protect(Rf_allocVector(VECSXP, rows.len() as isize));
            for (i, &row) in (0..).zip(rows) {
                SET_VECTOR_ELT(vector, i, VECTOR_ELT(stacks, row as isize));
            }
            Rf_unprotect(4);
            vector
        })
    }
}

/// A string object. May jump.
///
/// # Safety
/// Only inside [`guarded()`].
unsafe fn string(text: &str) -> SEXP {
    // R refuses a negative length, as it does texts that are too long.
    let len = i32::try_from(text.len()).unwrap_or(-1);
    // SAFETY: the bytes of a text in UTF-8.
    unsafe { Rf_mkCharLenCE(text.as_ptr().cast(), len, cetype_t::CE_UTF8) }
}

/// May jump.
///
/// # Safety
/// Only inside [`guarded()`].
unsafe fn character_vector(texts: &[&str]) -> SEXP {
    // SAFETY: protected while it is filled, with as many elements as it has.
    unsafe {
        let vector = Rf_protect(Rf_allocVector(STRSXP, texts.len() as isize));
        for (i, text) in (0..).zip(texts) {
            SET_STRING_ELT(vector, i, string(text));
        }
        Rf_unprotect(1);
        vector
    }
}

/// May jump.
///
/// # Safety
/// Only inside [`guarded()`].
unsafe fn named_list(fields: &[(&str, Value)]) -> SEXP {
    // SAFETY: protected while they are filled, with as many elements as they have.
    unsafe {
        let list = Rf_protect(Rf_allocVector(VECSXP, fields.len() as isize));
        let names = Rf_protect(Rf_allocVector(STRSXP, fields.len() as isize));
        for (i, (name, value)) in (0..).zip(fields) {
            SET_STRING_ELT(names, i, string(name));
            SET_VECTOR_ELT(list, i, value.0);
        }
        Rf_setAttrib(list, R_NamesSymbol, names);
        Rf_unprotect(2);
        list
    }
}

/// May jump.
///
/// # Safety
/// Only inside [`guarded()`].
unsafe fn tibble_class() -> SEXP {
    // SAFETY: as said above.
    unsafe { character_vector(&["tbl_df", "tbl", "data.frame"]) }
}

/// Row names in R's compact form, `c(NA, -rows)`. May jump.
///
/// # Safety
/// Only inside [`guarded()`].
unsafe fn compact_row_names(rows: usize) -> SEXP {
    // SAFETY: two integers.
    unsafe {
        let names = Rf_allocVector(INTSXP, 2);
        INTEGER(names).write(i32::MIN);
        INTEGER(names).add(1).write((rows as i32).wrapping_neg());
        names
    }
}
