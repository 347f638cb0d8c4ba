/* Memory of a process that is not R's: threads, and memory that native code has allocated. */

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_barrier_t started;

/* Writes to memory, which the compiler must not leave out. */
static void fill(char *memory, size_t bytes) {
  if (memory == NULL) abort();
  for (size_t i = 0; i < bytes; i++) ((volatile char *) memory)[i] = 1;
}

/* Writes to 256 kB of the stack, and to 1 MB in small pieces, which are in an arena of the thread. */
static void *thread(void *unused) {
  char stack[256 * 1024];
  fill(stack, sizeof stack);
  for (int i = 0; i < 1024; i++) fill(malloc(1024), 1024);
  pthread_barrier_wait(&started);
  for (;;) pause();
  return unused;
}

void start_threads(int *count) {
  pthread_barrier_init(&started, NULL, *count + 1);
  for (int i = 0; i < *count; i++) {
    pthread_t id;
    pthread_create(&id, NULL, thread, NULL);
  }
  pthread_barrier_wait(&started);
}

/* Keeps so many bytes of malloc(). */
void allocate(int *bytes) {
  fill(malloc(*bytes), *bytes);
}

/* Keeps so many bytes that other processes may share. */
void share(int *bytes) {
  char *memory = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  fill(memory == MAP_FAILED ? NULL : memory, *bytes);
}

void trim(void) {
  malloc_trim(0);
}
