//! Results in the making: lists whose slots are filled once.
//!
//! The root is an `Robj`, which extendr protects; all else is part of it. So the garbage
//! collector never meets an unprotected object, and extendr's table of objects gets one
//! entry for a call.

use crate::argument::SEXPTYPE::{self, INTSXP, LGLSXP, RAWSXP, REALSXP, STRSXP, VECSXP};
use crate::guard::guarded;
use extendr_api::{GetSexp, Robj, SEXP};
use extendr_ffi::{
    INTEGER, LOGICAL, R_ClassSymbol, R_NaString, R_NamesSymbol, R_NilValue, R_RowNamesSymbol, RAW,
    REAL, Rf_allocVector, Rf_mkCharLenCE, Rf_protect, Rf_setAttrib, Rf_unprotect, Rf_xlength,
    SET_STRING_ELT, SET_VECTOR_ELT, STRING_PTR_RO, VECTOR_ELT, cetype_t,
};
use profile_core::error::Result;
use std::ffi::CStr;
use std::marker::PhantomData;

/// A list of fixed length that is part of the root. What goes into it is made and put in
/// place at once. A slot is filled once: slices of its vector stay good until the call
/// ends.
#[derive(Debug, Clone, Copy)]
pub struct Slots<'call>(SEXP, PhantomData<&'call ()>);

/// A new object, not protected.
fn allocate(kind: SEXPTYPE, len: usize) -> Result<SEXP> {
    // SAFETY: a type of vectors.
    guarded(|| unsafe { Rf_allocVector(kind, len as isize) })
}

/// A string object. May jump.
///
/// # Safety
/// Only inside [`guarded()`].
unsafe fn make_string(text: &str) -> SEXP {
    // SAFETY: the bytes of a text in UTF-8.
    unsafe { Rf_mkCharLenCE(text.as_ptr().cast(), text.len() as i32, cetype_t::CE_UTF8) }
}

/// The class of tibbles. May jump.
///
/// # Safety
/// Only inside [`guarded()`].
unsafe fn tibble_class() -> SEXP {
    // SAFETY: protected while it is filled.
    unsafe {
        let class = Rf_protect(Rf_allocVector(STRSXP, 3));
        for (i, name) in (0..).zip(["tbl_df", "tbl", "data.frame"]) {
            SET_STRING_ELT(class, i, make_string(name));
        }
        Rf_unprotect(1);
        class
    }
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

impl<'call> Slots<'call> {
    /// The slots of a list that its owner keeps.
    pub fn of(list: &'call Robj) -> Slots<'call> {
        // SAFETY: the list lives as long as it is borrowed.
        Slots(unsafe { list.get() }, PhantomData)
    }

    fn new_vector(self, slot: usize, kind: SEXPTYPE, len: usize) -> Result<SEXP> {
        // SAFETY: a live list, and the slot is one of its own; one that was not filled
        // holds R's NULL.
        let free = slot < self.len() && unsafe { VECTOR_ELT(self.0, slot as isize) == R_NilValue };
        assert!(free, "slot {slot} is filled once");
        let vector = allocate(kind, len)?;
        // SAFETY: the slot exists.
        unsafe { SET_VECTOR_ELT(self.0, slot as isize, vector) };
        Ok(vector)
    }

    pub fn len(self) -> usize {
        // SAFETY: a live list.
        usize::try_from(unsafe { Rf_xlength(self.0) }).unwrap_or(0)
    }

    pub fn integers(self, slot: usize, len: usize) -> Result<&'call mut [i32]> {
        self.fresh(slot, INTSXP, len, INTEGER)
    }

    pub fn logicals(self, slot: usize, len: usize) -> Result<&'call mut [i32]> {
        self.fresh(slot, LGLSXP, len, LOGICAL)
    }

    pub fn doubles(self, slot: usize, len: usize) -> Result<&'call mut [f64]> {
        self.fresh(slot, REALSXP, len, REAL)
    }

    pub fn bytes(self, slot: usize, len: usize) -> Result<&'call mut [u8]> {
        self.fresh(slot, RAWSXP, len, RAW)
    }

    fn fresh<T>(
        self,
        slot: usize,
        kind: SEXPTYPE,
        len: usize,
        data: unsafe extern "C" fn(SEXP) -> *mut T,
    ) -> Result<&'call mut [T]> {
        let vector = self.new_vector(slot, kind, len)?;
        if len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: a new vector of `len` such elements, part of the root until the call
        // returns, of which there is no other slice.
        Ok(unsafe { std::slice::from_raw_parts_mut(data(vector), len) })
    }

    /// A character vector: each row is one of `distinct`, or NA for -1. Each distinct
    /// string is made once, since most of the time goes to looking it up in R's cache.
    pub fn strings(self, slot: usize, distinct: &[&str], rows: &[i32]) -> Result<()> {
        let vector = self.new_vector(slot, STRSXP, rows.len())?;
        debug_assert!(rows.iter().all(|&r| r < distinct.len() as i32));
        // SAFETY: the vector has as many elements as `rows`, which index `distinct`.
        guarded(|| unsafe {
            let pool = Rf_protect(Rf_allocVector(STRSXP, distinct.len() as isize));
            for (i, text) in (0..).zip(distinct) {
                SET_STRING_ELT(pool, i, make_string(text));
            }
            let strings = STRING_PTR_RO(pool);
            for (i, &row) in (0..).zip(rows) {
                let string = if row < 0 {
                    R_NaString
                } else {
                    *strings.add(row as usize)
                };
                SET_STRING_ELT(vector, i, string);
            }
            Rf_unprotect(1);
            vector
        })?;
        Ok(())
    }

    /// A list of tibbles(location_id), one for each stack, shared by the rows.
    pub fn stacks(self, slot: usize, frames: &[i32], ends: &[usize], rows: &[i32]) -> Result<()> {
        let vector = self.new_vector(slot, VECSXP, rows.len())?;
        // SAFETY: `ends` partitions `frames`, `rows` index `ends`.
        guarded(|| unsafe {
            let pool = Rf_protect(Rf_allocVector(VECSXP, ends.len() as isize));
            let names = Rf_protect(Rf_allocVector(STRSXP, 1));
            SET_STRING_ELT(names, 0, make_string("location_id"));
            let class = Rf_protect(tibble_class());
            let mut start = 0;
            for (i, &end) in (0..).zip(ends) {
                let tibble = Rf_allocVector(VECSXP, 1);
                SET_VECTOR_ELT(pool, i, tibble);
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
            for (i, &row) in (0..).zip(rows) {
                SET_VECTOR_ELT(vector, i, VECTOR_ELT(pool, row as isize));
            }
            Rf_unprotect(3);
            vector
        })?;
        Ok(())
    }

    /// A list with one slot for each name.
    pub fn list(self, slot: usize, names: &[&CStr]) -> Result<Slots<'call>> {
        let list = self.new_vector(slot, VECSXP, names.len())?;
        // SAFETY: as many names as slots.
        guarded(|| unsafe {
            let attribute = Rf_protect(Rf_allocVector(STRSXP, names.len() as isize));
            for (i, name) in (0..).zip(names) {
                let size = name.count_bytes() as i32;
                let name = Rf_mkCharLenCE(name.as_ptr(), size, cetype_t::CE_UTF8);
                SET_STRING_ELT(attribute, i, name);
            }
            Rf_setAttrib(list, R_NamesSymbol, attribute);
            Rf_unprotect(1);
            list
        })?;
        Ok(Slots(list, PhantomData))
    }

    /// Makes this list a tibble of that many rows.
    pub fn set_tibble(self, rows: usize) -> Result<()> {
        let list = self.0;
        // SAFETY: a live list.
        guarded(|| unsafe {
            let names = Rf_protect(compact_row_names(rows));
            Rf_setAttrib(list, R_RowNamesSymbol, names);
            let class = Rf_protect(tibble_class());
            Rf_setAttrib(list, R_ClassSymbol, class);
            Rf_unprotect(2);
            list
        })?;
        Ok(())
    }

    /// Empties a slot.
    pub fn clear(self, slot: usize) {
        // SAFETY: a live list, and the slot is one of its own. This does not jump.
        unsafe { SET_VECTOR_ELT(self.0, slot as isize, R_NilValue) };
    }
}

/// A list of so many slots for everything else to be part of.
pub fn root(slots: usize) -> Result<Robj> {
    let list = allocate(VECSXP, slots)?;
    // SAFETY: a live object, which this protects.
    Ok(unsafe { Robj::from_sexp(list) })
}
