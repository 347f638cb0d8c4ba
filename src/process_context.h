#ifndef PROFILE_PROCESS_CONTEXT_H
#define PROFILE_PROCESS_CONTEXT_H

void profile_publish_process(void);

#endif
