#ifndef PROFILE_ALTREP_H
#define PROFILE_ALTREP_H

#define R_NO_REMAP
#include <Rinternals.h>
#include <R_ext/Rdynload.h>

// At load: makes the classes.
void profile_altrep_init(DllInfo *dll);

// For .External(), before the library is unloaded: columns that are in use stay readable.
SEXP profile_unload(SEXP arguments);

// When the library is unloaded: keeps its code in memory while columns are in use.
void profile_altrep_unload(void);

#endif
