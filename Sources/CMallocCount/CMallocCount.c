#include "CMallocCount.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

// A sanitizer installs its own allocator before this one could work; two of them crash at start.
#if defined(__GLIBC__) && !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer) && \
    !__has_feature(memory_sanitizer)
#define COUNTING 1
#else
#define COUNTING 0
#endif

// The initial-exec model reads these without a call. The general model may itself allocate on a thread's first use, from inside
// `malloc`.
static __thread uint64_t thread_requests __attribute__((tls_model("initial-exec")));
static __thread int64_t thread_bytes __attribute__((tls_model("initial-exec")));
static _Atomic uint64_t process_requests;
static _Atomic int64_t process_bytes;

int millrace_malloc_counting_available(void) { return COUNTING; }

uint64_t millrace_malloc_thread_requests(void) { return thread_requests; }

uint64_t millrace_malloc_process_requests(void) {
  return atomic_load_explicit(&process_requests, memory_order_relaxed);
}

int64_t millrace_malloc_thread_bytes(void) { return thread_bytes; }

int64_t millrace_malloc_process_bytes(void) {
  return atomic_load_explicit(&process_bytes, memory_order_relaxed);
}

#if COUNTING

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void *__libc_valloc(size_t);
extern void *__libc_pvalloc(size_t);
extern void __libc_free(void *);

static void count_request(void) {
  thread_requests += 1;
  atomic_fetch_add_explicit(&process_requests, 1, memory_order_relaxed);
}

static void count_bytes(int64_t change) {
  thread_bytes += change;
  atomic_fetch_add_explicit(&process_bytes, change, memory_order_relaxed);
}

// Counts a block just received; null, a failed request, holds no bytes.
static void *counted(void *block) {
  count_request();
  count_bytes((int64_t)malloc_usable_size(block));
  return block;
}

void *malloc(size_t size) { return counted(__libc_malloc(size)); }

void *calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size)); }

void *realloc(void *old, size_t size) {
  int64_t before = (int64_t)malloc_usable_size(old);
  void *block = __libc_realloc(old, size);
  count_request();
  // A failed request leaves the old block unchanged; size 0 frees it (glibc) and returns null.
  if (block || size == 0) count_bytes((int64_t)malloc_usable_size(block) - before);
  return block;
}

void *memalign(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }

void *aligned_alloc(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }

int posix_memalign(void **result, size_t alignment, size_t size) {
  if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
  // POSIX reports failure through the result only.
  int kept = errno;
  void *block = counted(__libc_memalign(alignment, size));
  errno = kept;
  if (!block) return ENOMEM;
  *result = block;
  return 0;
}

void *valloc(size_t size) { return counted(__libc_valloc(size)); }

void *pvalloc(size_t size) { return counted(__libc_pvalloc(size)); }

void free(void *block) {
  // `free` preserves `errno`, which callers rely on in error paths; `malloc_usable_size` does not change it.
  if (!block) return;
  count_bytes(-(int64_t)malloc_usable_size(block));
  __libc_free(block);
}

#endif
