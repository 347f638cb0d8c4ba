// Registration of what R may call. The entry points are Rust functions, which extendr
// registers (rust/src/lib.rs) and R/extendr-wrappers.R calls. Two more are in C: one for
// loading, one that continues a jump (guard.c).

#include "guard.h"
#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>
#include <stdlib.h>

// Made by extendr_module!.
void R_init_profile_extendr(DllInfo *dll);

void profile_rust_load(void);
void profile_rust_unload(void);

// extendr keeps a table of protected objects, which it creates at the first use, in Rust
// and under a lock. Where memory is short, that would end the process, or leave the lock
// held for ever. So it is created at load, after a check that there is memory.
static SEXP profile_load(SEXP arguments) {
    (void) arguments;
    void *memory = malloc((size_t) 8 << 20);
    if (memory == NULL)
        Rf_error("There is not enough memory to load the package.");
    free(memory);
    profile_rust_load();
    return R_NilValue;
}

static const R_ExternalMethodDef externals[] = {
    {"profile_load", (DL_FUNC) &profile_load, 0},
    {"profile_resume", (DL_FUNC) &profile_resume, 0},
    {NULL, NULL, 0},
};

attribute_visible void R_init_profile(DllInfo *dll) {
    R_init_profile_extendr(dll);
    // This leaves the functions that extendr registered for .Call() as they are.
    R_registerRoutines(dll, NULL, NULL, NULL, externals);
    R_useDynamicSymbols(dll, FALSE);
    R_forceSymbols(dll, TRUE);
    profile_guard_init();
}

attribute_visible void R_unload_profile(DllInfo *dll) {
    (void) dll;
    profile_rust_unload();
}
