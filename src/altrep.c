// Columns whose values are computed when R asks for them.
//
// A sample is a stack, and most stacks repeat: what a column of millions of rows contains
// follows from much less. The columns of `sample_locations` are computed from stacks
// (frame_columns.c, frames.c), and elements of other columns are picked from few values (picked.c). R
// calls the methods in these files for elements, parts, or for a vector in memory, which is made
// once.
//
// The methods are C: R's errors may jump out of them, and must not jump over frames of
// Rust. Elements are computed without allocating from R, since callers do not expect a garbage
// collection there. There is no method for serialization: R writes ordinary vectors, which
// can be read where this package is not installed.
//
// This file has what all these classes share: loading and unloading, and reading the data of
// any ALTREP vector.

// For dladdr().
#define _GNU_SOURCE
#include "altrep.h"
#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

static DllInfo *library;
// The external pointers of vectors, until R has collected them.
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

// ---- For Rust -----------------------------------------------------------------------

// The data of an ALTREP vector, as they are now. Where there are none in memory, they are
// computed in memory that R takes back at the end of the call: to ask for the data itself would
// keep them as long as the vector. May jump.
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

// ---- Loading and unloading ----------------------------------------------------------

static void make_classes(void) {
    profile_make_frame_classes(library);
    profile_make_picked_classes(library);
}

void profile_altrep_init(DllInfo *dll) {
    library = dll;
    make_classes();
}

// R takes the methods of the classes away when it unloads the library, and nothing could read
// columns that users still have. So the classes are made again: R takes away the methods of
// the new ones, and the old ones keep theirs, whose code stays in memory.
SEXP profile_unload(SEXP arguments) {
    (void) arguments;
    // For those that nobody uses: frames are freed by the second.
    R_gc();
    R_gc();
    if (in_use > 0)
        make_classes();
    return R_NilValue;
}

void profile_altrep_unload(int threads_run) {
    if (in_use == 0 && !threads_run)
        return;
    // A second reference to the library, which is never given back.
#ifdef _WIN32
    HMODULE module;
    GetModuleHandleExA(
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
        (LPCSTR) &profile_altrep_unload, &module);
#else
    Dl_info info;
    if (dladdr((void *) &profile_altrep_unload, &info) != 0)
        dlopen(info.dli_fname, RTLD_NOW);
#endif
}
