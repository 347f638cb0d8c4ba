// Functions of guard.c, which catches jumps of R. entrypoint.c uses two of them; Rust
// declares profile_guarded() itself.

#ifndef PROFILE_GUARD_H
#define PROFILE_GUARD_H

#define R_NO_REMAP
#include <Rinternals.h>

// Creates the token that stores a caught jump. Called when the package is loaded.
void profile_guard_init(void);

// Returns the result of `body`, or NULL if R jumped out of it.
SEXP profile_guarded(SEXP (*body)(void *), void *data);

// Continues the jump that was caught last. Called by R's .External().
SEXP profile_resume(SEXP arguments);

#endif
