// Catches jumps of R in functions that Rust calls.
//
// R handles errors and interrupts with longjmp() to an earlier stack frame. A jump over
// Rust frames would skip their destructors. Therefore Rust makes every call that may
// jump through profile_guarded(), with a closure that owns nothing
// (rust/src/guard.rs). The jump ends here: Rust gets NULL, and returns from all its
// functions, which run their destructors. Then R/rust.R calls profile_resume(), and R
// continues the jump, so that users see R's own error or interrupt.
//
// This file is in C because setjmp() cannot be called from Rust.

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
    SEXP result = R_UnwindProtect(body, data, leave, &target, token);
    // Without this, the token would keep the result, such as a whole profile, alive until the next
    // call.
    SETCAR(token, R_NilValue);
    return result;
}

SEXP profile_resume(SEXP arguments) {
    (void) arguments;
    if (jumped) {
        jumped = 0;
        R_ContinueUnwind(token);
    }
    return R_NilValue;
}
