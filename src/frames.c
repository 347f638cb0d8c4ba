// The columns of `sample_locations`: the frames of samples, computed from their stacks.
//
// The three columns share one object of Rust's (rust/src/altrep.rs). altrep.c says what holds
// for all computed columns.

#include "altrep.h"
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// The columns, and how many there are.
enum { SAMPLE, DEPTH, LOCATION, COLUMNS };

// A column of frames: there is one vector of R for each.
struct column {
    int *data;    // all values, or NULL while they are computed
    int borrowed; // `data` was allocated here, to read elements from
    int lent;     // R has a pointer to `data`, so they may have been changed
    R_xlen_t reads; // elements that were computed one by one
};

// Rust's struct of that name, with these fields first. The first part is Rust's.
struct frames {
    uint32_t packed;             // the number of stacks that only Rust can read; they come first
    const uint32_t *locations;   // of the other stacks, end to end, rows counted from 0
    const size_t *stack_ends;    // where each stack ends in them
    const uint32_t *stack_of;    // the stack of each sample
    const uint32_t *sample_ends; // the row behind the last frame of each sample
    R_xlen_t samples;
    R_xlen_t rows;
    double bytes; // of memory
    // This part is written here.
    const uint32_t *unpacked; // the locations of the packed stack that was read last, or NULL
    uint32_t unpacked_stack;
    R_xlen_t hint;     // the sample of the element that was read last
    R_xlen_t searches; // elements that were not near the one before
    struct column columns[COLUMNS];
};

// Rust's: the locations of a packed stack, until the next call.
const uint32_t *profile_unpack(struct frames *frames, uint32_t stack);

// Rust's: frees it.
void profile_drop_frames(struct frames *frames);

static R_altrep_class_t classes[COLUMNS];

// ---- Values --------------------------------------------------------------------------
// Each vector has an external pointer as its first datum, which protects the one that has the
// frames; see release_frames(). The second datum is a vector of all values once R has asked for that.
static inline struct frames *frames_or_null(SEXP x) {
    return R_ExternalPtrAddr(R_ExternalPtrProtected(R_altrep_data1(x)));
}

static inline struct frames *frames_of(SEXP x) {
    struct frames *f = frames_or_null(x);
    if (f == NULL)
        Rf_error("The memory of this column was freed.");
    return f;
}

static inline R_xlen_t start_of(const struct frames *f, R_xlen_t sample) {
    return sample == 0 ? 0 : f->sample_ends[sample - 1];
}

static inline const uint32_t *stack_of(struct frames *f, R_xlen_t sample) {
    uint32_t stack = f->stack_of[sample];
    if (stack >= f->packed) {
        stack -= f->packed;
        return f->locations + (stack == 0 ? 0 : f->stack_ends[stack - 1]);
    }
    if (f->unpacked == NULL || f->unpacked_stack != stack) {
        f->unpacked = profile_unpack(f, stack);
        f->unpacked_stack = stack;
    }
    return f->unpacked;
}

static inline int has_row(const struct frames *f, R_xlen_t sample, R_xlen_t row) {
    return row < f->sample_ends[sample] && row >= start_of(f, sample);
}

// The sample of a row: most often that of the row before it, or the next one.
static R_xlen_t sample_of(struct frames *f, R_xlen_t row) {
    if (has_row(f, f->hint, row))
        return f->hint;
    if (f->hint + 1 < f->samples && has_row(f, f->hint + 1, row))
        return ++f->hint;
    R_xlen_t low = 0, high = f->samples - 1;
    while (low < high) {
        R_xlen_t middle = low + (high - low) / 2;
        if (row < f->sample_ends[middle])
            high = middle;
        else
            low = middle + 1;
    }
    ++f->searches;
    return f->hint = low;
}

static inline int value_at(struct frames *f, int which, R_xlen_t row) {
    R_xlen_t sample = sample_of(f, row);
    switch (which) {
    case SAMPLE:
        return (int) sample + 1;
    case DEPTH:
        return (int) (row - start_of(f, sample)) + 1;
    default:
        return (int) stack_of(f, sample)[row - start_of(f, sample)] + 1;
    }
}

// The values of n rows, all of which there are.
static void compute(struct frames *f, int which, R_xlen_t row, R_xlen_t n, int *out) {
    if (n == 0)
        return;
    R_xlen_t sample = sample_of(f, row), skipped = row - start_of(f, sample);
    for (const int *end = out + n;; ++sample, skipped = 0) {
        R_xlen_t count = f->sample_ends[sample] - start_of(f, sample) - skipped;
        if (count > end - out)
            count = end - out;
        if (which == SAMPLE) {
            for (R_xlen_t i = 0; i < count; ++i)
                out[i] = (int) sample + 1;
        } else if (which == DEPTH) {
            for (R_xlen_t i = 0; i < count; ++i)
                out[i] = (int) (skipped + i) + 1;
        } else {
            const uint32_t *from = stack_of(f, sample) + skipped;
            for (R_xlen_t i = 0; i < count; ++i)
                out[i] = (int) from[i] + 1;
        }
        out += count;
        if (out == end)
            break;
    }
    f->hint = sample;
}

// Whoever reads that many elements one by one is about to read all, some of them again and
// again, as hash tables do; and to search for elements at random takes long. Then memory is
// faster.
static int is_read_through(const struct frames *f, const struct column *column) {
    return column->reads > 4096 && column->reads > f->rows / 16;
}

static int is_searched(const struct frames *f) {
    return f->searches > 65536 && f->searches > f->rows / 64;
}

// Memory that R does not know of.
static double held;

// The elements for reading. R may not collect garbage meanwhile, so they are not R's;
// without memory they are computed as before.
static void borrow(struct frames *f, int which) {
    struct column *column = &f->columns[which];
    column->reads = f->searches = 0;
    int *data = malloc((size_t) f->rows * sizeof(int));
    if (data == NULL)
        return;
    compute(f, which, 0, f->rows, data);
    column->data = data;
    column->borrowed = 1;
    f->bytes += (double) f->rows * sizeof(int);
    held += (double) f->rows * sizeof(int);
}

static inline int frame_element(SEXP x, int which, R_xlen_t i) {
    if (x == profile_last.x)
        return ((const int *) profile_last.data)[i];
    struct frames *f = frames_of(x);
    struct column *column = &f->columns[which];
    if (column->data == NULL) {
        ++column->reads;
        if (!is_read_through(f, column))
            return value_at(f, which, i);
        borrow(f, which);
        if (column->data == NULL)
            return value_at(f, which, i);
    }
    profile_last.x = x;
    profile_last.data = column->data;
    profile_last.lent = column->lent;
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
        compute(f, which, i, n, out);
    return n;
}

static void *frame_data(SEXP x, int which) {
    if (x == profile_last.x && profile_last.lent)
        return profile_last.data;
    struct frames *f = frames_of(x);
    struct column *column = &f->columns[which];
    if (column->data == NULL) {
        SEXP all = PROTECT(Rf_allocVector(INTSXP, f->rows));
        compute(f, which, 0, f->rows, INTEGER(all));
        R_set_altrep_data2(x, all);
        column->data = INTEGER(all);
        UNPROTECT(1);
    }
    column->lent = profile_last.lent = 1;
    profile_last.x = x;
    return profile_last.data = column->data;
}

// An ordinary vector: what R is about to change, while this one stays as it is.
static SEXP frame_copy(SEXP x, int which) {
    struct frames *f = frames_of(x);
    SEXP copy = PROTECT(Rf_allocVector(INTSXP, f->rows));
    frame_region(x, which, 0, f->rows, INTEGER(copy));
    UNPROTECT(1);
    return copy;
}

// x[index]; NULL leaves it to R.
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
        if (column->data == NULL && is_searched(f))
            borrow(f, which);
        for (R_xlen_t i = 0; i < got; ++i) {
            // False for NA as well.
            int there = doubles[i] >= 1 && doubles[i] < (double) f->rows + 1;
            R_xlen_t row = there ? (R_xlen_t) doubles[i] - 1 : 0;
            to[i] = !there ? NA_INTEGER : column->data ? column->data[row] : value_at(f, which, row);
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

// Once R has the pointer, the values may be others.
static int is_as_made(SEXP x, int which) { return !frames_of(x)->columns[which].lent; }

static int sample_sorted(SEXP x) {
    return is_as_made(x, SAMPLE) ? SORTED_INCR : UNKNOWN_SORTEDNESS;
}

// Sums that integers do not hold are left to R, which warns.
static SEXP sum_of(double sum) { return sum > INT_MAX ? NULL : Rf_ScalarInteger((int) sum); }

// The sum of 1, 2, …, n.
static double sum_to(double n) { return n * (n + 1) / 2; }

static SEXP sample_sum(SEXP x, Rboolean narm) {
    (void) narm;
    if (!is_as_made(x, SAMPLE))
        return NULL;
    const struct frames *f = frames_of(x);
    double sum = 0;
    for (R_xlen_t s = 0; s < f->samples; ++s)
        sum += (double) (f->sample_ends[s] - start_of(f, s)) * (double) (s + 1);
    return sum_of(sum);
}

static SEXP depth_sum(SEXP x, Rboolean narm) {
    (void) narm;
    if (!is_as_made(x, DEPTH))
        return NULL;
    const struct frames *f = frames_of(x);
    double sum = 0;
    for (R_xlen_t s = 0; s < f->samples; ++s)
        sum += sum_to((double) (f->sample_ends[s] - start_of(f, s)));
    return sum_of(sum);
}

static SEXP sample_min(SEXP x, Rboolean narm) {
    (void) narm;
    struct frames *f = frames_of(x);
    return is_as_made(x, SAMPLE) && f->rows > 0 ? Rf_ScalarInteger(value_at(f, SAMPLE, 0)) : NULL;
}

static SEXP sample_max(SEXP x, Rboolean narm) {
    (void) narm;
    struct frames *f = frames_of(x);
    if (!is_as_made(x, SAMPLE) || f->rows == 0)
        return NULL;
    return Rf_ScalarInteger(value_at(f, SAMPLE, f->rows - 1));
}

static SEXP depth_min(SEXP x, Rboolean narm) {
    (void) narm;
    return is_as_made(x, DEPTH) && frame_length(x) > 0 ? Rf_ScalarInteger(1) : NULL;
}

static SEXP depth_max(SEXP x, Rboolean narm) {
    (void) narm;
    const struct frames *f = frames_of(x);
    if (!is_as_made(x, DEPTH) || f->rows == 0)
        return NULL;
    R_xlen_t max = 0;
    for (R_xlen_t s = 0; s < f->samples; ++s) {
        R_xlen_t depth = f->sample_ends[s] - start_of(f, s);
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
        return is_as_made(x, which) ? NULL : frame_data(x, which);               \
    }                                                                            \
    static SEXP name##_copy(SEXP x, Rboolean deep) {                             \
        (void) deep;                                                             \
        return frame_copy(x, which);                                             \
    }                                                                            \
    static SEXP name##_subset(SEXP x, SEXP index, SEXP call) {                   \
        (void) call;                                                             \
        return frame_subset(x, which, index);                                    \
    }                                                                            \
    static int name##_no_na(SEXP x) { return is_as_made(x, which); }             \
    static Rboolean name##_inspect(SEXP x, int pre, int deep, int pvec,          \
                                   void (*inspect)(SEXP, int, int, int)) {       \
        (void) pre; (void) deep; (void) pvec; (void) inspect;                    \
        return inspect_column(&frames_of(x)->columns[which]);                    \
    }

FRAME_METHODS(sample, SAMPLE)
FRAME_METHODS(depth, DEPTH)
FRAME_METHODS(location, LOCATION)

// ---- Making them, for Rust ----------------------------------------------------------

// Frames that the next garbage collection frees, if nobody has kept their columns.
static R_xlen_t released;

// R finalizes all that became unreachable in any order, and finalizers of other objects may still
// use a column, or keep it. So when the pointer of the columns is finalized, the one that has the
// frames is no longer preserved, and nothing is freed: that happens when a later garbage collection
// finds this one unreachable too.
static void release_frames(SEXP pointer) {
    SEXP owner = R_ExternalPtrProtected(pointer);
    R_ReleaseObject(owner);
    if (R_ExternalPtrAddr(owner) != NULL)
        ++released;
    profile_dropped();
}

static void drop_frames(SEXP pointer) {
    struct frames *f = R_ExternalPtrAddr(pointer);
    R_ClearExternalPtr(pointer);
    profile_last.x = NULL;
    profile_dropped();
    // It was not made to the end.
    if (f == NULL)
        return;
    --released;
    held -= f->bytes;
    for (int which = 0; which < COLUMNS; ++which)
        if (f->columns[which].borrowed)
            free(f->columns[which].data);
    profile_drop_frames(f);
}

// R collects garbage when its own memory grows, and would keep profiles that nobody uses. So it
// is asked to when what is held here has doubled, as it does itself.
static void collect(double bytes) {
    static const double least = 256e6;
    static double level = 256e6;
    if (held + bytes <= level)
        return;
    R_gc();
    if (released > 0)
        R_gc();
    level = 2 * (held + bytes) > least ? 2 * (held + bytes) : least;
}

// A list of the three columns, which own the frames from then on. May jump; then they do not.
SEXP profile_frame_columns(struct frames *f) {
    collect(f->bytes);
    SEXP columns = PROTECT(Rf_allocVector(VECSXP, COLUMNS));
    SEXP owner = PROTECT(profile_pointer(R_NilValue, R_NilValue, drop_frames));
    SEXP pointer = PROTECT(profile_pointer(R_NilValue, owner, release_frames));
    for (int which = 0; which < COLUMNS; ++which)
        SET_VECTOR_ELT(columns, which, R_new_altrep(classes[which], pointer, R_NilValue));
    R_PreserveObject(owner);
    R_SetExternalPtrAddr(owner, f);
    held += f->bytes;
    UNPROTECT(3);
    return columns;
}

// ---- Recognising them, for Rust -----------------------------------------------------

static int is_unchanged(struct frames *f, int which) {
    const struct column *column = &f->columns[which];
    if (!column->lent)
        return 1;
    int was[4096];
    for (R_xlen_t row = 0; row < f->rows; row += 4096) {
        R_xlen_t n = f->rows - row < 4096 ? f->rows - row : 4096;
        compute(f, which, row, n, was);
        if (memcmp(was, column->data + row, (size_t) n * sizeof(int)) != 0)
            return 0;
    }
    return 1;
}

// The frames that three columns were made of, or NULL if they were changed since.
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
