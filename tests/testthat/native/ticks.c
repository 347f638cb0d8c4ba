/* Ticks that a test gives: the signal of R's profiler without its timer, so that the number of samples and their stacks
   are known. helper-ticks.R has the functions of R. */

#define _GNU_SOURCE
#include <signal.h>
#include <sys/time.h>
#include <Rinternals.h>

/* No more ticks of the timer. Profilers do not notice, they only wait for the next signal. */
SEXP ticks_only_given(void) {
  struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_PROF, &never, NULL);
  return R_NilValue;
}

/* `raise()` returns after the handler has returned. */
SEXP ticks_give(SEXP n) {
  for (int i = 0; i < Rf_asInteger(n); i++) raise(SIGPROF);
  return R_NilValue;
}
