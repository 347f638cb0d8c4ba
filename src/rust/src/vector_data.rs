//! The data of ALTREP vectors, whose methods may have to compute them.

use crate::guard::guarded;
use extendr_api::SEXP;
use extendr_ffi::R_NilValue;
use profile_core::error::Result;
use std::cell::Cell;
use std::ffi::c_void;

// Lint: extendr declares the target of SEXP `non_exhaustive`.
#[allow(improper_ctypes)]
unsafe extern "C" {
    fn profile_texts_of(x: SEXP) -> SEXP;
    fn profile_data(vector: SEXP) -> *const c_void;
}

/// The texts of a column of [`crate::altrep::cycled()`]; `None` if it is another vector or if its values are in
/// memory. They live as long as the column.
pub fn texts_of(vector: SEXP) -> Option<SEXP> {
    // SAFETY: a live object; this neither allocates nor jumps.
    let texts = unsafe { profile_texts_of(vector) };
    (!texts.is_null()).then_some(texts)
}

/// The data of an ALTREP vector.
pub fn data(vector: SEXP) -> Result<*const c_void> {
    let found = Cell::new(std::ptr::null());
    let start = &found;
    // SAFETY: a live vector; this may call methods of the package that created it.
    guarded(|| unsafe {
        start.set(profile_data(vector));
        R_NilValue
    })?;
    Ok(found.get())
}
