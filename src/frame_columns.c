// The columns of `sample_locations`: integers that frames.c computes. altrep.c describes what applies to
// all computed columns.

#include "frames.h"
#include <limits.h>
#include <string.h>

static R_altrep_class_t classes[COLUMNS];

// The first datum of a vector is the pointer to its frames. The second is NULL, or a vector of all values after R has
// requested a pointer to them.
static inline struct frames *frames_or_null(SEXP x) {
    return profile_frames_or_null(R_altrep_data1(x));
}

static inline struct frames *frames_of(SEXP x) { return profile_frames_at(R_altrep_data1(x)); }

static inline int frame_element(SEXP x, int which, R_xlen_t i) {
    if (x == profile_last.x)
        return ((const int *) profile_last.data)[i];
    struct frames *f = frames_of(x);
    struct column *column = &f->columns[which];
    if (column->data == NULL) {
        int value = profile_frame_element(f, which, i);
        if (column->data == NULL)
            return value;
    }
    profile_last = (struct last) {x, column->data, column->exposed, NULL};
    return column->data[i];
}

static R_xlen_t frame_region(SEXP x, int which, R_xlen_t i, R_xlen_t n, int *out) {
    struct frames *f = frames_of(x);
    const int *data = f->columns[which].data;
    if (n > f->rows - i)
        n = f->rows - i;
    if (data != NULL)
        memcpy(out, data + i, (size_t) n * sizeof(int));
    else
        profile_frame_values(f, which, i, n, out);
    return n;
}

static void *frame_data(SEXP x, int which) {
    if (x == profile_last.x && profile_last.exposed)
        return profile_last.data;
    struct frames *f = frames_of(x);
    struct column *column = &f->columns[which];
    if (column->data == NULL) {
        SEXP all = PROTECT(Rf_allocVector(INTSXP, f->rows));
        profile_frame_values(f, which, 0, f->rows, INTEGER(all));
        R_set_altrep_data2(x, all);
        column->data = INTEGER(all);
        UNPROTECT(1);
    }
    column->exposed = 1;
    profile_last = (struct last) {x, column->data, 1, NULL};
    return column->data;
}

// Returns an ordinary vector, which R is about to change; this column remains unchanged.
static SEXP frame_copy(SEXP x, int which) {
    struct frames *f = frames_of(x);
    SEXP copy = PROTECT(Rf_allocVector(INTSXP, f->rows));
    frame_region(x, which, 0, f->rows, INTEGER(copy));
    UNPROTECT(1);
    return copy;
}

// Computes x[index]. NULL means that R computes it.
static SEXP frame_subset(SEXP x, int which, SEXP index) {
    if (TYPEOF(index) != INTSXP && TYPEOF(index) != REALSXP)
        return NULL;
    struct frames *f = frames_of(x);
    struct column *column = &f->columns[which];
    R_xlen_t n = XLENGTH(index);
    SEXP out = PROTECT(Rf_allocVector(INTSXP, n));
    int *to = INTEGER(out);
    int integers[512];
    double doubles[512];
    for (R_xlen_t at = 0, got; at < n; at += got, to += got) {
        if (TYPEOF(index) == INTSXP) {
            got = INTEGER_GET_REGION(index, at, 512, integers);
            for (R_xlen_t i = 0; i < got; ++i)
                doubles[i] = integers[i] == NA_INTEGER ? 0 : integers[i];
        } else {
            got = REAL_GET_REGION(index, at, 512, doubles);
        }
        profile_cache_searched(f, which);
        for (R_xlen_t i = 0; i < got; ++i) {
            // False for NA as well.
            int exists = doubles[i] >= 1 && doubles[i] < (double) f->rows + 1;
            R_xlen_t row = exists ? (R_xlen_t) doubles[i] - 1 : 0;
            to[i] = !exists ? NA_INTEGER : column->data ? column->data[row] : profile_frame_value(f, which, row);
        }
    }
    UNPROTECT(1);
    return out;
}

static R_xlen_t frame_length(SEXP x) { return frames_of(x)->rows; }

static Rboolean inspect_column(const struct column *column) {
    Rprintf(" column of frames (%s)\n", column->data == NULL ? "computed" : "in memory");
    return TRUE;
}

// After R has the pointer, it may have changed the values.
static int is_original(SEXP x, int which) { return !frames_of(x)->columns[which].exposed; }

static int sample_sorted(SEXP x) {
    return is_original(x, SAMPLE) ? SORTED_INCR : UNKNOWN_SORTEDNESS;
}

// If the sum does not fit in an integer, R computes it, and warns.
static SEXP sum_of(double sum) { return sum > INT_MAX ? NULL : Rf_ScalarInteger((int) sum); }

// The sum of 1, 2, …, n.
static double sum_to(double n) { return n * (n + 1) / 2; }

static SEXP sample_sum(SEXP x, Rboolean narm) {
    (void) narm;
    if (!is_original(x, SAMPLE))
        return NULL;
    const struct frames *f = frames_of(x);
    double sum = 0;
    for (R_xlen_t s = 0; s < f->samples; ++s)
        sum += (double) (f->sample_ends[s] - profile_start_of(f, s)) * (double) (s + 1);
    return sum_of(sum);
}

static SEXP depth_sum(SEXP x, Rboolean narm) {
    (void) narm;
    if (!is_original(x, DEPTH))
        return NULL;
    const struct frames *f = frames_of(x);
    double sum = 0;
    for (R_xlen_t s = 0; s < f->samples; ++s)
        sum += sum_to((double) (f->sample_ends[s] - profile_start_of(f, s)));
    return sum_of(sum);
}

static SEXP sample_min(SEXP x, Rboolean narm) {
    (void) narm;
    struct frames *f = frames_of(x);
    return is_original(x, SAMPLE) && f->rows > 0 ? Rf_ScalarInteger(profile_frame_value(f, SAMPLE, 0)) : NULL;
}

static SEXP sample_max(SEXP x, Rboolean narm) {
    (void) narm;
    struct frames *f = frames_of(x);
    if (!is_original(x, SAMPLE) || f->rows == 0)
        return NULL;
    return Rf_ScalarInteger(profile_frame_value(f, SAMPLE, f->rows - 1));
}

static SEXP depth_min(SEXP x, Rboolean narm) {
    (void) narm;
    return is_original(x, DEPTH) && frame_length(x) > 0 ? Rf_ScalarInteger(1) : NULL;
}

static SEXP depth_max(SEXP x, Rboolean narm) {
    (void) narm;
    const struct frames *f = frames_of(x);
    if (!is_original(x, DEPTH) || f->rows == 0)
        return NULL;
    R_xlen_t max = 0;
    for (R_xlen_t s = 0; s < f->samples; ++s) {
        R_xlen_t depth = f->sample_ends[s] - profile_start_of(f, s);
        if (depth > max)
            max = depth;
    }
    return Rf_ScalarInteger((int) max);
}

#define FRAME_METHODS(name, which)                                               \
    static int name##_element(SEXP x, R_xlen_t i) {                              \
        return frame_element(x, which, i);                                       \
    }                                                                            \
    static R_xlen_t name##_region(SEXP x, R_xlen_t i, R_xlen_t n, int *out) {    \
        return frame_region(x, which, i, n, out);                                \
    }                                                                            \
    static void *name##_data(SEXP x, Rboolean writable) {                        \
        (void) writable;                                                         \
        return frame_data(x, which);                                             \
    }                                                                            \
    static const void *name##_data_or_null(SEXP x) {                             \
        return is_original(x, which) ? NULL : frame_data(x, which);               \
    }                                                                            \
    static SEXP name##_copy(SEXP x, Rboolean deep) {                             \
        (void) deep;                                                             \
        return frame_copy(x, which);                                             \
    }                                                                            \
    static SEXP name##_subset(SEXP x, SEXP index, SEXP call) {                   \
        (void) call;                                                             \
        return frame_subset(x, which, index);                                    \
    }                                                                            \
    static int name##_no_na(SEXP x) { return is_original(x, which); }             \
    static Rboolean name##_inspect(SEXP x, int pre, int deep, int pvec,          \
                                   void (*inspect)(SEXP, int, int, int)) {       \
        (void) pre; (void) deep; (void) pvec; (void) inspect;                    \
        return inspect_column(&frames_of(x)->columns[which]);                    \
    }

FRAME_METHODS(sample, SAMPLE)
FRAME_METHODS(depth, DEPTH)
FRAME_METHODS(location, LOCATION)

// ---- Making them, for Rust ----------------------------------------------------------

// Returns a list of the three columns, which then own the frames. May jump; in that case the caller still owns them.
SEXP profile_frame_columns(struct frames *f) {
    SEXP columns = PROTECT(Rf_allocVector(VECSXP, COLUMNS));
    SEXP pointer = PROTECT(profile_frames_pointer());
    for (int which = 0; which < COLUMNS; ++which)
        SET_VECTOR_ELT(columns, which, R_new_altrep(classes[which], pointer, R_NilValue));
    profile_own_frames(pointer, f);
    UNPROTECT(2);
    return columns;
}

// ---- Recognising them, for Rust -----------------------------------------------------

static int is_unchanged(struct frames *f, int which) {
    const struct column *column = &f->columns[which];
    if (!column->exposed)
        return 1;
    int was[4096];
    for (R_xlen_t row = 0; row < f->rows; row += 4096) {
        R_xlen_t n = f->rows - row < 4096 ? f->rows - row : 4096;
        profile_frame_values(f, which, row, n, was);
        if (memcmp(was, column->data + row, (size_t) n * sizeof(int)) != 0)
            return 0;
    }
    return 1;
}

// The frames from which these three columns were created, or NULL if a column was changed since then.
struct frames *profile_frames_of(SEXP sample_id, SEXP depth, SEXP location_id) {
    SEXP columns[] = {sample_id, depth, location_id};
    struct frames *f = NULL;
    for (int which = 0; which < COLUMNS; ++which) {
        SEXP x = columns[which];
        if (!ALTREP(x) || !R_altrep_inherits(x, classes[which]))
            return NULL;
        if (which > 0 && f != frames_or_null(x))
            return NULL;
        f = frames_or_null(x);
        if (f == NULL)
            return NULL;
    }
    for (int which = 0; which < COLUMNS; ++which)
        if (!is_unchanged(f, which))
            return NULL;
    return f;
}

// ---- Classes ------------------------------------------------------------------------

void profile_make_frame_classes(DllInfo *dll) {
#define FRAME_CLASS(name, which)                                                 \
    do {                                                                         \
        R_altrep_class_t c =                                                     \
            R_make_altinteger_class("frames_" #name, "profile", dll);            \
        R_set_altrep_Length_method(c, frame_length);                             \
        R_set_altrep_Inspect_method(c, name##_inspect);                          \
        R_set_altrep_Duplicate_method(c, name##_copy);                           \
        R_set_altvec_Dataptr_method(c, name##_data);                             \
        R_set_altvec_Dataptr_or_null_method(c, name##_data_or_null);             \
        R_set_altvec_Extract_subset_method(c, name##_subset);                    \
        R_set_altinteger_Elt_method(c, name##_element);                          \
        R_set_altinteger_Get_region_method(c, name##_region);                    \
        R_set_altinteger_No_NA_method(c, name##_no_na);                          \
        classes[which] = c;                                                      \
    } while (0)
    FRAME_CLASS(sample, SAMPLE);
    FRAME_CLASS(depth, DEPTH);
    FRAME_CLASS(location, LOCATION);
    R_set_altinteger_Is_sorted_method(classes[SAMPLE], sample_sorted);
    R_set_altinteger_Sum_method(classes[SAMPLE], sample_sum);
    R_set_altinteger_Min_method(classes[SAMPLE], sample_min);
    R_set_altinteger_Max_method(classes[SAMPLE], sample_max);
    R_set_altinteger_Sum_method(classes[DEPTH], depth_sum);
    R_set_altinteger_Min_method(classes[DEPTH], depth_min);
    R_set_altinteger_Max_method(classes[DEPTH], depth_max);
}
