#ifndef PROFILE_COUNTER_H
#define PROFILE_COUNTER_H

#include "altrep.h"

void profile_make_counter_class(DllInfo *dll);

// `profile_counter()` returns a new counter, `profile_count(counter)` what it has counted.
SEXP profile_counter(SEXP arguments);
SEXP profile_count(SEXP arguments);

#endif
