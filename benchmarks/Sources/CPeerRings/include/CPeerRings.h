// Third-party single-producer single-consumer queues: 32 bytes per element, 1,024 elements.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  /// This project's plain C++ ring.
  PEER_RING_PLAIN,
  /// `boost::lockfree::spsc_queue` (libboost-dev).
  PEER_RING_BOOST,
  /// `moodycamel::ReaderWriterQueue` (libreaderwriterqueue-dev).
  PEER_RING_MOODYCAMEL,
} peer_ring;

/// Whether the library was present when this was compiled.
bool peer_ring_is_installed(peer_ring ring);

/// Seconds for pushing an element and popping it, `rounds` times, by one thread.
double peer_ring_push_pop(peer_ring ring, int64_t rounds);

/// Seconds for `rounds` elements from a thread on one processor to a thread on another, in bursts of `size`; each burst starts when the
/// last one has been taken.
double peer_ring_bursts(peer_ring ring, int64_t size, int64_t rounds, int writer, int reader);

/// Seconds for `rounds` elements to go to a thread on another processor and come back, one at a time.
double peer_ring_round_trip(peer_ring ring, int64_t rounds, int near, int far);

#ifdef __cplusplus
}
#endif
