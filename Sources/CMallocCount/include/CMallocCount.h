// Counts of heap requests, to prove that a piece of code makes none.
//
// Linking this target into an executable puts its `malloc` and relatives in place of the C library's for the whole
// process: Swift's runtime, Foundation and every other shared library included. They count and hand on to glibc. For
// tests and benchmarks; not for a program that ships, nor beside another allocator (jemalloc and others define the
// same names). Under AddressSanitizer, ThreadSanitizer, MemorySanitizer and on systems without glibc, nothing is put
// in place and every count stays at zero: ask `millrace_malloc_counting_available` first.
#pragma once

#include <stdint.h>

/// 1 when requests are counted in this process, 0 when every count stays at zero.
int millrace_malloc_counting_available(void);

/// How many times the calling thread has asked for heap memory so far: `malloc`, `calloc`, `realloc` and the aligned
/// kinds, each once, whether served or not; `free` is not counted. Tests run beside each other, so a test compares
/// this count before and after, not the one of the process. Costs a few nanoseconds, allocates nothing.
uint64_t millrace_malloc_thread_requests(void);

/// How many times all threads of the process have asked for heap memory so far. Relaxed: orders nothing.
uint64_t millrace_malloc_process_requests(void);

/// How many bytes the calling thread took from the heap less those it gave back, as usable sizes of the blocks.
/// Negative when it gave back what others had taken.
int64_t millrace_malloc_thread_bytes(void);

/// How many bytes the process holds on the heap, as usable sizes of the blocks; their headers are not included.
int64_t millrace_malloc_process_bytes(void);
