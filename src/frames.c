// The frames of samples, computed from their stacks.
//
// One object of Rust's (rust/src/altrep.rs) has what they are computed from. The columns of
// `sample_locations` share it (frame_columns.c), and so do columns that have a value for each
// location or sample (picked.c).

#include "frames.h"
#include <stdlib.h>

// Rust's: the locations of a packed stack, until the next call.
const uint32_t *profile_unpack(struct frames *frames, uint32_t stack);

// Rust's: frees it.
void profile_drop_frames(struct frames *frames);

// ---- Values --------------------------------------------------------------------------
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
    return row < f->sample_ends[sample] && row >= profile_start_of(f, sample);
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

int profile_frame_value(struct frames *f, int which, R_xlen_t row) {
    const struct column *column = &f->columns[which];
    // What R has a pointer to may have been changed.
    if (column->data != NULL && !column->exposed)
        return column->data[row];
    R_xlen_t sample = sample_of(f, row);
    switch (which) {
    case SAMPLE:
        return (int) sample + 1;
    case DEPTH:
        return (int) (row - profile_start_of(f, sample)) + 1;
    default:
        return (int) stack_of(f, sample)[row - profile_start_of(f, sample)] + 1;
    }
}

void profile_frame_values(struct frames *f, int which, R_xlen_t row, R_xlen_t n, int *out) {
    if (n == 0)
        return;
    R_xlen_t sample = sample_of(f, row), skipped = row - profile_start_of(f, sample);
    for (const int *end = out + n;; ++sample, skipped = 0) {
        R_xlen_t count = f->sample_ends[sample] - profile_start_of(f, sample) - skipped;
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

// Memory that R does not count.
static double native_bytes;

void profile_add_bytes(double bytes) { native_bytes += bytes; }

// The elements for reading. R may not collect garbage meanwhile, so they are not R's;
// without memory they are computed as before.
static void cache_values(struct frames *f, int which) {
    struct column *column = &f->columns[which];
    column->reads = f->searches = 0;
    int *data = malloc((size_t) f->rows * sizeof(int));
    if (data == NULL)
        return;
    profile_frame_values(f, which, 0, f->rows, data);
    column->data = data;
    column->cached = 1;
    f->bytes += (double) f->rows * sizeof(int);
    native_bytes += (double) f->rows * sizeof(int);
}

int profile_frame_element(struct frames *f, int which, R_xlen_t row) {
    struct column *column = &f->columns[which];
    if (column->data == NULL) {
        ++column->reads;
        if (is_read_through(f, column))
            cache_values(f, which);
    }
    return profile_frame_value(f, which, row);
}

void profile_cache_searched(struct frames *f, int which) {
    if (f->columns[which].data == NULL && is_searched(f))
        cache_values(f, which);
}

// ---- Memory --------------------------------------------------------------------------

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
    native_bytes -= f->bytes;
    for (int which = 0; which < COLUMNS; ++which)
        if (f->columns[which].cached)
            free(f->columns[which].data);
    profile_drop_frames(f);
}

// R collects garbage when its own memory grows, and would keep profiles that nobody uses. So it
// is asked to when this memory has doubled, as it does itself.
static void collect(double bytes) {
    static const double least = 256e6;
    static double level = 256e6;
    if (native_bytes + bytes <= level)
        return;
    R_gc();
    if (released > 0)
        R_gc();
    level = 2 * (native_bytes + bytes) > least ? 2 * (native_bytes + bytes) : least;
}

// Columns have one external pointer, which protects the one that has the frames.
struct frames *profile_frames_or_null(SEXP pointer) {
    return R_ExternalPtrAddr(R_ExternalPtrProtected(pointer));
}

struct frames *profile_frames_at(SEXP pointer) {
    struct frames *f = profile_frames_or_null(pointer);
    if (f == NULL)
        Rf_error("The memory of this column was freed.");
    return f;
}

SEXP profile_frames_pointer(void) {
    SEXP owner = PROTECT(profile_pointer(R_NilValue, R_NilValue, drop_frames));
    SEXP pointer = profile_pointer(R_NilValue, owner, release_frames);
    UNPROTECT(1);
    return pointer;
}

void profile_own_frames(SEXP pointer, struct frames *f) {
    SEXP owner = R_ExternalPtrProtected(pointer);
    collect(f->bytes);
    R_PreserveObject(owner);
    R_SetExternalPtrAddr(owner, f);
    native_bytes += f->bytes;
}
