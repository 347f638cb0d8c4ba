#ifndef PROFILE_PICKED_H
#define PROFILE_PICKED_H

#include "altrep.h"

void profile_make_picked_classes(DllInfo *dll);

// Whether a vector is a column of picked texts, which stay reachable as long as the vector.
int profile_is_picked_text(SEXP x);

#endif
