// Preloaded: hides the function by which glibc finds modules since 2.35, so that the process sees what an older one has.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

static int times;

void *dlsym(void *handle, const char *name) {
    static void *(*real)(void *, const char *);
    if (real == NULL) {
        // The first versions of the function on each processor, and the one that moved to another library in 2.34.
        const char *versions[] = {"GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34"};
        for (int i = 0; i < 3 && real == NULL; i++)
            real = (void *(*)(void *, const char *)) dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    }
    if (strcmp(name, "_dl_find_object") != 0)
        return real(handle, name);
    times++;
    return NULL;
}

// How often it was hidden.
void times_hidden(int *count) { *count = times; }
