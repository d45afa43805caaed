/* A host that is no Python: two instances of an FMU 2.0 one after the other, twenty steps each, then the end.

   host LIBRARY GUID RESOURCES close: unloads the library before, `keep` leaves that to the end of the process. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  void (*log)(void *, const char *, int, const char *, const char *, ...);
  void *(*allocate)(size_t, size_t);
  void (*release)(void *);
  void (*finished)(void *, int);
  void *environment;
} Callbacks;

static void ignore(void *e, const char *name, int status, const char *category, const char *text, ...) {}

int main(int count, char **words) {
  static Callbacks callbacks = {ignore, calloc, free, 0, 0};
  void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (count < 5 || !library) return 9;
  void *(*instantiate)(const char *, int, const char *, const char *, Callbacks *, int, int) =
      dlsym(library, "fmi2Instantiate");
  int (*setup)(void *, int, double, double, int, double) = dlsym(library, "fmi2SetupExperiment");
  int (*enter)(void *) = dlsym(library, "fmi2EnterInitializationMode");
  int (*leave)(void *) = dlsym(library, "fmi2ExitInitializationMode");
  int (*step)(void *, double, double, int) = dlsym(library, "fmi2DoStep");
  int (*terminate)(void *) = dlsym(library, "fmi2Terminate");
  void (*release)(void *) = dlsym(library, "fmi2FreeInstance");
  for (int k = 0; k < 2; k++) {
    void *one = instantiate("one", 1, words[2], words[3], &callbacks, 0, 0);
    if (!one) return 8;
    int status = setup(one, 0, 0.0, 0.0, 0, 0.0) | enter(one) | leave(one);
    for (int n = 0; n < 20; n++) status |= step(one, 0.01 * n, 0.01, 1);
    printf("%d\n", status | terminate(one));
    release(one);
  }
  if (!strcmp(words[4], "close")) printf("closed %d\n", dlclose(library));
  return 0;
}
