/* What disturbs a profiler: ticks in other threads and at any instruction, threads that work, that send signals, that load
 * and unload libraries. All of them are asked to end, and waited for. */

#define _GNU_SOURCE
#include "native.h"
#include <R.h>
#include <Rinternals.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double thread_cpu(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- Ticks in another thread ---------------------------------------------- */

/* Another thread gives `n` ticks, which the profiler forwards to R's thread. That one waits for each of them here, and so
 * is interrupted nowhere else. */
static sem_t go;

NOINLINE void other_thread(void) {
  c_tick();
  __asm__ volatile("");
}

static void *ticking_thread(void *n) {
  for (int i = 0; i < *(int *)n; i++) {
    while (sem_wait(&go) != 0) {
    }
    other_thread();
  }
  return NULL;
}

SEXP c_threads(SEXP n) {
  int ticks = Rf_asInteger(n);
  pthread_t thread;
  sigset_t tick, before, waiting;
  sem_init(&go, 0, 0);
  if (pthread_create(&thread, NULL, ticking_thread, &ticks) != 0) {
    return Rf_ScalarInteger(0);
  }
  sigemptyset(&tick);
  sigaddset(&tick, SIGPROF);
  pthread_sigmask(SIG_BLOCK, &tick, &before);
  waiting = before;
  sigdelset(&waiting, SIGPROF);
  /* The limit is for a tick that is not forwarded; no other one is waited for then. */
  static struct timespec limit = {60, 0};
  int forwarded = 0;
  for (int i = 0; i < ticks; i++) {
    sem_post(&go);
    if (ppoll(NULL, 0, &limit, &waiting) == -1) {
      forwarded++;
    } else {
      limit.tv_sec = 0;
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_join(thread, NULL);
  return Rf_ScalarInteger(forwarded);
}

/* ---- Ticks everywhere ----------------------------------------------------- */

/* From steps_start() to steps_stop() the processor stops after each instruction, and every so many of them the handler of
 * SIGPROF is called, as if that signal had interrupted this instruction. Thus ticks are everywhere, also where a function
 * begins or ends, and are in the same places in each run. Only x86-64 can do this without another process. */
#ifdef __x86_64__
void set_trap_flag(void);
void clear_trap_flag(void);
#define CHANGE_FLAGS(name, how)                                                                                        \
  __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n"                           \
          "pushfq\n.cfi_adjust_cfa_offset 8\n" how ", (%rsp)\npopfq\n.cfi_adjust_cfa_offset -8\n"                      \
          "ret\n.cfi_endproc\n.size " #name ", .-" #name "\n")
CHANGE_FLAGS(set_trap_flag, "orq $0x100");
CHANGE_FLAGS(clear_trap_flag, "andq $~0x100");
#else
static void set_trap_flag(void) { Rf_error("This processor cannot stop after each instruction."); }
static void clear_trap_flag(void) {}
#endif

static long steps, ticks_at_steps;
static int steps_between;

static void on_step(int signal, siginfo_t *info, void *context) {
  struct sigaction handler;
  (void)signal;
  if (++steps % steps_between != 0 || sigaction(SIGPROF, NULL, &handler) != 0) {
    return;
  }
  ticks_at_steps++;
  if (handler.sa_flags & SA_SIGINFO) {
    handler.sa_sigaction(SIGPROF, info, context);
  } else {
    handler.sa_handler(SIGPROF);
  }
}

SEXP steps_start(SEXP between) {
  struct sigaction ours = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_RESTART};
  steps = ticks_at_steps = 0;
  steps_between = Rf_asInteger(between);
  sigemptyset(&ours.sa_mask);
  sigaddset(&ours.sa_mask, SIGPROF);
  sigaction(SIGTRAP, &ours, NULL);
  set_trap_flag();
  return R_NilValue;
}

/* Returns the number of ticks. */
SEXP steps_stop(void) {
  clear_trap_flag();
  signal(SIGTRAP, SIG_DFL);
  return Rf_ScalarReal((double)ticks_at_steps);
}

/* ---- Threads that work ---------------------------------------------------- */

enum { MOST = 8 };
static pthread_t busy[MOST];
static int busy_count = 0;
static atomic_int busy_end;

void *busy_thread(void *data) {
  double *cpu = data;
  volatile double x = 0;
  while (!atomic_load(&busy_end)) {
    x += c_spin(1);
  }
  *cpu = thread_cpu();
  return NULL;
}

static double busy_cpu[MOST];

SEXP busy_start(SEXP count) {
  atomic_store(&busy_end, 0);
  int wanted = Rf_asInteger(count) < MOST ? Rf_asInteger(count) : MOST;
  while (busy_count < wanted &&
         pthread_create(&busy[busy_count], NULL, busy_thread, &busy_cpu[busy_count]) == 0) {
    busy_count++;
  }
  return Rf_ScalarInteger(busy_count);
}

/* Gives the CPU time that the threads had. */
SEXP busy_stop(void) {
  double cpu = 0;
  atomic_store(&busy_end, 1);
  while (busy_count > 0) {
    busy_count--;
    pthread_join(busy[busy_count], NULL);
    cpu += busy_cpu[busy_count];
  }
  return Rf_ScalarReal(cpu);
}

/* ---- A storm of signals, and of libraries --------------------------------- */

static pthread_t target, sender, loader;
static int sending = 0, loading = 0, every;
static atomic_int storm_end;
static atomic_long sent, loaded;
static char library[4096];

/* The signals are for the main thread alone. */
static void hear_nothing(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
}

void *sender_thread(void *data) {
  hear_nothing();
  while (!atomic_load(&storm_end)) {
    usleep((useconds_t)every);
    pthread_kill(target, SIGPROF);
    sent++;
  }
  return data;
}

void *loader_thread(void *data) {
  hear_nothing();
  while (!atomic_load(&storm_end)) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL) {
      dlclose(handle);
      loaded++;
    }
    usleep(50);
  }
  return data;
}

/* Sends SIGPROF every so many microseconds, 0 for not at all, and loads and unloads
 * the library at `path`, "" for none. SIGPROF must have a handler: without one it
 * ends the process. */
SEXP storm_start(SEXP microseconds, SEXP path) {
  atomic_store(&storm_end, 0);
  sent = loaded = 0;
  target = pthread_self();
  every = Rf_asInteger(microseconds);
  strncpy(library, CHAR(STRING_ELT(path, 0)), sizeof(library) - 1);
  sending = every > 0 && pthread_create(&sender, NULL, sender_thread, NULL) == 0;
  loading = library[0] != 0 && pthread_create(&loader, NULL, loader_thread, NULL) == 0;
  return R_NilValue;
}

/* How many signals were sent so far, and how often the library was loaded. */
SEXP storm_counts(void) {
  SEXP counts = Rf_allocVector(REALSXP, 2);
  REAL(counts)[0] = (double)sent;
  REAL(counts)[1] = (double)loaded;
  return counts;
}

/* Gives the same at the end. */
SEXP storm_stop(void) {
  atomic_store(&storm_end, 1);
  if (sending) {
    pthread_join(sender, NULL);
  }
  if (loading) {
    pthread_join(loader, NULL);
  }
  sending = loading = 0;
  return storm_counts();
}

/* ---- Signals -------------------------------------------------------------- */

/* What `n` ticks change: how many of them `errno`, and how many block their signal afterwards. */
SEXP c_changed(SEXP n) {
  SEXP changed = Rf_allocVector(INTSXP, 2);
  INTEGER(changed)[0] = INTEGER(changed)[1] = 0;
  for (int i = 0; i < Rf_asInteger(n); i++) {
    sigset_t blocked;
    errno = 1234;
    GIVE_TICK();
    INTEGER(changed)[0] += errno != 1234;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    INTEGER(changed)[1] += sigismember(&blocked, SIGPROF);
  }
  return changed;
}

/* Who gets SIGPROF: "default", "ignored", or the file that the handler is in. */
SEXP sigprof_owner(void) {
  struct sigaction now;
  Dl_info info;
  if (sigaction(SIGPROF, NULL, &now) != 0) {
    return Rf_mkString("unknown");
  }
  if (!(now.sa_flags & SA_SIGINFO)) {
    if (now.sa_handler == SIG_DFL) {
      return Rf_mkString("default");
    }
    if (now.sa_handler == SIG_IGN) {
      return Rf_mkString("ignored");
    }
  }
  if (dladdr((void *)now.sa_sigaction, &info) == 0 || info.dli_fname == NULL) {
    return Rf_mkString("unmapped");
  }
  return Rf_mkString(info.dli_fname);
}

/* Another library that uses SIGPROF: it takes the signal, and gives it back to whom it
 * had it from. */
static struct sigaction taken_from;

static void ignore_tick(int signal) { (void)signal; }

SEXP sigprof_take(void) {
  struct sigaction ours = {.sa_handler = ignore_tick};
  sigemptyset(&ours.sa_mask);
  sigaction(SIGPROF, &ours, &taken_from);
  return R_NilValue;
}

SEXP sigprof_return(void) {
  sigaction(SIGPROF, &taken_from, NULL);
  return R_NilValue;
}
