//! Detects regular columns, such as constants and sequences, without copying their data.
//!
//! The values of lazy columns would first have to be computed. For the columns of a million samples
//! this takes longer than all other processing of them.

use crate::altrep;
use crate::argument::{INTSXP, REALSXP, STRSXP, Sexp, utf8};
use crate::guard::guarded;
use extendr_api::SEXP;
use extendr_ffi::{
    ALTREP, DATAPTR_OR_NULL, INTEGER_ELT, INTEGER_GET_REGION, INTEGER_IS_SORTED, R_NilValue,
    REAL_ELT, REAL_IS_SORTED, STRING_ELT, STRING_IS_SORTED,
};
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryGrow, with_room};
use profile_core::schema::Only;
use std::cell::Cell;
use std::ffi::c_int;

/// How many elements are computed at a time.
const PART: usize = 1024;
/// What R calls `SORTED_INCR`: in ascending order, with NA at the end.
const ASCENDING: c_int = 1;

/// Whether a column of integers is 1, 2, 3, …, each repeated in `each` rows.
pub fn is_counted(column: Sexp, each: usize) -> Result<bool> {
    if column.kind() != INTSXP || each == 0 {
        return Ok(false);
    }
    if let Some(found) = altrep::rows_of_each(column.object()) {
        return Ok(found == each);
    }
    let (vector, len) = (column.object(), column.len());
    let found = Cell::new(false);
    let answer = &found;
    // SAFETY: a live vector of integers, and a buffer for a part of it.
    guarded(|| unsafe {
        let mut part = [0; PART];
        let mut row = 0;
        // The expected number in the row, and how many following rows have the same number.
        let (mut number, mut left) = (1, each - 1);
        while row < len {
            let start = part.as_mut_ptr();
            let count = INTEGER_GET_REGION(vector, row as isize, PART as isize, start) as usize;
            let ids = part.iter().take(count);
            let differ = match each {
                // Without a branch for each element, so that the loop is vectorised.
                1 => ids
                    .zip(row as u32 + 1..)
                    .fold(0, |differ, (&id, number)| differ | (id as u32 ^ number)),
                _ => ids.fold(0, |differ, &id| {
                    let differ = differ | (id as u32 ^ number);
                    (number, left) = match left {
                        0 => (number + 1, each - 1),
                        _ => (number, left - 1),
                    };
                    differ
                }),
            };
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

/// The value that all rows have; `None` if they differ or if this is unknown.
pub fn the_only(column: Sexp) -> Result<Option<Only>> {
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
            _ => Ok(None),
        };
    }
    Ok(match kind {
        INTSXP => same(column.integers()?, i32::eq).map(|&only| Only::Integer(only)),
        REALSXP => {
            let is_same = |a: &f64, b: &f64| a.to_bits() == b.to_bits();
            same(column.doubles()?, is_same).map(|&only| Only::Double(only))
        }
        _ => None,
    })
}

/// The texts of the first `count` rows, if all other rows repeat them in a cycle and none is NA.
/// Invalid text is reported by the reader of the column.
pub fn repeated_texts<'call>(column: Sexp<'call>, count: usize) -> Result<Option<Vec<&'call str>>> {
    if column.kind() != STRSXP || count == 0 || column.len() % count != 0 {
        return Ok(None);
    }
    let only;
    let strings = if let Some(strings) = column.repeated_strings()? {
        strings
    } else if is_computed(column)? {
        let ends = ends(column, STRING_IS_SORTED, STRING_ELT)?;
        let Some([first, _]) = ends.filter(|[first, last]| first == last) else {
            return Ok(None);
        };
        only = [first];
        &only
    } else {
        let strings = column.strings()?;
        match strings.get(..count) {
            Some(first) if strings[count..] == strings[..strings.len() - count] => first,
            _ => return Ok(None),
        }
    };
    if strings.is_empty() || count % strings.len() != 0 {
        return Ok(None);
    }
    let mut texts = with_room(count)?;
    for &string in strings.iter().cycle().take(count) {
        match utf8(string) {
            Ok(Some(text)) => texts.try_push(text)?,
            Ok(None) | Err(Error::Unsupported(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(texts))
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
