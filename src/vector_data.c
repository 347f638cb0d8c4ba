// The data of ALTREP vectors, for Rust.

#include "picked.h"

// Returns the current data of an ALTREP vector. If they are not in memory, they are computed into
// memory that R frees at the end of the call: a request for the vector's own data would keep them
// in memory as long as the vector. May jump.
const void *profile_data(SEXP x) {
    const void *data = DATAPTR_OR_NULL(x);
    if (data != NULL)
        return data;
    R_xlen_t n = XLENGTH(x);
    if (TYPEOF(x) == INTSXP) {
        int *integers = (int *) R_alloc((size_t) n, sizeof(int));
        INTEGER_GET_REGION(x, 0, n, integers);
        return integers;
    }
    if (TYPEOF(x) == REALSXP) {
        double *doubles = (double *) R_alloc((size_t) n, sizeof(double));
        REAL_GET_REGION(x, 0, n, doubles);
        return doubles;
    }
    if (TYPEOF(x) == STRSXP && profile_is_picked_text(x)) {
        SEXP *texts = (SEXP *) R_alloc((size_t) n, sizeof(SEXP));
        for (R_xlen_t i = 0; i < n; ++i)
            texts[i] = STRING_ELT(x, i);
        return texts;
    }
    return DATAPTR_RO(x);
}
