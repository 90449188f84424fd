/// The parts of Linux that Swift cannot call itself: futex, time-stamp counter, thread names and timer slack, pipes and starting
/// programs.
#pragma once

#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/// Waits while `*word == expected`, until woken or until `timeout_ns` nanoseconds have passed (negative: no limit).
/// Returns 0 when woken or when the word had already changed, 1 on timeout.
int millrace_futex_wait(const uint32_t *word, uint32_t expected, int64_t timeout_ns);

/// Wakes at most `count` threads waiting on `word`.
void millrace_futex_wake(const uint32_t *word, int count);

/// Sets the timer slack of this thread: its timed waits end within `ns` of their deadline (default 50 us).
void millrace_set_timer_slack(uint64_t ns);

/// Bytes this process has allocated on the heap and not freed, mallinfo2(3).
uint64_t millrace_heap_in_use(void);

/// Sets the name of the calling thread for `ps`, `top` and debuggers (at most 15 bytes).
void millrace_name_thread(const char *name);

/// Lowers the calling thread's priority, so that voice threads run first. Returns 0 or an `errno`.
int millrace_set_thread_nice(int nice);

/// Gives the calling thread real-time priority (SCHED_RR, 1 to 99): for audio threads, which sleep most of the time. Returns 0 or an
/// `errno`; EPERM is normal for users without the privilege (`ulimit -r`).
int millrace_set_thread_realtime(int priority);

/// Creates a pipe: `ends[0]` is the read end, `ends[1]` the write end. Both are closed in programs started by any thread
/// (O_CLOEXEC); with `never_waits` neither blocks (O_NONBLOCK). Returns 0 or an `errno` (EMFILE: out of descriptors).
int millrace_pipe_make(int ends[2], bool never_waits);

/// The capacity of a pipe in bytes, fcntl(2) F_GETPIPE_SZ; 0 when the descriptor is not a pipe.
int millrace_pipe_capacity(int descriptor);

/// Requests a capacity for a pipe, fcntl(2) F_SETPIPE_SZ. The kernel rounds up to whole pages; on failure the capacity stays.
void millrace_pipe_set_capacity(int descriptor, int bytes);

/// Adds a file action that changes the working directory of the new program. Returns 0 or an `errno`. glibc 2.29.
int millrace_spawn_enter_folder(posix_spawn_file_actions_t *actions, const char *path);

/// Adds a file action that closes every descriptor from `first` on in the new program. Returns 0 or an `errno`. glibc 2.34.
int millrace_spawn_close_from(posix_spawn_file_actions_t *actions, int first);

/// Prefetches the cache line at an address for reading and writing. Any address is allowed.
static inline void millrace_prefetch(const void *address) { __builtin_prefetch(address, 1); }

/// Binds the calling thread, and threads it starts from now on, to one processor. Returns 0 or an `errno`.
int millrace_bind_thread(int processor);

/// Prepares `millrace_barrier_all_threads`. False when the kernel does not support it.
bool millrace_barrier_prepare(void);

/// Returns after every running thread of this process has executed a full memory barrier (membarrier(2), expedited). So a hot path can
/// publish with plain stores what another thread checks very rarely.
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

/// True when the processor's counter has a fixed rate, independent of the core's frequency. Determined once, before `main`.
extern bool millrace_counter_is_steady;
static inline bool millrace_ticks_are_steady(void) { return millrace_counter_is_steady; }

/// Uses the clock instead of the counter from now on, as on machines without a steady counter. For tests, before the first measurement.
void millrace_distrust_ticks(void);

/// A cheap counter for timing work: the time-stamp counter on x86, the virtual counter on ARM, otherwise, and where the counter is not
/// steady, CLOCK_MONOTONIC. Costs about a third of reading a clock. Not ordered with surrounding loads: suitable for spans over
/// 20 ns.
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

/// Hints to the processor that this is a spin loop.
static inline void millrace_pause(void) {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}
