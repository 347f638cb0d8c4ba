#ifndef PROFILE_SPAN_H
#define PROFILE_SPAN_H

#include <Rinternals.h>

void profile_publish_span(void);
void profile_end_spans(void);

SEXP profile_push_span(SEXP arguments);
SEXP profile_pop_span(SEXP arguments);
SEXP profile_span_name(SEXP arguments);
SEXP profile_active_span(SEXP arguments);
SEXP profile_log_spans(SEXP arguments);
SEXP profile_logged_spans(SEXP arguments);
#ifndef _WIN32
SEXP profile_flush_streams(void);
#endif

#endif
