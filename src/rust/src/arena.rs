//! Creates the R objects that an entry point returns.
//!
//! ```text
//! outcome(|arena| {
//!     let (ids, rows) = arena.integers(3)?;
//!     rows.copy_from_slice(&[1, 2, 3]);
//!     arena.list(&[("ids", ids), ("title", arena.text("three"))])
//! })
//! ```
//!
//! R's garbage collector frees objects that nothing refers to. The arena is a list that exists as
//! long as the call and refers to every object created in it. An [`RObject`] and slices of its data
//! are therefore valid until the call ends, and Rust functions can pass and return them like any
//! other value.
//!
//! All objects are created inside [`guarded()`], so that a failed allocation is an error.

use crate::altrep::{self, Of};
use crate::argument::SEXPTYPE::{self, INTSXP, LGLSXP, RAWSXP, REALSXP, STRSXP, VECSXP};
use crate::argument::Sexp;
use crate::guard::{call_function, guarded};
use extendr_api::{GetSexp, Robj, SEXP};
use extendr_ffi::{
    INTEGER, LOGICAL, R_ClassSymbol, R_LevelsSymbol, R_NaString, R_NamesSymbol, R_NilValue,
    R_RowNamesSymbol, RAW, REAL, Rf_allocVector, Rf_cons, Rf_mkCharLenCE, Rf_protect, Rf_setAttrib,
    Rf_unprotect, SET_STRING_ELT, SET_VECTOR_ELT, STRING_PTR_RO, VECTOR_ELT, cetype_t,
};
use profile_core::error::Result;
use profile_core::model::Frames;
use std::marker::PhantomData;

/// Creates and protects the objects of one call.
#[derive(Debug, Clone, Copy)]
pub struct Arena<'call>(SEXP, PhantomData<&'call ()>);

/// An R object created in an arena, or R's NULL.
#[derive(Debug, Clone, Copy)]
pub struct RObject<'call>(SEXP, PhantomData<&'call ()>);

/// The list that an entry point returns, `list(value, error)`. During the call the arena is its
/// third element.
#[derive(Debug)]
pub struct ResultList(Robj);

/// The elements of the list that can be set.
#[derive(Debug, Clone, Copy)]
pub enum Slot {
    Value = 0,
    Error = 1,
}

const ARENA: isize = 2;

impl ResultList {
    pub fn new() -> Result<ResultList> {
        // SAFETY: a vector type.
        let list = guarded(|| unsafe { Rf_allocVector(VECSXP, 3) })?;
        // SAFETY: a live object, which extendr protects from here on.
        Ok(ResultList(unsafe { Robj::from_sexp(list) }))
    }

    pub fn arena(&self) -> Arena<'_> {
        // SAFETY: the list lives as long as it is borrowed.
        Arena(unsafe { self.0.get() }, PhantomData)
    }

    pub fn set(&self, slot: Slot, value: RObject) {
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

impl<'call> RObject<'call> {
    /// The object as input of functions that read arguments.
    pub fn read(self) -> Sexp<'call> {
        Sexp::of(self.0)
    }

    /// R's NULL.
    pub fn null() -> Self {
        // SAFETY: a constant of R.
        RObject(unsafe { R_NilValue }, PhantomData)
    }
}

impl<'call> Arena<'call> {
    /// Adds the new object that `make` returns to the arena.
    fn add(self, make: impl FnOnce() -> SEXP + Copy) -> Result<RObject<'call>> {
        let list = self.0;
        // SAFETY: a live list; the new object is protected until the list refers to it.
        let object = guarded(|| unsafe {
            let object = Rf_protect(make());
            SET_VECTOR_ELT(list, ARENA, Rf_cons(object, VECTOR_ELT(list, ARENA)));
            Rf_unprotect(1);
            object
        })?;
        Ok(RObject(object, PhantomData))
    }

    /// A vector, and its data, which the caller fills.
    fn vector<T>(
        self,
        kind: SEXPTYPE,
        len: usize,
        data: unsafe extern "C" fn(SEXP) -> *mut T,
    ) -> Result<(RObject<'call>, &'call mut [T])> {
        // SAFETY: a vector type.
        let vector = self.add(|| unsafe { Rf_allocVector(kind, len as isize) })?;
        if len == 0 {
            return Ok((vector, &mut []));
        }
        // SAFETY: a new vector of `len` such elements that exists until the call ends, and
        // the only slice of its data.
        let data = unsafe { std::slice::from_raw_parts_mut(data(vector.0), len) };
        Ok((vector, data))
    }

    /// The result of an R function of one argument. It may run any R code, including other entry points. If it jumps,
    /// this is an error, and R continues the jump after the entry point has returned.
    pub fn call(self, function: Sexp, argument: RObject) -> Result<RObject<'call>> {
        let (function, argument) = (function.object(), argument.0);
        // SAFETY: live objects; `add()` runs this in `guarded()`.
        self.add(|| unsafe { call_function(function, argument) })
    }

    /// A list of `len` objects, which are NULL until they are set.
    pub fn objects(self, len: usize) -> Result<Objects<'call>> {
        // SAFETY: a vector type.
        let list = self.add(|| unsafe { Rf_allocVector(VECSXP, len as isize) })?;
        Ok(Objects { list, len })
    }

    pub fn integers(self, len: usize) -> Result<(RObject<'call>, &'call mut [i32])> {
        self.vector(INTSXP, len, INTEGER)
    }

    /// A logical vector: each element is 0, 1 or NA (`i32::MIN`).
    pub fn logicals(self, len: usize) -> Result<(RObject<'call>, &'call mut [i32])> {
        self.vector(LGLSXP, len, LOGICAL)
    }

    /// A factor with these levels, which are distinct: each element is the number of a level, from 1, or NA (`i32::MIN`).
    pub fn factor(self, len: usize, levels: &[&str]) -> Result<(RObject<'call>, &'call mut [i32])> {
        let (RObject(levels, _), RObject(class, _)) = (self.texts(levels)?, self.text("factor")?);
        let (vector, codes) = self.integers(len)?;
        // SAFETY: live objects of this arena.
        guarded(|| unsafe {
            Rf_setAttrib(vector.0, R_LevelsSymbol, levels);
            Rf_setAttrib(vector.0, R_ClassSymbol, class);
            vector.0
        })?;
        Ok((vector, codes))
    }

    pub fn doubles(self, len: usize) -> Result<(RObject<'call>, &'call mut [f64])> {
        self.vector(REALSXP, len, REAL)
    }

    pub fn bytes(self, bytes: &[u8]) -> Result<RObject<'call>> {
        let (vector, data) = self.vector(RAWSXP, bytes.len(), RAW)?;
        data.copy_from_slice(bytes);
        Ok(vector)
    }

    /// The columns of frames, computed when R needs their values.
    pub fn frame_columns(self, frames: Frames) -> Result<[RObject<'call>; 3]> {
        let RObject(list, _) = altrep::with_frame_columns(frames, |make| self.add(make))?;
        // SAFETY: a live list of three elements.
        Ok([0, 1, 2].map(|at| RObject(unsafe { VECTOR_ELT(list, at) }, PhantomData)))
    }

    /// A column with a row for each of the frames of `column`, which contains the value of its
    /// sample or location, computed in the same way. `values` has one element for each sample or
    /// location, and is not used elsewhere.
    pub fn of_frames(
        self,
        RObject(column, _): RObject<'call>,
        of: Of,
        RObject(values, _): RObject<'call>,
    ) -> Result<RObject<'call>> {
        // SAFETY: inside `guarded()`, with objects of this arena.
        self.add(|| unsafe { altrep::of_frames(column, of, values) })
    }

    /// A column of 1, 2, 3, …, each repeated in `each` rows, computed in the same way.
    pub fn counted(self, rows: usize, each: usize) -> Result<RObject<'call>> {
        // SAFETY: inside `guarded()`.
        self.add(|| unsafe { altrep::counted(rows, each) })
    }

    /// A column that repeats these values in a cycle, computed in the same way. There is at least
    /// one value, and `values` is not used elsewhere.
    pub fn cycled(self, rows: usize, RObject(values, _): RObject<'call>) -> Result<RObject<'call>> {
        // SAFETY: inside `guarded()`, with an object of this arena.
        self.add(|| unsafe { altrep::cycled(rows, values) })
    }

    /// An integer vector of these numbers.
    pub fn integer_vector(self, numbers: &[i32]) -> Result<RObject<'call>> {
        let (vector, data) = self.integers(numbers.len())?;
        data.copy_from_slice(numbers);
        Ok(vector)
    }

    /// A double vector of these numbers.
    pub fn numbers(self, numbers: &[f64]) -> Result<RObject<'call>> {
        let (vector, data) = self.doubles(numbers.len())?;
        data.copy_from_slice(numbers);
        Ok(vector)
    }

    pub fn number(self, number: f64) -> Result<RObject<'call>> {
        self.numbers(&[number])
    }

    pub fn flag(self, flag: bool) -> Result<RObject<'call>> {
        let (vector, data) = self.logicals(1)?;
        data.fill(i32::from(flag));
        Ok(vector)
    }

    pub fn text(self, text: &str) -> Result<RObject<'call>> {
        self.texts(&[text])
    }

    /// A character vector of these strings.
    pub fn texts(self, texts: &[&str]) -> Result<RObject<'call>> {
        // SAFETY: inside `guarded()`.
        self.add(|| unsafe { character_vector(texts) })
    }

    /// A character vector whose elements repeat: `rows` contains the index of each in
    /// `distinct`, or -1 for NA. Each distinct string is created once, because R looks up every
    /// new string in its cache.
    pub fn indexed_texts(self, distinct: &[&str], rows: &[i32]) -> Result<RObject<'call>> {
        let mut slots = self.text_slots(distinct, rows.len())?;
        slots.fill(rows)?;
        Ok(slots.vector)
    }

    /// A character vector of `len` of these strings, which are filled in later, part by part.
    pub fn text_slots(self, distinct: &[&str], len: usize) -> Result<TextSlots<'call>> {
        // SAFETY: inside `guarded()`.
        let vector = self.add(|| unsafe { Rf_allocVector(STRSXP, len as isize) })?;
        Ok(TextSlots {
            vector,
            len,
            next: 0,
            distinct: self.texts(distinct)?,
            count: distinct.len(),
        })
    }

    /// A list of these fields.
    pub fn list(self, fields: &[(&str, RObject<'call>)]) -> Result<RObject<'call>> {
        // SAFETY: inside `guarded()`.
        self.add(|| unsafe { named_list(fields) })
    }

    /// A tibble of these columns, each of which has `rows` rows. See `Tibble`.
    pub fn tibble(self, rows: usize, columns: &[(&str, RObject<'call>)]) -> Result<RObject<'call>> {
        // SAFETY: inside `guarded()`; the list is protected while its attributes are set.
        self.add(|| unsafe {
            let list = Rf_protect(named_list(columns));
            Rf_setAttrib(list, R_RowNamesSymbol, Rf_protect(compact_row_names(rows)));
            Rf_setAttrib(list, R_ClassSymbol, Rf_protect(tibble_class()));
            Rf_unprotect(3);
            list
        })
    }

    /// A list column of tibbles with the column `location_id`, for stacks in version "1.0". Row
    /// `r` has stack `i = rows[r]`, whose ids are `frames[ends[i - 1]..ends[i]]`. Rows with the
    /// same stack share one tibble.
    pub fn stack_tibbles(
        self,
        frames: &[i32],
        ends: &[usize],
        rows: &[i32],
    ) -> Result<RObject<'call>> {
        // SAFETY: `ends` partitions `frames`, and `rows` contains indices of `ends`.
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

/// A character vector whose elements repeat and are filled part by part.
pub struct TextSlots<'call> {
    pub vector: RObject<'call>,
    len: usize,
    /// The first element that is not filled.
    next: usize,
    distinct: RObject<'call>,
    count: usize,
}

impl TextSlots<'_> {
    /// Fills the next elements, by their indices, or -1 for NA.
    pub fn fill(&mut self, rows: &[i32]) -> Result<()> {
        debug_assert!(rows.iter().all(|&row| row < self.count as i32));
        debug_assert!(rows.len() <= self.len - self.next);
        let (RObject(vector, _), RObject(distinct, _)) = (self.vector, self.distinct);
        let next = self.next as isize;
        // SAFETY: live vectors with enough elements, and `rows` index `distinct`.
        guarded(|| unsafe {
            let strings = STRING_PTR_RO(distinct);
            for (i, &row) in (next..).zip(rows) {
                let string = if row < 0 {
                    R_NaString
                } else {
                    *strings.add(row as usize)
                };
                SET_STRING_ELT(vector, i, string);
            }
            vector
        })?;
        self.next += rows.len();
        Ok(())
    }
}

/// Allocates so many vectors of doubles, and nothing else. They are garbage at once. The agent needs this.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub fn allocate_vectors(count: u32, len: u32) -> Result<()> {
    // SAFETY: a vector type; nothing uses the vectors.
    let made = guarded(|| unsafe {
        for _ in 0..count {
            Rf_allocVector(REALSXP, len as isize);
        }
        R_NilValue
    });
    made.map(drop)
}

/// A string object. May jump.
///
/// # Safety
/// Only inside [`guarded()`].
unsafe fn string(text: &str) -> SEXP {
    // R raises an error for a negative length, as for texts that are too long.
    let len = i32::try_from(text.len()).unwrap_or(-1);
    // SAFETY: the bytes of a UTF-8 text.
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

/// A list whose elements are set one by one.
pub struct Objects<'call> {
    list: RObject<'call>,
    len: usize,
}

impl<'call> Objects<'call> {
    /// Sets an element, if there is one with this number. This allocates nothing.
    ///
    /// # Safety
    /// It is the address of an object of R that is alive.
    pub unsafe fn set(&self, number: usize, address: u64) {
        if number < self.len {
            // SAFETY: an element of the list, and by the contract an object.
            unsafe { SET_VECTOR_ELT(self.list.0, number as isize, address as SEXP) };
        }
    }

    pub fn list(self) -> RObject<'call> {
        self.list
    }
}

/// May jump.
///
/// # Safety
/// Only inside [`guarded()`].
unsafe fn named_list(fields: &[(&str, RObject)]) -> SEXP {
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
    // SAFETY: called inside `guarded()`, as this function is.
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
