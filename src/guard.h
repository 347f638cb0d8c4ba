#ifndef PROFILE_GUARD_H
#define PROFILE_GUARD_H

#define R_NO_REMAP
#include <Rinternals.h>

// At load: makes the token that carries a caught jump.
void profile_guard_init(void);

// The result of `body`, or NULL when R jumped out of it.
SEXP profile_guarded(SEXP (*body)(void *), void *data);

// For .External(): continues the jump that was caught last.
SEXP profile_resume(SEXP arguments);

#endif
