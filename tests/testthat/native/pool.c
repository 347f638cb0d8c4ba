/* Threads that use an amount of CPU time, and then wait: what other libraries do in parallel. Until they have ended, the
 * amounts do not change any more, and the system can be asked for them. */

#include <Rinternals.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST 64

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t threads[MOST];
static int ids[MOST], running, ready, may_end;
static double amount;

static void *work(void *number) {
  struct timespec now;
  do {
    for (volatile int i = 0; i < 10000; i++) {
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while ((double)now.tv_sec + (double)now.tv_nsec / 1e9 < amount);
  pthread_mutex_lock(&mutex);
  ids[(long)number] = (int)syscall(SYS_gettid);
  ready++;
  pthread_cond_broadcast(&changed);
  while (!may_end) {
    pthread_cond_wait(&changed, &mutex);
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

/* Starts threads, each of which uses so many seconds. */
SEXP pool_start(SEXP count, SEXP seconds) {
  running = Rf_asInteger(count);
  amount = Rf_asReal(seconds);
  ready = may_end = 0;
  for (long i = 0; i < running; i++) {
    pthread_create(&threads[i], NULL, work, (void *)i);
  }
  return R_NilValue;
}

/* Waits until all have done that, and returns their ids. */
SEXP pool_wait(void) {
  pthread_mutex_lock(&mutex);
  while (ready < running) {
    pthread_cond_wait(&changed, &mutex);
  }
  pthread_mutex_unlock(&mutex);
  SEXP result = PROTECT(Rf_allocVector(INTSXP, running));
  for (int i = 0; i < running; i++) {
    INTEGER(result)[i] = ids[i];
  }
  UNPROTECT(1);
  return result;
}

/* Ends them. */
SEXP pool_end(void) {
  pthread_mutex_lock(&mutex);
  may_end = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < running; i++) {
    pthread_join(threads[i], NULL);
  }
  running = 0;
  return R_NilValue;
}
