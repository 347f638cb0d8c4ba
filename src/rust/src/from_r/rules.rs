//! Finds out what all rows of a column are, without a copy of its data.
//!
//! The data of columns that R computes when it needs them would have to be computed first. For the
//! columns of a million samples that takes longer than everything else that is done with them.

use crate::argument::{INTSXP, REALSXP, STRSXP, Sexp, utf8};
use crate::guard::guarded;
use extendr_api::SEXP;
use extendr_ffi::{
    ALTREP, DATAPTR_OR_NULL, INTEGER_ELT, INTEGER_GET_REGION, INTEGER_IS_SORTED, R_NilValue,
    REAL_ELT, REAL_IS_SORTED, STRING_ELT, STRING_IS_SORTED,
};
use profile_core::error::{Error, Result};
use profile_core::schema::Only;
use std::cell::Cell;
use std::ffi::c_int;

/// How many elements are computed at a time.
const PART: usize = 1024;
/// What R calls `SORTED_INCR`: in ascending order, with NA at the end.
const ASCENDING: c_int = 1;

/// Whether a column of integers is 1, 2, 3, ….
pub fn is_counted(column: Sexp) -> Result<bool> {
    if column.kind() != INTSXP {
        return Ok(false);
    }
    let (vector, len) = (column.object(), column.len());
    let found = Cell::new(false);
    let answer = &found;
    // SAFETY: a live vector of integers, and room for a part of it.
    guarded(|| unsafe {
        let mut part = [0; PART];
        let mut row = 0;
        while row < len {
            let start = part.as_mut_ptr();
            let count = INTEGER_GET_REGION(vector, row as isize, PART as isize, start) as usize;
            let ids = part.iter().take(count).zip(row as u32 + 1..);
            // Without a branch for each, so that several are compared at once.
            let differ = ids.fold(0, |differ, (&id, number)| differ | (id as u32 ^ number));
            if differ != 0 || count == 0 {
                return R_NilValue;
            }
            row += count;
        }
        answer.set(true);
        R_NilValue
    })?;
    Ok(found.get())
}

/// The value that all rows have, if that can be found out.
pub fn the_only<'call>(column: Sexp<'call>) -> Result<Option<Only<'call>>> {
    let kind = column.kind();
    if is_computed(column)? {
        return match kind {
            INTSXP => {
                let ends = ends(column, INTEGER_IS_SORTED, INTEGER_ELT)?;
                let only = ends.filter(|[first, last]| first == last);
                Ok(only.map(|[only, _]| Only::Integer(only)))
            }
            REALSXP => {
                let ends = ends(column, REAL_IS_SORTED, REAL_ELT)?;
                // Zeros may differ in their sign.
                let only = ends.filter(|[first, last]| first == last && *first != 0.0);
                Ok(only.map(|[only, _]| Only::Double(only)))
            }
            STRSXP => {
                let ends = ends(column, STRING_IS_SORTED, STRING_ELT)?;
                text(
                    ends.filter(|[first, last]| first == last)
                        .map(|[only, _]| only),
                )
            }
            _ => Ok(None),
        };
    }
    Ok(match kind {
        INTSXP => same(column.integers()?, i32::eq).map(|&only| Only::Integer(only)),
        REALSXP => {
            let is_same = |a: &f64, b: &f64| a.to_bits() == b.to_bits();
            same(column.doubles()?, is_same).map(|&only| Only::Double(only))
        }
        STRSXP => return text(same(column.strings()?, SEXP::eq).copied()),
        _ => None,
    })
}

/// The text of a string. The reader of the column reports text that is not valid.
fn text<'call>(string: Option<SEXP>) -> Result<Option<Only<'call>>> {
    match string.map(utf8) {
        None | Some(Ok(None) | Err(Error::Unsupported(_))) => Ok(None),
        Some(Ok(Some(text))) => Ok(Some(Only::Text(text))),
        Some(Err(error)) => Err(error),
    }
}

fn same<T>(values: &[T], is_same: impl Fn(&T, &T) -> bool) -> Option<&T> {
    let (first, rest) = values.split_first()?;
    rest.iter()
        .all(|value| is_same(value, first))
        .then_some(first)
}

/// Whether a vector has no data in memory.
fn is_computed(column: Sexp) -> Result<bool> {
    let vector = column.object();
    let found = Cell::new(false);
    let answer = &found;
    // SAFETY: a live vector.
    guarded(|| unsafe {
        answer.set(ALTREP(vector) != 0 && DATAPTR_OR_NULL(vector).is_null());
        R_NilValue
    })?;
    Ok(found.get())
}

/// The first and the last element of a vector that is known to be sorted.
fn ends<T: Copy>(
    column: Sexp,
    sorted: unsafe extern "C" fn(SEXP) -> c_int,
    element: unsafe extern "C" fn(SEXP, isize) -> T,
) -> Result<Option<[T; 2]>> {
    let (vector, len) = (column.object(), column.len() as isize);
    let found = Cell::new(None);
    let answer = &found;
    // SAFETY: a live vector of the type that these functions take, and two of its elements.
    guarded(|| unsafe {
        if len > 0 && sorted(vector) == ASCENDING {
            answer.set(Some([element(vector, 0), element(vector, len - 1)]));
        }
        R_NilValue
    })?;
    Ok(found.get())
}
