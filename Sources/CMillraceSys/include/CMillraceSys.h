/// The few pieces of Linux that Swift cannot reach by itself: futex, time-stamp counter, thread names and timer slack, pipes
/// and the start of programs.
#pragma once

#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/// Waits while `*word == expected`, until woken or until `timeout_ns` nanoseconds have passed (negative: no limit).
/// Returns 0 when woken or when the word had changed already, 1 on time-out.
int millrace_futex_wait(const uint32_t *word, uint32_t expected, int64_t timeout_ns);

/// Wakes at most `count` threads that wait on `word`.
void millrace_futex_wake(const uint32_t *word, int count);

/// Asks the kernel to end this thread's timed waits within `ns` of their deadline (default 50 us).
void millrace_set_timer_slack(uint64_t ns);

/// Bytes that this process has got from the heap and not given back, mallinfo2(3).
uint64_t millrace_heap_in_use(void);

/// Names the calling thread as `ps`, `top` and debuggers show it (15 bytes at most).
void millrace_name_thread(const char *name);

/// Lowers the calling thread's priority, so that voice threads go first. Returns 0, or the `errno` of the refusal.
int millrace_set_thread_nice(int nice);

/// Lets the calling thread go before all ordinary ones (SCHED_RR, priority 1 to 99): for threads that carry sound and rest most of
/// the time. Returns 0, or the `errno` of the refusal, which is usual for users without that right (`ulimit -r`).
int millrace_set_thread_realtime(int priority);

/// Makes a pipe: `ends[0]` is read, `ends[1]` written. Both are closed in programs that any thread starts meanwhile; with
/// `never_waits` neither makes its caller wait (O_NONBLOCK). Returns 0, or the `errno` of the refusal (EMFILE: no descriptor
/// is left).
int millrace_pipe_make(int ends[2], bool never_waits);

/// Bytes that the pipe behind a descriptor holds, fcntl(2) F_GETPIPE_SZ; 0 when it is no pipe.
int millrace_pipe_capacity(int descriptor);

/// Asks for another capacity of a pipe, fcntl(2) F_SETPIPE_SZ. The kernel rounds up to whole pages; what it refuses stays
/// as it was.
void millrace_pipe_set_capacity(int descriptor, int bytes);

/// Adds to what a new program does before it runs: it enters a folder. Returns 0 or an `errno`. glibc 2.29.
int millrace_spawn_enter_folder(posix_spawn_file_actions_t *actions, const char *path);

/// Adds to what a new program does before it runs: it closes every descriptor from `first` on. Returns 0 or an `errno`.
/// glibc 2.34.
int millrace_spawn_close_from(posix_spawn_file_actions_t *actions, int first);

/// Asks for the cache line at an address that will soon be read and written, and does not wait for it. Any address will do.
static inline void millrace_prefetch(const void *address) { __builtin_prefetch(address, 1); }

/// Ties the calling thread, and threads it starts from now on, to one processor. Returns 0, or the `errno` of the refusal.
int millrace_bind_thread(int processor);

/// Prepares `millrace_barrier_all_threads`. False when this kernel does not offer it.
bool millrace_barrier_prepare(void);

/// Every running thread of this process passes a full memory barrier before this returns (membarrier(2), expedited). Lets a
/// hot path publish with plain stores what another thread checks once in a lifetime.
void millrace_barrier_all_threads(void);

/// Keeps the compiler, not the processor, from moving memory accesses across this point.
static inline void millrace_compiler_barrier(void) { __asm__ volatile("" ::: "memory"); }

/// Nanoseconds of CLOCK_MONOTONIC.
static inline int64_t millrace_monotonic_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/// Nanoseconds of CPU time of the calling thread.
static inline int64_t millrace_thread_cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/// Nanoseconds of CPU time of the process.
static inline int64_t millrace_process_cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/// True when the processor's counter runs at a fixed rate whatever the core's own. Found out once, before `main`.
extern bool millrace_counter_is_steady;
static inline bool millrace_ticks_are_steady(void) { return millrace_counter_is_steady; }

/// Times everything by the clock from here on, as where the counter is not steady. For tests, before the first measurement.
void millrace_distrust_ticks(void);

/// A cheap counter for timing work: the time-stamp counter on x86, the virtual counter on ARM, else CLOCK_MONOTONIC, as also
/// where the counter is not steady. About a third of the cost of reading a clock. Not ordered with surrounding loads: good for
/// spans over 20 ns.
static inline uint64_t millrace_ticks(void) {
  if (__builtin_expect(!millrace_counter_is_steady, 0)) return (uint64_t)millrace_monotonic_ns();
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t value;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return (uint64_t)millrace_monotonic_ns();
#endif
}

/// Tells the processor that this loop spins.
static inline void millrace_pause(void) {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}
