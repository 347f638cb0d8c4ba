// Calls to R that may jump, on behalf of Rust.
//
// R reports errors and interrupts by a longjmp() to an earlier frame. A jump over a
// frame of Rust would skip its destructors. So Rust passes every call that may jump
// to profile_guarded(), as a body that owns nothing (rust/src/guard.rs). A jump ends
// here: Rust gets NULL, returns from all its functions and frees what it holds. Then
// R/rust.R calls profile_resume(), and R continues its own jump, so that an error of
// R's stays that error and Ctrl-C stays Ctrl-C.
//
// This is C because setjmp() cannot be called from Rust.

#include "guard.h"
#include <setjmp.h>

static SEXP token = NULL;
static int jumped = 0;

void profile_guard_init(void) {
    token = R_MakeUnwindCont();
    R_PreserveObject(token);
}

static void leave(void *target, Rboolean jump) {
    if (jump)
        longjmp(*(jmp_buf *) target, 1);
}

SEXP profile_guarded(SEXP (*body)(void *), void *data) {
    jmp_buf target;
    jumped = 0;
    if (setjmp(target)) {
        jumped = 1;
        return NULL;
    }
    return R_UnwindProtect(body, data, leave, &target, token);
}

SEXP profile_resume(SEXP arguments) {
    (void) arguments;
    if (jumped) {
        jumped = 0;
        R_ContinueUnwind(token);
    }
    return R_NilValue;
}
