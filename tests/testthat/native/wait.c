/* Stops in native code that R has called, which R called again, at a known place. */
#include <Rinternals.h>
#include <unistd.h>

static inline __attribute__((always_inline)) void wait_inlined(void) {
  for (;;) {
    pause();
  }
}

__attribute__((noinline)) SEXP wait_here(void) {
  wait_inlined();
  return R_NilValue;
}

__attribute__((noinline)) SEXP wait_in_r(SEXP call, SEXP env) {
  SEXP value = PROTECT(Rf_eval(call, env));
  UNPROTECT(1);
  return value;
}
