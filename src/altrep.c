// Columns whose values are computed when R asks for them.
//
// A sample is a stack, and most stacks repeat, so a column of millions of rows can be computed from much less data. The
// columns of `sample_locations` are computed from stacks (frame_columns.c, frames.c), and elements of other columns are
// picked from few values (picked.c). R calls the methods in these files for elements, parts, or for a vector in memory,
// which is made once.
//
// The methods are C: R's errors may jump out of them, and must not jump over frames of
// Rust. Elements are computed without allocating from R, since callers do not expect a garbage
// collection there. There is no method for serialization: R writes ordinary vectors, which
// can be read where this package is not installed.
//
// This file contains what all these classes share: the external pointers of columns, and the data that R requested
// last. loading.c makes the classes, vector_data.c reads the data of any ALTREP vector.

#include "altrep.h"

// The number of external pointers that R has not collected yet.
static R_xlen_t in_use;

struct last profile_last;

SEXP profile_pointer(SEXP tag, SEXP other, R_CFinalizer_t drop) {
    SEXP pointer = PROTECT(R_MakeExternalPtr(NULL, tag, other));
    R_RegisterCFinalizerEx(pointer, drop, FALSE);
    ++in_use;
    profile_last.x = NULL;
    UNPROTECT(1);
    return pointer;
}

void profile_dropped(void) { --in_use; }

int profile_has_columns(void) { return in_use > 0; }
