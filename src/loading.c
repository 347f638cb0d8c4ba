// Creates the classes of computed columns when the library is loaded, and keeps columns that are in use readable when
// the library is unloaded.

// For dladdr().
#define _GNU_SOURCE
#include "loading.h"
#include "counter.h"
#include "frames.h"
#include "picked.h"
#include "span.h"
#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

static DllInfo *library;

static void make_classes(void) {
    profile_make_frame_classes(library);
    profile_make_picked_classes(library);
    profile_make_counter_class(library);
}

void profile_load_columns(DllInfo *dll) {
    library = dll;
    make_classes();
}

// When R unloads a library, it removes the methods of its classes, so columns that users still have could not be read.
// Therefore the classes are created again: R removes the methods of the new classes, and the old classes keep theirs,
// whose code stays in memory.
SEXP profile_unload(SEXP arguments) {
    (void) arguments;
    profile_end_spans();
    // Frees columns that are no longer used: frames are freed by the second garbage collection.
    R_gc();
    R_gc();
    if (profile_has_columns())
        make_classes();
    return R_NilValue;
}

void profile_keep_code(int threads_run) {
    if (!profile_has_columns() && !threads_run)
        return;
    // A second reference to the library, which is never released.
#ifdef _WIN32
    HMODULE module;
    GetModuleHandleExA(
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
        (LPCSTR) &profile_keep_code, &module);
#else
    Dl_info info;
    if (dladdr((void *) &profile_keep_code, &info) != 0)
        dlopen(info.dli_fname, RTLD_NOW);
#endif
}
