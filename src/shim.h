// What Rust may ask of R. Rust includes no R header and declares no R function:
// it knows these few calls only (declared again in rust/src/r.rs).
#ifndef PROFILE_SHIM_H
#define PROFILE_SHIM_H

#include <stddef.h>
#define R_NO_REMAP
#include <Rinternals.h>

// At load: makes the token that carries a jump across Rust.
void profile_shim_init(void);

// The last step of every entry point: goes on with the jump that a shim call
// caught, else hands `result` over.
SEXP profile_resume(SEXP result);

// All of these return NULL (pointers) or 0 (int) when R jumped; the caller then
// returns at once, without another call to R.
int profile_uninterrupted(void);
SEXP profile_alloc(int type, R_xlen_t length);
int profile_fill_strings(SEXP out, const char *const *bytes, const int *sizes,
                         R_xlen_t distinct, const int *index);
int profile_fill_stacks(SEXP out, const int *frames, const size_t *ends,
                        R_xlen_t stacks, const int *stack_of);
int profile_set_names(SEXP list, const char *const *names);
int profile_set_tibble(SEXP list, R_xlen_t rows);
const int *profile_integers(SEXP x);
const double *profile_doubles(SEXP x);
const unsigned char *profile_bytes(SEXP x);
const SEXP *profile_strings(SEXP x);
const char *profile_utf8(SEXP string, int *size);

// These cannot jump.
const char *profile_native(SEXP string, int *size);
int profile_type(SEXP x);
int profile_is_plain(SEXP x);
SEXP profile_class(SEXP x);
int profile_inherits(SEXP x, const char *class);
R_xlen_t profile_length(SEXP x);
SEXP profile_element(SEXP list, R_xlen_t i);
SEXP profile_names(SEXP x);
void profile_set_element(SEXP list, R_xlen_t i, SEXP value);
int *profile_integer_slots(SEXP x);
double *profile_double_slots(SEXP x);
void profile_protect(SEXP x);
void profile_unprotect(void);

#endif
