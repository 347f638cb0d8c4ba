#ifndef PROFILE_LOADING_H
#define PROFILE_LOADING_H

#define R_NO_REMAP
#include <Rinternals.h>
#include <R_ext/Rdynload.h>

// Called when the library is loaded: creates the classes.
void profile_load_columns(DllInfo *dll);

// Called by R's .External() before the library is unloaded, so that columns that are in use stay readable.
SEXP profile_unload(SEXP arguments);

// Called when the library is unloaded: keeps its code in memory while columns are in use, or if threads run.
void profile_keep_code(int threads_run);

#endif
