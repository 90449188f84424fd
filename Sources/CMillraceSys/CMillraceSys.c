#define _GNU_SOURCE
#include "CMillraceSys.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
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

void millrace_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

int millrace_set_thread_nice(int nice) {
  // On Linux a thread id names one thread here, not the process.
  return setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), nice) == 0 ? 0 : errno;
}

bool millrace_ticks_are_steady(void) {
#if defined(__x86_64__)
  unsigned eax, ebx, ecx, edx;
  // CPUID leaf 0x80000007, EDX bit 8: invariant TSC (Intel SDM volume 3, 17.17.1).
  if (!__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx)) return false;
  return (edx >> 8) & 1;
#else
  return true;
#endif
}

bool millrace_barrier_prepare(void) {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void millrace_barrier_all_threads(void) { syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0); }
