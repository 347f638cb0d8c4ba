#ifndef PROFILE_ALTREP_H
#define PROFILE_ALTREP_H

#define R_NO_REMAP
#include <Rinternals.h>
#include <R_ext/Altrep.h>
#include <R_ext/Rdynload.h>

// ---- For entrypoint.c ---------------------------------------------------------------

// At load: makes the classes.
void profile_altrep_init(DllInfo *dll);

// For .External(), before the library is unloaded: columns that are in use stay readable.
SEXP profile_unload(SEXP arguments);

// When the library is unloaded: keeps its code in memory while columns are in use, or if threads run.
void profile_altrep_unload(int threads_run);

// ---- For frame_columns.c and picked.c, which have the classes -----------------------

void profile_make_frame_classes(DllInfo *dll);
void profile_make_picked_classes(DllInfo *dll);

// An external pointer with two objects, the first datum of vectors. `drop` is its finalizer, which
// calls profile_dropped(). May jump.
SEXP profile_pointer(SEXP tag, SEXP other, R_CFinalizer_t drop);
void profile_dropped(void);

// The vector whose data were asked for last. serialize() asks for the data again for each
// element, and hash tables ask for elements one by one; the answer must be fast. Only
// these files make such vectors, so a new one at the address of an old one is noticed in
// profile_pointer().
struct last {
    SEXP x;
    void *data; // all elements in memory, or NULL
    int lent;   // to R, not only read from here
    SEXP only;  // the text of all elements, or NULL
};
extern struct last profile_last;

// Whether a vector has picked texts. Those texts stay reachable as long as the vector.
int profile_is_picked_text(SEXP x);

#endif
