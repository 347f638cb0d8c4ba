// Columns that repeat numbers: one number in all rows, or 1, 2, 3, …, each in several rows.
// altrep.c says what holds for all computed columns.

#include "altrep.h"
#include <string.h>

static R_altrep_class_t repeated_integer, repeated_double;

// The first datum of a vector is an external pointer whose tag is the rule, the second is a
// vector of all values once R has asked for that.
struct rule {
    R_xlen_t rows;
    R_xlen_t each; // 0 for one number
    double number;
};

static inline struct rule rule_of(SEXP x) {
    const double *numbers = REAL_RO(R_ExternalPtrTag(R_altrep_data1(x)));
    return (struct rule) {(R_xlen_t) numbers[0], (R_xlen_t) numbers[1], numbers[2]};
}

static inline double number_at(const struct rule *rule, R_xlen_t row) {
    return rule->each == 0 ? rule->number : (double) (row / rule->each + 1);
}

static R_xlen_t repeated_length(SEXP x) { return rule_of(x).rows; }

static int integer_element(SEXP x, R_xlen_t i) {
    SEXP all = R_altrep_data2(x);
    if (all != R_NilValue)
        return INTEGER_RO(all)[i];
    struct rule rule = rule_of(x);
    return (int) number_at(&rule, i);
}

static double double_element(SEXP x, R_xlen_t i) {
    SEXP all = R_altrep_data2(x);
    if (all != R_NilValue)
        return REAL_RO(all)[i];
    return rule_of(x).number;
}

static R_xlen_t integer_region(SEXP x, R_xlen_t i, R_xlen_t n, int *out) {
    SEXP all = R_altrep_data2(x);
    struct rule rule = rule_of(x);
    if (n > rule.rows - i)
        n = rule.rows - i;
    if (all != R_NilValue) {
        memcpy(out, INTEGER_RO(all) + i, (size_t) n * sizeof(int));
    } else if (rule.each == 0) {
        for (R_xlen_t k = 0; k < n; ++k)
            out[k] = (int) rule.number;
    } else {
        int number = (int) number_at(&rule, i);
        R_xlen_t left = rule.each - i % rule.each;
        for (R_xlen_t k = 0; k < n; ++k) {
            out[k] = number;
            if (--left == 0) {
                left = rule.each;
                ++number;
            }
        }
    }
    return n;
}

static R_xlen_t double_region(SEXP x, R_xlen_t i, R_xlen_t n, double *out) {
    SEXP all = R_altrep_data2(x);
    struct rule rule = rule_of(x);
    if (n > rule.rows - i)
        n = rule.rows - i;
    if (all != R_NilValue)
        memcpy(out, REAL_RO(all) + i, (size_t) n * sizeof(double));
    else
        for (R_xlen_t k = 0; k < n; ++k)
            out[k] = rule.number;
    return n;
}

static SEXP repeated_copy(SEXP x, Rboolean deep) {
    (void) deep;
    R_xlen_t rows = repeated_length(x);
    SEXP copy = PROTECT(Rf_allocVector(TYPEOF(x), rows));
    if (TYPEOF(x) == INTSXP)
        integer_region(x, 0, rows, INTEGER(copy));
    else
        double_region(x, 0, rows, REAL(copy));
    UNPROTECT(1);
    return copy;
}

static void *repeated_data(SEXP x, Rboolean writable) {
    (void) writable;
    if (x == profile_last.x)
        return profile_last.data;
    SEXP all = R_altrep_data2(x);
    if (all == R_NilValue) {
        all = repeated_copy(x, TRUE);
        R_set_altrep_data2(x, all);
    }
    profile_last.x = x;
    profile_last.lent = 1;
    return profile_last.data = TYPEOF(all) == INTSXP ? (void *) INTEGER(all) : (void *) REAL(all);
}

static const void *repeated_data_or_null(SEXP x) {
    return R_altrep_data2(x) == R_NilValue ? NULL : repeated_data(x, FALSE);
}

// x[index]; NULL leaves it to R.
static SEXP repeated_subset(SEXP x, SEXP index, SEXP call) {
    (void) call;
    if (R_altrep_data2(x) != R_NilValue || TYPEOF(index) != INTSXP)
        return NULL;
    struct rule rule = rule_of(x);
    R_xlen_t n = XLENGTH(index);
    SEXP out = PROTECT(Rf_allocVector(TYPEOF(x), n));
    int *integers = TYPEOF(x) == INTSXP ? INTEGER(out) : NULL;
    double *doubles = integers == NULL ? REAL(out) : NULL;
    int rows[512];
    for (R_xlen_t at = 0, got; at < n; at += got) {
        got = INTEGER_GET_REGION(index, at, 512, rows);
        for (R_xlen_t i = 0; i < got; ++i) {
            // NA is less than all others.
            int there = rows[i] >= 1 && rows[i] <= rule.rows;
            double number = there ? number_at(&rule, rows[i] - 1) : 0;
            if (integers != NULL)
                integers[at + i] = there ? (int) number : NA_INTEGER;
            else
                doubles[at + i] = there ? number : NA_REAL;
        }
    }
    UNPROTECT(1);
    return out;
}

static Rboolean repeated_inspect(SEXP x, int pre, int deep, int pvec,
                                 void (*inspect)(SEXP, int, int, int)) {
    (void) pre; (void) deep; (void) pvec; (void) inspect;
    int is_computed = R_altrep_data2(x) == R_NilValue;
    Rprintf(" repeated numbers (%s)\n", is_computed ? "computed" : "in memory");
    return TRUE;
}

static int repeated_sorted(SEXP x) {
    return R_altrep_data2(x) == R_NilValue ? SORTED_INCR : UNKNOWN_SORTEDNESS;
}

static int repeated_no_na(SEXP x) { return R_altrep_data2(x) == R_NilValue; }

// ---- Making them, for Rust ----------------------------------------------------------

static void drop_rule(SEXP pointer) {
    (void) pointer;
    profile_dropped();
}

// A column of integers (or doubles): `number` in all rows, or 1, 2, 3, …, in `each` rows. May
// jump.
SEXP profile_repeated(int doubles, R_xlen_t rows, R_xlen_t each, double number) {
    SEXP rule = PROTECT(Rf_allocVector(REALSXP, 3));
    REAL(rule)[0] = (double) rows;
    REAL(rule)[1] = (double) each;
    REAL(rule)[2] = number;
    SEXP pointer = PROTECT(profile_pointer(NULL, rule, drop_rule));
    SEXP x = R_new_altrep(doubles ? repeated_double : repeated_integer, pointer, R_NilValue);
    UNPROTECT(2);
    return x;
}

// ---- Classes ------------------------------------------------------------------------

static void repeated_methods(R_altrep_class_t c) {
    R_set_altrep_Length_method(c, repeated_length);
    R_set_altrep_Inspect_method(c, repeated_inspect);
    R_set_altrep_Duplicate_method(c, repeated_copy);
    R_set_altvec_Dataptr_method(c, repeated_data);
    R_set_altvec_Dataptr_or_null_method(c, repeated_data_or_null);
    R_set_altvec_Extract_subset_method(c, repeated_subset);
}

void profile_make_repeated_classes(DllInfo *dll) {
    repeated_integer = R_make_altinteger_class("repeated_integer", "profile", dll);
    repeated_methods(repeated_integer);
    R_set_altinteger_Elt_method(repeated_integer, integer_element);
    R_set_altinteger_Get_region_method(repeated_integer, integer_region);
    R_set_altinteger_Is_sorted_method(repeated_integer, repeated_sorted);
    R_set_altinteger_No_NA_method(repeated_integer, repeated_no_na);
    repeated_double = R_make_altreal_class("repeated_double", "profile", dll);
    repeated_methods(repeated_double);
    R_set_altreal_Elt_method(repeated_double, double_element);
    R_set_altreal_Get_region_method(repeated_double, double_region);
    R_set_altreal_Is_sorted_method(repeated_double, repeated_sorted);
    R_set_altreal_No_NA_method(repeated_double, repeated_no_na);
}
