/* Integer vectors without data: whoever asks for the data has an R function called, which
 * may raise an error, jump away or call the package again. And how much memory is in use. */
#define R_NO_REMAP
#include <Rinternals.h>
#include <R_ext/Altrep.h>
#include <R_ext/Rdynload.h>
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
#include <malloc.h>
#endif

static R_altrep_class_t class;

static R_xlen_t length(SEXP x) { return Rf_xlength(R_altrep_data2(x)); }

static void *data(SEXP x, Rboolean writable) {
    (void) writable;
    SEXP call = PROTECT(Rf_lang1(R_altrep_data1(x)));
    Rf_eval(call, R_GlobalEnv);
    UNPROTECT(1);
    return INTEGER(R_altrep_data2(x));
}

SEXP on_demand(SEXP f, SEXP values) { return R_new_altrep(class, f, values); }

/* The bytes that malloc() has given and that were not freed; NA where it does not tell. */
SEXP bytes_in_use(void) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    struct mallinfo2 info = mallinfo2();
    return Rf_ScalarReal((double) info.uordblks + (double) info.hblkhd);
#else
    return Rf_ScalarReal(NA_REAL);
#endif
}

void R_init_altrep(DllInfo *dll) {
    class = R_make_altinteger_class("on_demand", "altrep", dll);
    R_set_altrep_Length_method(class, length);
    R_set_altvec_Dataptr_method(class, data);
}
