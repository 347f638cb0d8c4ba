#ifndef PROFILE_PROCESS_CONTEXT_H
#define PROFILE_PROCESS_CONTEXT_H

// The keys of attributes of a record, in this order.
#define PROFILE_SPAN_NAME "span.name"
#define PROFILE_OVERFLOW "profile.overflow"

// Returns whether the keys are published.
int profile_publish_process(void);

#endif
