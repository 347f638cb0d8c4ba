// What the classes of computed columns share. The words that all of them use:
//
// - a column is computed until R requests a pointer to all of its values;
// - its values are exposed if R has such a pointer, and may have changed them;
// - they are cached if they were computed to memory that is allocated here, because many elements were read one by one.

#ifndef PROFILE_ALTREP_H
#define PROFILE_ALTREP_H

#define R_NO_REMAP
#include <Rinternals.h>
#include <R_ext/Altrep.h>
#include <R_ext/Rdynload.h>

// An external pointer with two objects, the first datum of vectors. `drop` is its finalizer, which
// calls profile_dropped(). May jump.
SEXP profile_pointer(SEXP tag, SEXP other, R_CFinalizer_t drop);
void profile_dropped(void);

// Whether R has not collected all of these pointers.
int profile_has_columns(void);

// The vector whose elements or data R requested last. serialize() requests the data again for each
// element, and hash tables request elements one by one, so this has to be fast. Only
// the files of these classes make such vectors, so profile_pointer() notices a new one at the address
// of an old one.
struct last {
    SEXP x;
    void *data;  // all values in memory, or NULL
    int exposed; // to R
    SEXP only;   // the text of all elements, or NULL
};
extern struct last profile_last;

#endif
