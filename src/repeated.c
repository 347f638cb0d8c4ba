// Columns that repeat numbers: one number in all rows, or 1, 2, 3, …, each in several rows. And
// columns that repeat a list of texts. altrep.c says what holds for all computed columns.

#include "altrep.h"
#include <string.h>

static R_altrep_class_t repeated_integer, repeated_double, repeated_text;

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

// The texts are the second object of the external pointer. Since elements are these objects, they
// are reachable as long as the vector.
static inline SEXP text_at(SEXP texts, R_xlen_t row) {
    R_xlen_t n = XLENGTH(texts);
    return STRING_ELT(texts, n == 1 ? 0 : row % n);
}

static inline SEXP texts_of(SEXP x) { return R_ExternalPtrProtected(R_altrep_data1(x)); }

// If there is only one text, it is remembered: a hash table of a million elements asks for it a
// million times, which takes 25 instead of 80 ms.
static SEXP text_element(SEXP x, R_xlen_t i) {
    if (x == profile_last.x && !profile_last.lent)
        return profile_last.data;
    SEXP all = R_altrep_data2(x);
    if (all != R_NilValue)
        return STRING_ELT(all, i);
    SEXP texts = texts_of(x);
    if (XLENGTH(texts) == 1)
        profile_last = (struct last) {x, STRING_ELT(texts, 0), 0};
    return text_at(texts, i);
}

static SEXP repeated_copy(SEXP x, Rboolean deep) {
    (void) deep;
    R_xlen_t rows = repeated_length(x);
    SEXP copy = PROTECT(Rf_allocVector(TYPEOF(x), rows));
    if (TYPEOF(x) == INTSXP)
        integer_region(x, 0, rows, INTEGER(copy));
    else if (TYPEOF(x) == REALSXP)
        double_region(x, 0, rows, REAL(copy));
    else
        for (R_xlen_t i = 0; i < rows; ++i)
            SET_STRING_ELT(copy, i, text_element(x, i));
    UNPROTECT(1);
    return copy;
}

static void *repeated_data(SEXP x, Rboolean writable) {
    (void) writable;
    if (x == profile_last.x && profile_last.lent)
        return profile_last.data;
    SEXP all = R_altrep_data2(x);
    if (all == R_NilValue) {
        all = repeated_copy(x, TRUE);
        R_set_altrep_data2(x, all);
    }
    profile_last.x = x;
    profile_last.lent = 1;
    switch (TYPEOF(all)) {
    case INTSXP:
        return profile_last.data = INTEGER(all);
    case REALSXP:
        return profile_last.data = REAL(all);
    default:
        return profile_last.data = (void *) STRING_PTR_RO(all);
    }
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
    int rows[512];
    for (R_xlen_t at = 0, got; at < n; at += got) {
        got = INTEGER_GET_REGION(index, at, 512, rows);
        for (R_xlen_t i = 0; i < got; ++i) {
            // NA is less than all others.
            int there = rows[i] >= 1 && rows[i] <= rule.rows;
            R_xlen_t row = there ? rows[i] - 1 : 0;
            if (TYPEOF(x) == INTSXP)
                INTEGER(out)[at + i] = there ? (int) number_at(&rule, row) : NA_INTEGER;
            else if (TYPEOF(x) == REALSXP)
                REAL(out)[at + i] = there ? rule.number : NA_REAL;
            else
                SET_STRING_ELT(out, at + i, there ? text_at(texts_of(x), row) : NA_STRING);
        }
    }
    UNPROTECT(1);
    return out;
}

static Rboolean repeated_inspect(SEXP x, int pre, int deep, int pvec,
                                 void (*inspect)(SEXP, int, int, int)) {
    (void) pre; (void) deep; (void) pvec; (void) inspect;
    int is_computed = R_altrep_data2(x) == R_NilValue;
    const char *what = TYPEOF(x) == STRSXP ? "texts" : "numbers";
    Rprintf(" repeated %s (%s)\n", what, is_computed ? "computed" : "in memory");
    return TRUE;
}

static int repeated_sorted(SEXP x) {
    return R_altrep_data2(x) == R_NilValue ? SORTED_INCR : UNKNOWN_SORTEDNESS;
}

static int repeated_no_na(SEXP x) { return R_altrep_data2(x) == R_NilValue; }

// Texts are in order if there is only one.
static int text_sorted(SEXP x) {
    int is_one = R_altrep_data2(x) == R_NilValue && XLENGTH(texts_of(x)) == 1;
    return is_one ? SORTED_INCR : UNKNOWN_SORTEDNESS;
}

static void text_set(SEXP x, R_xlen_t i, SEXP text) {
    repeated_data(x, TRUE);
    SET_STRING_ELT(R_altrep_data2(x), i, text);
}

// ---- Making them, for Rust ----------------------------------------------------------

static void drop_rule(SEXP pointer) {
    (void) pointer;
    profile_dropped();
}

static SEXP new_vector(R_altrep_class_t class, struct rule rule, SEXP texts) {
    SEXP numbers = PROTECT(Rf_allocVector(REALSXP, 3));
    REAL(numbers)[0] = (double) rule.rows;
    REAL(numbers)[1] = (double) rule.each;
    REAL(numbers)[2] = rule.number;
    SEXP pointer = PROTECT(profile_pointer(numbers, texts, drop_rule));
    SEXP x = R_new_altrep(class, pointer, R_NilValue);
    UNPROTECT(2);
    return x;
}

// A column of integers (or doubles): `number` in all rows, or 1, 2, 3, …, in `each` rows. May
// jump.
SEXP profile_repeated(int doubles, R_xlen_t rows, R_xlen_t each, double number) {
    struct rule rule = {rows, each, number};
    return new_vector(doubles ? repeated_double : repeated_integer, rule, R_NilValue);
}

// A column of texts, one after the other, and again from the first; none is NA, and there is at
// least one. May jump.
SEXP profile_repeated_texts(R_xlen_t rows, SEXP texts) {
    return new_vector(repeated_text, (struct rule) {rows, 0, 0}, texts);
}

int profile_is_repeated_text(SEXP x) { return R_altrep_inherits(x, repeated_text); }

// In how many rows a column has each of 1, 2, 3, …; 0 if that is not known without its values.
R_xlen_t profile_rows_of_each(SEXP x) {
    int is_known = R_altrep_inherits(x, repeated_integer) && R_altrep_data2(x) == R_NilValue;
    return is_known ? rule_of(x).each : 0;
}

// The texts that a column repeats; NULL if they are not known without its values.
SEXP profile_texts_of(SEXP x) {
    int is_known = profile_is_repeated_text(x) && R_altrep_data2(x) == R_NilValue;
    return is_known ? texts_of(x) : NULL;
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
    repeated_text = R_make_altstring_class("repeated_text", "profile", dll);
    repeated_methods(repeated_text);
    R_set_altstring_Elt_method(repeated_text, text_element);
    R_set_altstring_Set_elt_method(repeated_text, text_set);
    R_set_altstring_Is_sorted_method(repeated_text, text_sorted);
    R_set_altstring_No_NA_method(repeated_text, repeated_no_na);
}
