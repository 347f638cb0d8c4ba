// Columns whose elements are picked from a short vector of values by a rule. For example, `unit` in `sample_values` is
// "count" in all rows (BY_ROW with one value); `type` repeats the sample types in a cycle (BY_ROW); `sample_id` is 1,
// 1, 2, 2, … (BY_COUNT, which needs no values); and the name of the function of a frame is the value for the location
// of the frame (BY_LOCATION). altrep.c describes what applies to all computed columns.
//
// Of 100,000 samples with two types, `sample_values` takes half of the memory of ordinary columns, which take 1.2 times
// as long to read and 1.4 times as long to combine; as_tibble() would take 34 times as long. See `bench/lazy`.

#include "picked.h"
#include "frames.h"
#include <stdlib.h>
#include <string.h>

static R_altrep_class_t picked_integer, picked_double, picked_text;

// What determines the value of a row: the row number modulo the number of values, the row number divided by `each`, or
// the sample or location of the frame in that row.
enum by { BY_ROW, BY_COUNT, BY_SAMPLE, BY_LOCATION };

// The first datum of a vector is an external pointer to the rule. Its tag is a raw vector that contains the rule, and
// it protects the values and the pointer to the frames. The second datum is NULL, or a vector of all values after R has
// requested a pointer to them.
struct rule {
    R_xlen_t rows;
    SEXP values;
    R_xlen_t count; // of values
    enum by by;
    R_xlen_t each; // for BY_COUNT: rows of each number
    SEXP frames;
    int no_na;
    void *cached; // all elements, or NULL, see altrep.h
    R_xlen_t reads; // elements that were computed one by one
};

static inline struct rule *rule_of(SEXP x) {
    return R_ExternalPtrAddr(R_altrep_data1(x));
}

static inline int is_computed(SEXP x) { return R_altrep_data2(x) == R_NilValue; }

static inline int frame_column(enum by by) { return by == BY_SAMPLE ? SAMPLE : LOCATION; }

// The index of a row's value in `values`. For BY_COUNT it is the value itself minus 1.
static inline R_xlen_t pick(const struct rule *rule, R_xlen_t row) {
    switch (rule->by) {
    case BY_ROW:
        return rule->count == 1 ? 0 : row % rule->count;
    case BY_COUNT:
        return row / rule->each;
    default:
        return profile_frame_value(profile_frames_at(rule->frames), frame_column(rule->by), row) - 1;
    }
}

// The same for n consecutive rows, all of which exist.
static void pick_part(const struct rule *rule, R_xlen_t row, R_xlen_t n, int *out) {
    // In a column without rows there may be no values, and a division by their number would fail.
    if (n == 0)
        return;
    switch (rule->by) {
    case BY_ROW: {
        R_xlen_t at = row % rule->count;
        for (R_xlen_t i = 0; i < n; ++i) {
            out[i] = (int) at;
            if (++at == rule->count)
                at = 0;
        }
        break;
    }
    case BY_COUNT: {
        R_xlen_t number = row / rule->each, left = rule->each - row % rule->each;
        for (R_xlen_t i = 0; i < n; ++i) {
            out[i] = (int) number;
            if (--left == 0) {
                left = rule->each;
                ++number;
            }
        }
        break;
    }
    default:
        profile_frame_values(profile_frames_at(rule->frames), frame_column(rule->by), row, n, out);
        for (R_xlen_t i = 0; i < n; ++i)
            --out[i];
    }
}

static inline int integer_at(const struct rule *rule, R_xlen_t picked) {
    return rule->by == BY_COUNT ? (int) picked + 1 : INTEGER_RO(rule->values)[picked];
}

static R_xlen_t picked_length(SEXP x) { return rule_of(x)->rows; }

enum { PART = 512 };

static size_t element_size(const struct rule *rule) {
    return TYPEOF(rule->values) == STRSXP ? sizeof(SEXP) : sizeof(int);
}

// Writes elements to `out`, whose type is the one of R's vectors: int, double or SEXP. Returns their number.
static R_xlen_t picked_region(SEXP x, R_xlen_t i, R_xlen_t n, void *out) {
    const struct rule *rule = rule_of(x);
    if (n > rule->rows - i)
        n = rule->rows - i;
    int type = TYPEOF(x);
    if (!is_computed(x)) {
        SEXP all = R_altrep_data2(x);
        if (type == INTSXP)
            memcpy(out, INTEGER_RO(all) + i, (size_t) n * sizeof(int));
        else if (type == REALSXP)
            memcpy(out, REAL_RO(all) + i, (size_t) n * sizeof(double));
        else
            memcpy(out, STRING_PTR_RO(all) + i, (size_t) n * sizeof(SEXP));
        return n;
    }
    int picked[PART];
    for (R_xlen_t at = 0; at < n; at += PART) {
        R_xlen_t count = n - at < PART ? n - at : PART;
        pick_part(rule, i + at, count, picked);
        if (type == INTSXP)
            for (R_xlen_t k = 0; k < count; ++k)
                ((int *) out)[at + k] = integer_at(rule, picked[k]);
        else if (type == REALSXP)
            for (R_xlen_t k = 0; k < count; ++k)
                ((double *) out)[at + k] = REAL_RO(rule->values)[picked[k]];
        else
            for (R_xlen_t k = 0; k < count; ++k)
                ((SEXP *) out)[at + k] = STRING_ELT(rule->values, picked[k]);
    }
    return n;
}

// Computes and stores all elements after many single reads. They are not in R's memory, since R must not collect
// garbage while it reads elements; if there is no memory, elements are still computed one by one.
static void cache_if_read_through(SEXP x, struct rule *rule) {
    if (rule->by != BY_SAMPLE && rule->by != BY_LOCATION)
        return;
    if (!profile_are_many_reads(++rule->reads, rule->rows))
        return;
    rule->reads = 0;
    void *all = malloc((size_t) rule->rows * element_size(rule));
    if (all == NULL)
        return;
    picked_region(x, 0, rule->rows, all);
    rule->cached = all;
    profile_add_bytes((double) rule->rows * (double) element_size(rule));
}

static int integer_element(SEXP x, R_xlen_t i) {
    if (x == profile_last.x)
        return ((const int *) profile_last.data)[i];
    if (!is_computed(x))
        return INTEGER_RO(R_altrep_data2(x))[i];
    struct rule *rule = rule_of(x);
    if (rule->cached == NULL)
        cache_if_read_through(x, rule);
    if (rule->cached == NULL)
        return integer_at(rule, pick(rule, i));
    profile_last = (struct last) {x, rule->cached, 0, NULL};
    return ((const int *) rule->cached)[i];
}

static double double_element(SEXP x, R_xlen_t i) {
    if (!is_computed(x))
        return REAL_RO(R_altrep_data2(x))[i];
    const struct rule *rule = rule_of(x);
    return REAL_RO(rule->values)[pick(rule, i)];
}

// Elements are the objects in `values`, so they are reachable as long as the vector is. If there is only one value,
// `profile_last` stores it: a hash table of a million elements requests it a million times, which then takes 25 instead
// of 80 ms.
static SEXP text_element(SEXP x, R_xlen_t i) {
    if (x == profile_last.x)
        return profile_last.only != NULL ? profile_last.only : ((SEXP *) profile_last.data)[i];
    if (!is_computed(x))
        return STRING_ELT(R_altrep_data2(x), i);
    struct rule *rule = rule_of(x);
    if (rule->cached == NULL)
        cache_if_read_through(x, rule);
    if (rule->cached != NULL) {
        profile_last = (struct last) {x, rule->cached, 0, NULL};
        return ((SEXP *) rule->cached)[i];
    }
    SEXP text = STRING_ELT(rule->values, pick(rule, i));
    if (rule->by == BY_ROW && rule->count == 1)
        profile_last = (struct last) {x, NULL, 0, text};
    return text;
}

static R_xlen_t integer_region(SEXP x, R_xlen_t i, R_xlen_t n, int *out) { return picked_region(x, i, n, out); }

static R_xlen_t double_region(SEXP x, R_xlen_t i, R_xlen_t n, double *out) { return picked_region(x, i, n, out); }

static SEXP picked_copy(SEXP x, Rboolean deep) {
    (void) deep;
    R_xlen_t rows = rule_of(x)->rows;
    SEXP copy = PROTECT(Rf_allocVector(TYPEOF(x), rows));
    if (TYPEOF(x) == STRSXP) {
        SEXP texts[PART];
        for (R_xlen_t at = 0, count; at < rows; at += count) {
            count = picked_region(x, at, PART, texts);
            for (R_xlen_t k = 0; k < count; ++k)
                SET_STRING_ELT(copy, at + k, texts[k]);
        }
    } else {
        picked_region(x, 0, rows, TYPEOF(x) == INTSXP ? (void *) INTEGER(copy) : (void *) REAL(copy));
    }
    UNPROTECT(1);
    return copy;
}

static void *picked_data(SEXP x, Rboolean writable) {
    (void) writable;
    if (x == profile_last.x && profile_last.exposed)
        return profile_last.data;
    if (is_computed(x))
        R_set_altrep_data2(x, picked_copy(x, TRUE));
    SEXP all = R_altrep_data2(x);
    void *data = TYPEOF(all) == INTSXP    ? (void *) INTEGER(all)
                 : TYPEOF(all) == REALSXP ? (void *) REAL(all)
                                          : (void *) STRING_PTR_RO(all);
    profile_last = (struct last) {x, data, 1, NULL};
    return data;
}

static const void *picked_data_or_null(SEXP x) {
    return is_computed(x) ? NULL : picked_data(x, FALSE);
}

// Computes x[index]. NULL means that R computes it.
static SEXP picked_subset(SEXP x, SEXP index, SEXP call) {
    (void) call;
    if (!is_computed(x) || TYPEOF(index) != INTSXP)
        return NULL;
    const struct rule *rule = rule_of(x);
    R_xlen_t n = XLENGTH(index);
    SEXP out = PROTECT(Rf_allocVector(TYPEOF(x), n));
    int rows[PART];
    for (R_xlen_t at = 0, got; at < n; at += got) {
        got = INTEGER_GET_REGION(index, at, PART, rows);
        if (rule->by == BY_SAMPLE || rule->by == BY_LOCATION)
            profile_cache_searched(profile_frames_at(rule->frames), frame_column(rule->by));
        for (R_xlen_t i = 0; i < got; ++i) {
            // NA is the least integer.
            int there = rows[i] >= 1 && rows[i] <= rule->rows;
            R_xlen_t picked = there ? pick(rule, rows[i] - 1) : 0;
            if (TYPEOF(x) == INTSXP)
                INTEGER(out)[at + i] = there ? integer_at(rule, picked) : NA_INTEGER;
            else if (TYPEOF(x) == REALSXP)
                REAL(out)[at + i] = there ? REAL_RO(rule->values)[picked] : NA_REAL;
            else
                SET_STRING_ELT(out, at + i, there ? STRING_ELT(rule->values, picked) : NA_STRING);
        }
    }
    UNPROTECT(1);
    return out;
}

static Rboolean picked_inspect(SEXP x, int pre, int deep, int pvec,
                               void (*inspect)(SEXP, int, int, int)) {
    (void) pre; (void) deep; (void) pvec; (void) inspect;
    const char *what = TYPEOF(x) == STRSXP ? "texts" : "numbers";
    Rprintf(" picked %s (%s)\n", what, is_computed(x) ? "computed" : "in memory");
    return TRUE;
}

// After R has the pointer, it may have changed the values.
static int picked_sorted(SEXP x) {
    const struct rule *rule = rule_of(x);
    int is_sorted = rule->by == BY_COUNT || (rule->by == BY_ROW && rule->count == 1);
    return is_computed(x) && is_sorted && rule->no_na ? SORTED_INCR : UNKNOWN_SORTEDNESS;
}

static int picked_no_na(SEXP x) { return is_computed(x) && rule_of(x)->no_na; }

static void text_set(SEXP x, R_xlen_t i, SEXP text) {
    picked_data(x, TRUE);
    SET_STRING_ELT(R_altrep_data2(x), i, text);
}

// ---- Making them, for Rust ----------------------------------------------------------

// Finalizers of other objects may still use the vector, or make it reachable again.
static void drop_rule(SEXP pointer) {
    struct rule *rule = R_ExternalPtrAddr(pointer);
    profile_dropped();
    if (rule == NULL)
        return;
    // From here on values must not be cached, since nothing would free them.
    rule->reads = R_XLEN_T_MAX / -2;
    if (rule->cached == NULL)
        return;
    profile_add_bytes(-(double) rule->rows * (double) element_size(rule));
    free(rule->cached);
    rule->cached = NULL;
    profile_last.x = NULL;
}

static int has_no_na(SEXP values) {
    R_xlen_t n = Rf_xlength(values);
    for (R_xlen_t i = 0; i < n; ++i)
        if (TYPEOF(values) == INTSXP   ? INTEGER_RO(values)[i] == NA_INTEGER
            : TYPEOF(values) == STRSXP ? STRING_ELT(values, i) == NA_STRING
                                       : ISNAN(REAL_RO(values)[i]))
            return 0;
    return 1;
}

static SEXP new_vector(struct rule rule, R_altrep_class_t class) {
    rule.count = Rf_xlength(rule.values);
    rule.no_na = has_no_na(rule.values);
    SEXP tag = PROTECT(Rf_allocVector(RAWSXP, sizeof(struct rule)));
    memcpy(RAW(tag), &rule, sizeof(struct rule));
    SEXP used = PROTECT(Rf_cons(rule.values, rule.frames));
    SEXP pointer = PROTECT(profile_pointer(tag, used, drop_rule));
    R_SetExternalPtrAddr(pointer, RAW(tag));
    SEXP x = R_new_altrep(class, pointer, R_NilValue);
    UNPROTECT(3);
    return x;
}

static R_altrep_class_t class_of(SEXP values) {
    int type = TYPEOF(values);
    return type == INTSXP ? picked_integer : type == REALSXP ? picked_double : picked_text;
}

// A column of integers 1, 2, 3, …, each repeated in `each` rows. May jump.
SEXP profile_counted(R_xlen_t rows, R_xlen_t each) {
    struct rule rule = {.rows = rows, .values = R_NilValue, .by = BY_COUNT, .each = each,
                        .frames = R_NilValue};
    return new_vector(rule, picked_integer);
}

// A column that repeats these values in a cycle. There is at least one value. The vector of values is protected and not
// used elsewhere. May jump.
SEXP profile_cycled(R_xlen_t rows, SEXP values) {
    struct rule rule = {.rows = rows, .values = values, .by = BY_ROW, .frames = R_NilValue};
    return new_vector(rule, class_of(values));
}

// A column with a row for each frame, which contains the value of its location or sample. `column` is one of the
// columns of these frames. May jump.
SEXP profile_of_frames(SEXP column, int of_location, SEXP values) {
    struct rule rule = {.rows = XLENGTH(column), .values = values,
                        .by = of_location ? BY_LOCATION : BY_SAMPLE,
                        .frames = R_altrep_data1(column)};
    return new_vector(rule, class_of(values));
}

// ---- Recognising them, for Rust -----------------------------------------------------

int profile_is_picked_text(SEXP x) { return R_altrep_inherits(x, picked_text); }

// The number of rows in which a column repeats each of 1, 2, 3, …; 0 for any other column, and if the values are in
// memory.
R_xlen_t profile_rows_of_each(SEXP x) {
    int is_known = R_altrep_inherits(x, picked_integer) && is_computed(x);
    return is_known && rule_of(x)->by == BY_COUNT ? rule_of(x)->each : 0;
}

// The texts that a column repeats in a cycle; NULL for any other column, and if the values are in memory.
SEXP profile_texts_of(SEXP x) {
    int is_known = profile_is_picked_text(x) && is_computed(x);
    return is_known && rule_of(x)->by == BY_ROW ? rule_of(x)->values : NULL;
}

// ---- Classes ------------------------------------------------------------------------

static void picked_methods(R_altrep_class_t c) {
    R_set_altrep_Length_method(c, picked_length);
    R_set_altrep_Inspect_method(c, picked_inspect);
    R_set_altrep_Duplicate_method(c, picked_copy);
    R_set_altvec_Dataptr_method(c, picked_data);
    R_set_altvec_Dataptr_or_null_method(c, picked_data_or_null);
    R_set_altvec_Extract_subset_method(c, picked_subset);
}

void profile_make_picked_classes(DllInfo *dll) {
    picked_integer = R_make_altinteger_class("picked_integer", "profile", dll);
    picked_methods(picked_integer);
    R_set_altinteger_Elt_method(picked_integer, integer_element);
    R_set_altinteger_Get_region_method(picked_integer, integer_region);
    R_set_altinteger_Is_sorted_method(picked_integer, picked_sorted);
    R_set_altinteger_No_NA_method(picked_integer, picked_no_na);
    picked_double = R_make_altreal_class("picked_double", "profile", dll);
    picked_methods(picked_double);
    R_set_altreal_Elt_method(picked_double, double_element);
    R_set_altreal_Get_region_method(picked_double, double_region);
    R_set_altreal_Is_sorted_method(picked_double, picked_sorted);
    R_set_altreal_No_NA_method(picked_double, picked_no_na);
    picked_text = R_make_altstring_class("picked_text", "profile", dll);
    picked_methods(picked_text);
    R_set_altstring_Elt_method(picked_text, text_element);
    R_set_altstring_Set_elt_method(picked_text, text_set);
    R_set_altstring_Is_sorted_method(picked_text, picked_sorted);
    R_set_altstring_No_NA_method(picked_text, picked_no_na);
}
