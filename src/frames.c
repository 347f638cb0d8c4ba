// The frames of samples, computed from their stacks.
//
// They are computed from one Rust object (rust/src/altrep.rs), which the columns of
// `sample_locations` (frame_columns.c) and the columns with a value for each location or sample
// (picked.c) share.

#include "frames.h"
#include <stdlib.h>

// Implemented in Rust. Returns the locations of a packed stack, which are valid until the next
// call.
const uint32_t *profile_unpack(struct frames *frames, uint32_t stack);

// Implemented in Rust. Frees the object.
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

// Finds the sample of a row. The sample of the previous lookup and the one after it are tried
// first, since rows are usually read in order.
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
    // R may have changed values to which it has a pointer.
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

// The same as profile_are_many_reads() for elements that are not near the previous one. Finding the sample of such an
// element takes a search, so values are in memory after a smaller share of the rows.
static int is_searched(const struct frames *f) {
    return f->searches > 65536 && f->searches > f->rows / 64;
}

// The memory in bytes that columns have outside of R's heap.
static double native_bytes;

void profile_add_bytes(double bytes) { native_bytes += bytes; }

// Computes and stores all values of a column. They are not in R's memory, since R must not collect
// garbage while it reads elements. If there is no memory, elements are still computed one by one.
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
        if (profile_are_many_reads(column->reads, f->rows))
            cache_values(f, which);
    }
    return profile_frame_value(f, which, row);
}

void profile_cache_searched(struct frames *f, int which) {
    if (f->columns[which].data == NULL && is_searched(f))
        cache_values(f, which);
}

// ---- Memory --------------------------------------------------------------------------

// The number of frames that the next garbage collection frees unless their columns are still in
// use.
static R_xlen_t released;

// R finalizes unreachable objects in any order, and finalizers of other objects may still use a
// column, or make it reachable again. Therefore frames are freed in two steps: when the columns'
// pointer is finalized, the pointer that owns the frames is no longer preserved; when a later
// garbage collection finds that one unreachable as well, the frames are freed.
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
    // Creating the columns failed, so there are no frames.
    if (f == NULL)
        return;
    --released;
    native_bytes -= f->bytes;
    for (int which = 0; which < COLUMNS; ++which)
        if (f->columns[which].cached)
            free(f->columns[which].data);
    profile_drop_frames(f);
}

// R collects garbage when its own heap grows, and does not know about the memory of frames.
// Therefore a garbage collection is run when that memory has doubled since the last one; R uses the
// same rule for its heap. Below 256 MB none is run.
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

// Columns have one external pointer, which protects the pointer that owns the frames.
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
