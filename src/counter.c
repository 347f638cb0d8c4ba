// Counters of calls, see R/count-calls.R: an integer 0 that counts how often its element is read, by `counter[[1L]]`.
//
// This is how code of R counts without calling a function, which would take longer than many functions that are worth
// counting. A counter is a constant of the code: where it is saved, or sent to another process, R writes an ordinary 0,
// which counts nothing and needs no package.

#include "counter.h"

static R_altrep_class_t counter_class;

// The count is in memory that the pointer protects, the first datum of the vector. While there is a counter, in code that
// the user has kept, the library stays in memory.
static double *count_of(SEXP x) { return REAL(R_ExternalPtrProtected(R_altrep_data1(x))); }

static R_xlen_t counter_length(SEXP x) {
    (void) x;
    return 1;
}

static int counter_element(SEXP x, R_xlen_t i) {
    (void) i;
    ++*count_of(x);
    return 0;
}

// Its value as an ordinary vector, the second datum: what compares or copies code reads this, and is no call.
static void *counter_pointer(SEXP x, Rboolean writable) {
    (void) writable;
    return INTEGER(R_altrep_data2(x));
}

static const void *counter_pointer_or_null(SEXP x) {
    (void) x;
    return NULL;
}

static R_xlen_t counter_region(SEXP x, R_xlen_t i, R_xlen_t n, int *out) {
    (void) x;
    if (n < 1 || i != 0)
        return 0;
    out[0] = 0;
    return 1;
}

// A copy of code counts for the code.
static SEXP counter_duplicate(SEXP x, Rboolean deep) {
    (void) deep;
    return x;
}

static Rboolean counter_inspect(SEXP x, int before, int deep, int after, void (*inspect)(SEXP, int, int, int)) {
    (void) before;
    (void) deep;
    (void) after;
    (void) inspect;
    Rprintf(" counter of %.0f calls\n", *count_of(x));
    return TRUE;
}

static void drop_counter(SEXP pointer) {
    (void) pointer;
    profile_dropped();
}

void profile_make_counter_class(DllInfo *dll) {
    counter_class = R_make_altinteger_class("counter", "profile", dll);
    R_set_altrep_Length_method(counter_class, counter_length);
    R_set_altrep_Duplicate_method(counter_class, counter_duplicate);
    R_set_altrep_Inspect_method(counter_class, counter_inspect);
    R_set_altvec_Dataptr_method(counter_class, counter_pointer);
    R_set_altvec_Dataptr_or_null_method(counter_class, counter_pointer_or_null);
    R_set_altinteger_Elt_method(counter_class, counter_element);
    R_set_altinteger_Get_region_method(counter_class, counter_region);
}

SEXP profile_counter(SEXP arguments) {
    (void) arguments;
    SEXP count = PROTECT(Rf_ScalarReal(0));
    SEXP pointer = PROTECT(profile_pointer(R_NilValue, count, drop_counter));
    SEXP value = PROTECT(Rf_ScalarInteger(0));
    SEXP counter = R_new_altrep(counter_class, pointer, value);
    MARK_NOT_MUTABLE(counter);
    UNPROTECT(3);
    return counter;
}

SEXP profile_count(SEXP arguments) {
    SEXP counter = CADR(arguments);
    if (!ALTREP(counter) || !R_altrep_inherits(counter, counter_class))
        return Rf_ScalarReal(NA_REAL);
    return Rf_ScalarReal(*count_of(counter));
}
