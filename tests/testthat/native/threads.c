/* What disturbs a profiler: threads that work, that send signals, that load and unload
 * libraries. All of them are asked to end, and waited for. */

#define _GNU_SOURCE
#include "native.h"
#include <dlfcn.h>
#include <pthread.h>
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

/* ---- Threads that work ---------------------------------------------------- */

enum { MOST = 8 };
static pthread_t busy[MOST];
static int busy_count = 0;
static atomic_int busy_end;

void *busy_thread(void *data) {
  double *cpu = data;
  volatile double x = 0;
  while (!atomic_load(&busy_end)) {
    x += c_spin(100000);
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
static long sent, loaded;
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

/* Gives how many signals were sent, and how often the library was loaded. */
SEXP storm_stop(void) {
  atomic_store(&storm_end, 1);
  if (sending) {
    pthread_join(sender, NULL);
  }
  if (loading) {
    pthread_join(loader, NULL);
  }
  sending = loading = 0;
  SEXP counts = Rf_allocVector(REALSXP, 2);
  REAL(counts)[0] = (double)sent;
  REAL(counts)[1] = (double)loaded;
  return counts;
}

/* ---- Signals -------------------------------------------------------------- */

/* A Ctrl-C after so many milliseconds of work: on a busy machine that is later than by the
 * clock on the wall, and what is done until then is as much. */
static int delay;

static double process_cpu(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void *interrupt_thread(void *data) {
  hear_nothing();
  double end = process_cpu() + delay / 1e3;
  while (process_cpu() < end) {
    usleep(5000);
  }
  kill(getpid(), SIGINT);
  return data;
}

SEXP interrupt_soon(SEXP milliseconds) {
  pthread_t thread;
  delay = Rf_asInteger(milliseconds);
  if (pthread_create(&thread, NULL, interrupt_thread, NULL) == 0) {
    pthread_detach(thread);
  }
  return R_NilValue;
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
