/* The ways from R into native code, and from there back into R. `n` is the number of units of work. What may stand right
 * above each of these functions in a stack is listed in native_callers in helper-workload.R. */

#include "native.h"
#include <R.h>
#include <R_ext/Rallocators.h>
#include <Rinternals.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* CPU time of the calling thread, in seconds. */
double thread_cpu(void);

int unit_steps = 0;

SEXP set_unit(SEXP steps) {
  unit_steps = Rf_asInteger(steps);
  return R_NilValue;
}

/* A unit of work. Always inlined: with debug information a profile shows it as an inlined frame. */
static inline __attribute__((always_inline)) double c_kernel(double x) {
  if (unit_steps == 0) {
    GIVE_TICK();
  }
  for (int i = 0; i < unit_steps; i++) {
    x = x * 0.999 + (double)(i % 7);
  }
  return x;
}

NOINLINE double c_spin(int units) {
  double x = 1;
  for (int i = 0; i < units; i++) {
    x = c_kernel(x);
  }
  return x;
}

NOINLINE void c_tick(void) { GIVE_TICK(); }

int c_steps(void) { return unit_steps; }

/* ---- Each way in ---------------------------------------------------------- */

SEXP c_inner(SEXP n) { return Rf_ScalarReal(c_spin(Rf_asInteger(n)) + 1); }

/* As c_inner(), for R functions that have no name of their own. */
SEXP c_applied(SEXP n) { return Rf_ScalarReal(c_spin(Rf_asInteger(n)) + 2); }

/* As c_inner(), for what only a forked child calls. */
SEXP c_forked(SEXP n) { return Rf_ScalarReal(c_spin(Rf_asInteger(n)) + 3); }

/* As c_inner(), for what c_eval() runs without a function of R's around it. */
SEXP c_direct(SEXP n) { return Rf_ScalarReal(c_spin(Rf_asInteger(n)) + 7); }

/* As c_inner(), for finalizers. */
SEXP c_finish(SEXP n) { return Rf_ScalarReal(c_spin(Rf_asInteger(n)) + 4); }

SEXP e_inner(SEXP args) { return Rf_ScalarReal(c_spin(Rf_asInteger(CADR(args))) + 5); }

void c_void(int *n, double *out) { *out = c_spin(*n) + 6; }

/* ---- Back into R ---------------------------------------------------------- */

/* Native work, a call of an R closure, native work. */
SEXP c_outer(SEXP f, SEXP n, SEXP env) {
  double x = c_spin(Rf_asInteger(n));
  SEXP call = PROTECT(Rf_lang1(f));
  x += Rf_asReal(Rf_eval(call, env));
  x += c_spin(Rf_asInteger(n));
  UNPROTECT(1);
  return Rf_ScalarReal(x);
}

/* Forces the promise that `x` is bound to in `env`. */
SEXP c_force(SEXP env) {
  SEXP value = PROTECT(Rf_eval(Rf_install("x"), env));
  double x = Rf_asReal(value) + 1;
  UNPROTECT(1);
  return Rf_ScalarReal(x);
}

/* Evaluates whatever it is given: a call, a loop, bytecode. */
SEXP c_eval(SEXP expr, SEXP env) {
  SEXP value = PROTECT(Rf_eval(expr, env));
  int length = Rf_length(value) + 1;
  UNPROTECT(1);
  return Rf_ScalarInteger(length);
}

/* ---- Ways out that are no return ------------------------------------------ */

NOINLINE double c_fail(int n) {
  double x = c_spin(n);
  if (x > -1) {
    Rf_error("left by a long jump");
  }
  return x + 1;
}

SEXP c_error(SEXP n) { return Rf_ScalarReal(c_fail(Rf_asInteger(n)) + 1); }

struct work {
  SEXP call;
  SEXP env;
  int n;
};

SEXP c_body(void *data) {
  struct work *work = data;
  double x = c_spin(work->n);
  SEXP value = PROTECT(Rf_eval(work->call, work->env));
  x += Rf_asReal(value);
  UNPROTECT(1);
  return Rf_ScalarReal(x);
}

SEXP c_handler(SEXP condition, void *data) {
  (void)condition;
  return Rf_ScalarReal(c_spin(((struct work *)data)->n) + 1);
}

void c_cleanup(void *data, Rboolean jump) {
  volatile double x = c_spin(((struct work *)data)->n);
  (void)jump;
  (void)x;
}

void c_toplevel_body(void *data) {
  volatile double x = Rf_asReal(c_body(data));
  (void)x;
}

/* R runs the body inside its own tryCatch(). */
SEXP c_try(SEXP f, SEXP n, SEXP env) {
  struct work work = {PROTECT(Rf_lang1(f)), env, Rf_asInteger(n)};
  SEXP value = PROTECT(R_tryCatchError(c_body, &work, c_handler, &work));
  double x = Rf_asReal(value) + 1;
  UNPROTECT(2);
  return Rf_ScalarReal(x);
}

SEXP c_unwind(SEXP f, SEXP n, SEXP env) {
  struct work work = {PROTECT(Rf_lang1(f)), env, Rf_asInteger(n)};
  SEXP token = PROTECT(R_MakeUnwindCont());
  SEXP value = PROTECT(R_UnwindProtect(c_body, &work, c_cleanup, &work, token));
  double x = Rf_asReal(value) + 1;
  UNPROTECT(3);
  return Rf_ScalarReal(x);
}

SEXP c_toplevel(SEXP f, SEXP n, SEXP env) {
  struct work work = {PROTECT(Rf_lang1(f)), env, Rf_asInteger(n)};
  Rboolean well = R_ToplevelExec(c_toplevel_body, &work);
  double x = c_spin(work.n);
  UNPROTECT(1);
  return Rf_ScalarLogical(well && x > -1);
}

/* ---- Frames of others between ours ---------------------------------------- */

/* Inside a collection of garbage: R frees memory that it had from an allocator of ours. */
static int freeing;

SEXP Rf_allocVector3(SEXPTYPE, R_xlen_t, R_allocator_t *);

static void *ours_allocate(R_allocator_t *allocator, size_t bytes) {
  (void)allocator;
  return malloc(bytes);
}

void c_free(R_allocator_t *allocator, void *memory) {
  volatile double x = c_spin(freeing);
  (void)allocator;
  (void)x;
  free(memory);
}

SEXP c_collect(SEXP n) {
  R_allocator_t ours = {ours_allocate, c_free, NULL, NULL};
  freeing = Rf_asInteger(n);
  Rf_allocVector3(INTSXP, 100, &ours);
  R_gc();
  return Rf_ScalarReal(c_spin(freeing));
}

SEXP c_copy(SEXP x) {
  Rf_duplicate(x);
  return R_NilValue;
}

/* Ten vectors. */
static void allocate(void *length) {
  for (int i = 0; i < 10; i++) Rf_allocVector(REALSXP, *(R_xlen_t *)length);
}

static void allocate_at_end(SEXP pointer) {
  R_xlen_t length = (R_xlen_t)Rf_asReal(R_ExternalPtrTag(pointer));
  allocate(&length);
}

/* A finalizer allocates them. */
SEXP c_finalizer(SEXP length) {
  SEXP pointer = PROTECT(R_MakeExternalPtr(NULL, length, R_NilValue));
  R_RegisterCFinalizer(pointer, allocate_at_end);
  UNPROTECT(1);
  return R_NilValue;
}

/* R makes the same record of a call as for a finalizer. */
SEXP c_allocate(SEXP length) {
  R_xlen_t n = (R_xlen_t)Rf_asReal(length);
  return Rf_ScalarLogical(R_ToplevelExec(allocate, &n));
}

/* The C library's qsort(), which calls back; only the first comparison works. */
static int comparing;

int c_compare(const void *a, const void *b) {
  volatile double x = c_spin(comparing);
  (void)x;
  comparing = 0;
  return *(const int *)a - *(const int *)b;
}

SEXP c_sort(SEXP n) {
  int values[] = {3, 1, 2};
  comparing = Rf_asInteger(n);
  qsort(values, 3, sizeof(int), c_compare);
  return Rf_ScalarReal(values[0] + c_spin(Rf_asInteger(n)));
}

/* ---- Signals -------------------------------------------------------------- */

/* Ctrl-C at a known place. */
SEXP c_interrupt(SEXP n) {
  double x = c_spin(Rf_asInteger(n));
  kill(getpid(), SIGINT);
  R_CheckUserInterrupt();
  return Rf_ScalarReal(x + c_spin(Rf_asInteger(n)));
}

/* ---- A known split of work ------------------------------------------------ */

/* Two functions that work, and return the CPU time that they used, by the clock of the thread: the truth that a benchmark
 * compares shares with. */
SEXP c_split_some(SEXP n) {
  double start = thread_cpu();
  volatile double x = c_spin(Rf_asInteger(n));
  (void)x;
  return Rf_ScalarReal(thread_cpu() - start);
}

SEXP c_split_more(SEXP n) {
  double start = thread_cpu();
  volatile double x = c_spin(Rf_asInteger(n)) + c_spin(Rf_asInteger(n));
  (void)x;
  return Rf_ScalarReal(thread_cpu() - start);
}

/* For the share of an R function: what the clock says now. */
SEXP c_cpu(void) { return Rf_ScalarReal(thread_cpu()); }
