#define _GNU_SOURCE
#include "CMillraceSys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

int millrace_futex_wait(const uint32_t *word, uint32_t expected, int64_t timeout_ns) {
  struct timespec limit, *timeout = NULL;
  if (timeout_ns >= 0) {
    limit.tv_sec = timeout_ns / 1000000000;
    limit.tv_nsec = timeout_ns % 1000000000;
    timeout = &limit;
  }
  long result = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout, NULL, 0);
  return result == -1 && errno == ETIMEDOUT;
}

void millrace_futex_wake(const uint32_t *word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

void millrace_set_timer_slack(uint64_t ns) { prctl(PR_SET_TIMERSLACK, ns, 0, 0, 0); }

uint64_t millrace_heap_in_use(void) {
  struct mallinfo2 heap = mallinfo2();
  return (uint64_t)heap.uordblks + (uint64_t)heap.hblkhd;
}

void millrace_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

int millrace_set_thread_nice(int nice) {
  // On Linux a thread id selects one thread here, not the process.
  return setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), nice) == 0 ? 0 : errno;
}

int millrace_set_thread_realtime(int priority) {
  struct sched_param wish = {.sched_priority = priority};
  // Programs started by this thread must not inherit it.
  return pthread_setschedparam(pthread_self(), SCHED_RR | SCHED_RESET_ON_FORK, &wish);
}

int millrace_pipe_make(int ends[2], bool never_waits) {
  return pipe2(ends, O_CLOEXEC | (never_waits ? O_NONBLOCK : 0)) == 0 ? 0 : errno;
}

int millrace_pipe_capacity(int descriptor) {
  int bytes = fcntl(descriptor, F_GETPIPE_SZ);
  return bytes > 0 ? bytes : 0;
}

void millrace_pipe_set_capacity(int descriptor, int bytes) { fcntl(descriptor, F_SETPIPE_SZ, bytes); }

int millrace_spawn_enter_folder(posix_spawn_file_actions_t *actions, const char *path) {
  return posix_spawn_file_actions_addchdir_np(actions, path);
}

int millrace_spawn_close_from(posix_spawn_file_actions_t *actions, int first) {
  return posix_spawn_file_actions_addclosefrom_np(actions, first);
}

bool millrace_counter_is_steady = false;

void millrace_distrust_ticks(void) { millrace_counter_is_steady = false; }

__attribute__((constructor)) static void look_at_counter(void) {
#if defined(__x86_64__)
  unsigned eax, ebx, ecx, edx;
  // CPUID leaf 0x80000007, EDX bit 8: invariant TSC (Intel SDM volume 3, 17.17.1).
  millrace_counter_is_steady = __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && ((edx >> 8) & 1);
#else
  // The ARM architecture promises a fixed rate; elsewhere the clock itself is read.
  millrace_counter_is_steady = true;
#endif
}

int millrace_bind_thread(int processor) {
  cpu_set_t set;
  if (processor < 0 || processor >= CPU_SETSIZE) return EINVAL;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0 ? 0 : errno;
}

bool millrace_barrier_prepare(void) {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void millrace_barrier_all_threads(void) { syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0); }
