// The frames of samples, which frames.c computes, for the files that define columns of frames.

#ifndef PROFILE_FRAMES_H
#define PROFILE_FRAMES_H

#include "altrep.h"
#include <stdint.h>

// The columns, and how many there are.
enum { SAMPLE, DEPTH, LOCATION, COLUMNS };

// The state of a column of frames, of which there is one R vector.
struct column {
    int *data;      // all values, or NULL while they are computed
    int cached;     // see altrep.h
    int exposed;    // see altrep.h
    R_xlen_t reads; // elements that were computed one by one
};

// The first fields of the Rust struct `Shared` (rust/src/altrep.rs). Rust writes the first part.
struct frames {
    uint32_t packed;             // the number of stacks that only Rust can read; they come first
    const uint32_t *locations;   // of the other stacks, end to end, rows counted from 0
    const size_t *stack_ends;    // where each stack ends in them
    const uint32_t *stack_of;    // the stack of each sample
    const uint32_t *sample_ends; // the row behind the last frame of each sample
    R_xlen_t samples;
    R_xlen_t rows;
    double bytes; // of memory
    // C writes this part.
    const uint32_t *unpacked; // the locations of the packed stack that was read last, or NULL
    uint32_t unpacked_stack;
    R_xlen_t hint;     // the sample of the element that was read last
    R_xlen_t searches; // elements that were not near the one before
    struct column columns[COLUMNS];
};

// In frame_columns.c.
void profile_make_frame_classes(DllInfo *dll);

// The frames that a pointer of profile_frames_pointer() refers to, or NULL if they were freed.
struct frames *profile_frames_or_null(SEXP pointer);

// The same, but an error if they were freed.
struct frames *profile_frames_at(SEXP pointer);

// Where the frames of a sample start.
static inline R_xlen_t profile_start_of(const struct frames *f, R_xlen_t sample) {
    return sample == 0 ? 0 : f->sample_ends[sample - 1];
}

// The value of a row, and the values of n existing rows.
int profile_frame_value(struct frames *f, int which, R_xlen_t row);
void profile_frame_values(struct frames *f, int which, R_xlen_t row, R_xlen_t n, int *out);

// The value of a row, for callers that read single rows: after many of them all values are cached.
int profile_frame_element(struct frames *f, int which, R_xlen_t row);

// Caches all values after many searches.
void profile_cache_searched(struct frames *f, int which);

// Adds to the memory that R does not count, or subtracts from it.
void profile_add_bytes(double bytes);

// Creates a pointer for columns of frames, which does not own frames yet. May jump.
SEXP profile_frames_pointer(void);

// Gives the pointer its frames, which it then owns. May jump; in that case the caller still owns
// them.
void profile_own_frames(SEXP pointer, struct frames *f);

#endif
