// The frames of samples: what frames.c computes, for the files with columns of it.

#ifndef PROFILE_FRAMES_H
#define PROFILE_FRAMES_H

#include "altrep.h"
#include <stdint.h>

// The columns, and how many there are.
enum { SAMPLE, DEPTH, LOCATION, COLUMNS };

// A column of frames: there is one vector of R for each.
struct column {
    int *data;      // all values, or NULL while they are computed
    int cached;     // see altrep.h
    int exposed;    // see altrep.h
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

// In frame_columns.c.
void profile_make_frame_classes(DllInfo *dll);

// The frames that a pointer of profile_frames_pointer() refers to, or NULL if they were freed.
struct frames *profile_frames_or_null(SEXP pointer);

// The same; an error if they were freed.
struct frames *profile_frames_at(SEXP pointer);

// Where the frames of a sample start.
static inline R_xlen_t profile_start_of(const struct frames *f, R_xlen_t sample) {
    return sample == 0 ? 0 : f->sample_ends[sample - 1];
}

// The original value of a row, and of n existing rows.
int profile_frame_value(struct frames *f, int which, R_xlen_t row);
void profile_frame_values(struct frames *f, int which, R_xlen_t row, R_xlen_t n, int *out);

// The value of a row, for callers that read single rows: after many of them all values are cached.
int profile_frame_element(struct frames *f, int which, R_xlen_t row);

// Caches all values after many searches.
void profile_cache_searched(struct frames *f, int which);

// Adds to the memory that R does not count, or subtracts from it.
void profile_add_bytes(double bytes);

// A pointer for columns of frames, which has none yet. May jump.
SEXP profile_frames_pointer(void);

// Gives it frames, which it owns from then on. May jump; then it does not.
void profile_own_frames(SEXP pointer, struct frames *f);

#endif
