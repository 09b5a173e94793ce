// SPDX-License-Identifier: Apache-2.0
// The wall clock of a process and its children, shifted by the seconds in CLOCK_SHIFT: `make test-web AT=…` preloads it.
// The clocks that measure how long something takes stay as they are; Python, Node and Chromium wait by those.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t shift(void) {
  const char *seconds = getenv("CLOCK_SHIFT");
  return seconds ? atol(seconds) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(clock, at);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += shift();
  return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
