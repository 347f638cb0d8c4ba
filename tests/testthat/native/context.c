// What other profilers see of the active span: test-span-ids.R loads this library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <Rinternals.h>

// The record to which the thread-local variable of OTEP 4947 points in this thread, as raw bytes; NULL if it points to
// none. The argument is the path of the package's library.
SEXP thread_context(SEXP path) {
    void *library = dlopen(CHAR(STRING_ELT(path, 0)), RTLD_NOW | RTLD_NOLOAD);
    void **variable = library == NULL ? NULL : dlsym(library, "otel_thread_ctx_v1");
    if (variable == NULL || *variable == NULL)
        return R_NilValue;
    SEXP bytes = Rf_allocVector(RAWSXP, 28);
    memcpy(RAW(bytes), *variable, 28);
    return bytes;
}
