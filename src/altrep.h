// What the classes of computed columns share. Words that all of them use:
//
// - a column is *computed* until R requests a pointer to all of its values;
// - its values are *exposed* if R has such a pointer, and may have changed them;
// - its values are *cached* if they were computed into memory that is allocated here, because many elements were read
//   one by one;

#ifndef PROFILE_ALTREP_H
#define PROFILE_ALTREP_H

#define R_NO_REMAP
#include <Rinternals.h>
#include <R_ext/Altrep.h>
#include <R_ext/Rdynload.h>

// Creates the first datum of a vector: an external pointer with a tag and a protected object. `drop` is its finalizer,
// which must call profile_dropped(). May jump.
SEXP profile_pointer(SEXP tag, SEXP other, R_CFinalizer_t drop);
void profile_dropped(void);

// Whether R has not collected all of these pointers.
int profile_has_columns(void);

// Whether so many elements were read one by one that all should be computed at once and kept in memory. Code that reads a
// sixteenth of a column this way is likely to read all of it, and some elements repeatedly, as hash tables do. Short
// columns, and reads of a few thousand elements as for printing, are not worth the memory.
static inline int profile_are_many_reads(R_xlen_t reads, R_xlen_t rows) {
    return reads > 4096 && reads > rows / 16;
}

// A cache of the data of the vector that R read last (`profile_last`). serialize() requests the data again for each
// element, and hash tables request elements one by one, so this has to be fast. A new vector may have the address of an
// old one; profile_pointer(), which is called for each new vector, therefore clears the cache.
struct last {
    SEXP x;
    void *data;  // all values in memory, or NULL
    int exposed; // to R
    SEXP only;   // the text of all elements, or NULL
};
extern struct last profile_last;

#endif
