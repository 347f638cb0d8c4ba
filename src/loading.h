#ifndef PROFILE_LOADING_H
#define PROFILE_LOADING_H

#define R_NO_REMAP
#include <Rinternals.h>
#include <R_ext/Rdynload.h>

// At load: makes the classes.
void profile_load_columns(DllInfo *dll);

// For .External(), before the library is unloaded: columns that are in use stay readable.
SEXP profile_unload(SEXP arguments);

// When the library is unloaded: keeps its code in memory while columns are in use, or if threads run.
void profile_keep_code(int threads_run);

#endif
