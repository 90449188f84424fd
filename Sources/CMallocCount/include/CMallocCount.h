// Counts of heap requests, to prove that a piece of code makes none.
//
// Linking this target into an executable replaces the C library's `malloc` family for the whole process, including Swift's
// runtime, Foundation and every other shared library. The replacements count and call glibc. For tests and benchmarks; not for
// programs that ship, nor together with another allocator (jemalloc and others define the same names). Under AddressSanitizer,
// ThreadSanitizer and MemorySanitizer and on systems without glibc nothing is replaced and every count stays at zero: check
// `millrace_malloc_counting_available` first.
#pragma once

#include <stdint.h>

/// 1 when requests are counted in this process, 0 when every count stays at zero.
int millrace_malloc_counting_available(void);

/// Heap requests of the calling thread so far: `malloc`, `calloc`, `realloc` and the aligned variants, each once, whether they
/// succeed or not; `free` is not counted. Tests run concurrently, so a test compares this count before and after, not that of
/// the process. Costs a few nanoseconds and allocates nothing.
uint64_t millrace_malloc_thread_requests(void);

/// Heap requests of all threads of the process so far. A relaxed read: it orders nothing.
uint64_t millrace_malloc_process_requests(void);

/// Bytes the calling thread has allocated minus those it has freed, as usable sizes of the blocks. Negative when it has freed
/// blocks of other threads.
int64_t millrace_malloc_thread_bytes(void);

/// Bytes the process holds on the heap, as usable sizes of the blocks, without their headers.
int64_t millrace_malloc_process_bytes(void);
