#include "CMediaShim.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

// One word holds the whole state, so that another thread can set it without a lock: the monotonic time in nanoseconds from
// which calls return early. Cancelled is a time in the past.
enum { cancelled = 0 };
static const int64_t never = INT64_MAX;

struct millrace_av_bound {
  _Atomic int64_t due;
};

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int is_reached(void *opaque) { return millrace_av_bound_is_reached(opaque); }

millrace_av_bound *millrace_av_bound_new(void) {
  millrace_av_bound *bound = malloc(sizeof *bound);
  if (bound) atomic_init(&bound->due, never);
  return bound;
}

void millrace_av_bound_free(millrace_av_bound *bound) { free(bound); }

void millrace_av_bound_attach(const millrace_av_bound *bound, AVFormatContext *context) {
  context->interrupt_callback.callback = is_reached;
  context->interrupt_callback.opaque = (void *)bound;
}

void millrace_av_bound_set_deadline(millrace_av_bound *bound, int64_t nanoseconds) {
  int64_t due = never;
  if (nanoseconds >= 0 && __builtin_add_overflow(now(), nanoseconds, &due)) due = never;
  int64_t present = atomic_load_explicit(&bound->due, memory_order_relaxed);
  // A deadline set by one thread must not undo a cancellation by another.
  while (present != cancelled &&
         !atomic_compare_exchange_weak_explicit(&bound->due, &present, due, memory_order_relaxed,
                                                memory_order_relaxed)) {
  }
}

void millrace_av_bound_cancel(millrace_av_bound *bound) {
  atomic_store_explicit(&bound->due, cancelled, memory_order_relaxed);
}

void millrace_av_bound_reset(millrace_av_bound *bound) {
  atomic_store_explicit(&bound->due, never, memory_order_relaxed);
}

bool millrace_av_bound_is_reached(const millrace_av_bound *bound) {
  int64_t due = atomic_load_explicit(&bound->due, memory_order_relaxed);
  if (due == never) return false;
  return due == cancelled || now() >= due;
}
