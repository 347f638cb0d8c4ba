//! Calls functions of R that may jump: because an allocation fails, because a method raises
//! an error, or because of Ctrl-C.
//!
//! R's `longjmp()` skips the destructors of the frames it passes. Therefore such functions
//! are called in a closure that owns nothing, through a C function (`src/guard.c`) where the
//! jump ends. Rust then gets [`Error::Interrupted`] and returns to R, which continues the
//! jump (`outcome.rs`). Users never see that variant.

use extendr_api::SEXP;
use extendr_ffi::{R_GlobalEnv, R_NilValue, Rf_protect, Rf_unprotect};
use profile_core::error::{Error, Result};
use std::ffi::c_void;

// Lint: extendr declares the target of SEXP `non_exhaustive`.
#[allow(improper_ctypes)]
unsafe extern "C" {
    fn profile_guarded(body: unsafe extern "C" fn(*mut c_void) -> SEXP, data: *mut c_void) -> SEXP;
    // extendr does not declare these functions of R's API.
    fn R_CheckUserInterrupt();
    fn Rf_eval(expression: SEXP, environment: SEXP) -> SEXP;
    fn Rf_lang2(function: SEXP, argument: SEXP) -> SEXP;
}

/// Calls `body`, which calls functions of R, and returns its result, an R object.
///
/// `body` must not own anything that has a destructor (`Copy` ensures this for captured
/// values) and must not panic. After an error, no function of R may be called.
pub fn guarded<Body: FnOnce() -> SEXP + Copy>(mut body: Body) -> Result<SEXP> {
    unsafe extern "C" fn call<Body: FnOnce() -> SEXP + Copy>(body: *mut c_void) -> SEXP {
        // SAFETY: the pointer to `body` that is passed below.
        let body = unsafe { *body.cast::<Body>() };
        body()
    }
    // SAFETY: `call` casts the pointer to the type of this body, which outlives the call.
    let object = unsafe { profile_guarded(call::<Body>, (&raw mut body).cast()) };
    if object.is_null() {
        Err(Error::Interrupted)
    } else {
        Ok(object)
    }
}

/// Whether the user pressed Ctrl-C.
pub fn stop() -> bool {
    // SAFETY: called from R's thread.
    let checked = guarded(|| unsafe {
        R_CheckUserInterrupt();
        R_NilValue
    });
    checked.is_err()
}

/// The result of an R function of one argument, which may run any R code. It is not protected.
///
/// # Safety
/// Must be called within [`guarded()`], with live objects.
pub unsafe fn call_function(function: SEXP, argument: SEXP) -> SEXP {
    // SAFETY: see above; the call is protected while R evaluates it.
    unsafe {
        let call = Rf_protect(Rf_lang2(function, argument));
        let value = Rf_eval(call, R_GlobalEnv);
        Rf_unprotect(1);
        value
    }
}
