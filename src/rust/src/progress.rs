//! Reports the progress of long operations to R, which shows a progress bar, or knows when they are to end.
//!
//! Loops of the core check regularly whether to stop. This check also calls an R function, a few times in a second.

use crate::argument::SEXPTYPE::REALSXP;
use crate::argument::{LGLSXP, Sexp};
use crate::guard::{call_function, guarded, stop};
use extendr_api::SEXP;
use extendr_ffi::{
    LOGICAL, R_NaInt, R_NaReal, R_NilValue, REAL, Rf_allocVector, Rf_protect, Rf_unprotect,
};
use profile_core::error::Result;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The time between two reports. A progress bar is not drawn more often.
const EVERY: Duration = Duration::from_millis(200);

/// A check for Ctrl-C, which also calls the R function `report` with `c(done, total)`; each is NA if it is unknown.
/// Without a function (`NULL`) it only checks.
pub fn stop_and_report<'a>(
    report: Sexp<'a>,
    progress: impl Fn() -> Option<(f64, f64)> + 'a,
) -> impl Fn() -> bool + 'a {
    let last = Cell::new(Instant::now());
    move || {
        if stop() {
            return true;
        }
        if report.is_null() || last.get().elapsed() < EVERY {
            return false;
        }
        last.set(Instant::now());
        call(report.object(), progress()).is_err()
    }
}

/// If the function jumps, this is an error, and R continues the jump after the entry point has returned.
fn call(function: SEXP, progress: Option<(f64, f64)>) -> Result<SEXP> {
    // SAFETY: a live function; the vector has two elements and is protected during the call.
    guarded(|| unsafe {
        let (done, total) = progress.unwrap_or((R_NaReal, R_NaReal));
        let numbers = Rf_protect(Rf_allocVector(REALSXP, 2));
        *REAL(numbers) = done;
        *REAL(numbers).add(1) = if total > 0.0 { total } else { R_NaReal };
        call_function(function, numbers);
        Rf_unprotect(1);
        R_NilValue
    })
}

/// Whether an operation goes on, by an R function that is called with a logical value, NA for `None`. If it jumps, this is
/// an error, and R continues the jump after the entry point has returned.
pub fn goes_on(function: Sexp, about: Option<bool>) -> Result<bool> {
    let function = function.object();
    // SAFETY: a live function; the vector has one element and is protected during the call. No object is created while the
    // answer is read.
    let answer = guarded(|| unsafe {
        let value = Rf_protect(Rf_allocVector(LGLSXP, 1));
        *LOGICAL(value) = about.map_or(R_NaInt, i32::from);
        let answer = call_function(function, value);
        Rf_unprotect(1);
        answer
    })?;
    Sexp::of(answer).flag()
}
