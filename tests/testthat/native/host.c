/* A program that embeds R and runs a script in a thread other than the first one: host R_HOME script.R */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

static void *symbol(const char *name) {
  void *found = dlsym(library, name);
  if (!found) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return found;
}

static void *run(void *script) {
  char *words[] = {"host", "--vanilla", "--quiet", "--no-save"};
  int failed = 0;
  *(int *) symbol("R_SignalHandlers") = 0;
  ((int (*)(int, char **)) symbol("Rf_initialize_R"))(4, words);
  /* R would check the stack of the first thread. */
  *(uintptr_t *) symbol("R_CStackLimit") = (uintptr_t) -1;
  ((void (*)(void)) symbol("setup_Rmainloop"))();
  void *source = ((void *(*)(const char *)) symbol("Rf_install"))("source");
  void *file = ((void *(*)(const char *)) symbol("Rf_mkString"))(script);
  void *call = ((void *(*)(void *, void *)) symbol("Rf_lang2"))(source, file);
  void *global = *(void **) symbol("R_GlobalEnv");
  ((void *(*)(void *, void *, int *)) symbol("R_tryEval"))(call, global, &failed);
  return failed ? script : NULL;
}

int main(int count, char **words) {
  char path[4096];
  pthread_attr_t attributes;
  pthread_t thread;
  void *failed = NULL;
  if (count != 3)
    return 2;
  setenv("R_HOME", words[1], 1);
  snprintf(path, sizeof path, "%s/lib/libR.so", words[1]);
  library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 20);
  if (pthread_create(&thread, &attributes, run, words[2]) != 0)
    return 1;
  pthread_join(thread, &failed);
  return failed != NULL;
}
