// Makes each fsync and fdatasync of a process take SLOW_FSYNC_MICROS longer: gcc -shared -fPIC -o slow-fsync.so slow-fsync.c -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int slowly(const char *name, int descriptor) {
  const char *micros = getenv("SLOW_FSYNC_MICROS");
  int (*real)(int) = dlsym(RTLD_NEXT, name);
  usleep(micros == NULL ? 0 : atoi(micros));
  return real(descriptor);
}

int fsync(int descriptor) { return slowly("fsync", descriptor); }
int fdatasync(int descriptor) { return slowly("fdatasync", descriptor); }
