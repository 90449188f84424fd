#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CPeerRings.h"

#include "PlainRing.hpp"

#include <chrono>
#include <limits>
#include <sched.h>
#include <thread>

#if __has_include(<boost/lockfree/spsc_queue.hpp>)
#include <boost/lockfree/spsc_queue.hpp>
#define HAS_BOOST 1
#else
#define HAS_BOOST 0
#endif

#if __has_include(<readerwriterqueue/readerwriterqueue.h>)
#include <readerwriterqueue/readerwriterqueue.h>
#define HAS_MOODYCAMEL 1
#else
#define HAS_MOODYCAMEL 0
#endif

namespace {

constexpr size_t capacity = 1024;

struct Element {
  int64_t first, second, third, fourth;
};

// One interface for all rings.

struct Plain {
  PlainRing<Element> ring{capacity};
  bool push(const Element &element) { return ring.push(element); }
  bool pop(Element &element) { return ring.pop(element); }
};

#if HAS_BOOST
struct Boost {
  boost::lockfree::spsc_queue<Element, boost::lockfree::capacity<capacity>> ring;
  bool push(const Element &element) { return ring.push(element); }
  bool pop(Element &element) { return ring.pop(element); }
};
#endif

#if HAS_MOODYCAMEL
struct Moodycamel {
  moodycamel::ReaderWriterQueue<Element> ring{capacity};
  // `enqueue` would allocate when the ring is full.
  bool push(const Element &element) { return ring.try_enqueue(element); }
  bool pop(Element &element) { return ring.try_dequeue(element); }
};
#endif

double seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

/// Keeps a value alive as far as the optimiser can see.
void use(int64_t value) { asm volatile("" : : "r"(value) : "memory"); }

void bind(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof set, &set);
}

template <typename Ring> double pushPop(int64_t rounds) {
  auto ring = std::make_unique<Ring>();
  int64_t sum = 0;
  const double start = seconds();
  for (int64_t round = 0; round < rounds; round++) {
    ring->push({round, sum, 3, 4});
    Element element;
    if (ring->pop(element)) sum += element.first;
  }
  const double elapsed = seconds() - start;
  use(sum);
  return elapsed;
}

template <typename Ring> double bursts(int64_t size, int64_t rounds, int writer, int reader) {
  auto ring = std::make_unique<Ring>();
  double elapsed = 0;
  alignas(128) std::atomic<int64_t> taken{0};
  std::thread taker([&] {
    bind(reader);
    Element element;
    int64_t sum = 0;
    for (int64_t round = 1; round <= rounds; round++) {
      while (!ring->pop(element)) {}
      sum += element.first;
      if (round % size == 0) taken.store(round, std::memory_order_release);
    }
    use(sum);
  });
  std::thread giver([&] {
    bind(writer);
    const double start = seconds();
    for (int64_t round = 1; round <= rounds; round++) {
      ring->push({round, 2, 3, 4});
      if (round % size == 0) {
        while (taken.load(std::memory_order_acquire) != round) {}
      }
    }
    elapsed = seconds() - start;
  });
  giver.join();
  taker.join();
  return elapsed;
}

template <typename Ring> double roundTrip(int64_t rounds, int near, int far) {
  auto there = std::make_unique<Ring>(), back = std::make_unique<Ring>();
  std::thread echo([&] {
    bind(far);
    Element element;
    for (int64_t round = 0; round < rounds; round++) {
      while (!there->pop(element)) {}
      back->push(element);
    }
  });
  double elapsed = 0;
  std::thread caller([&] {
    bind(near);
    Element element;
    const double start = seconds();
    for (int64_t round = 0; round < rounds; round++) {
      there->push({round, 2, 3, 4});
      while (!back->pop(element)) {}
      use(element.first);
    }
    elapsed = seconds() - start;
  });
  caller.join();
  echo.join();
  return elapsed;
}

/// Calls `work` with the type of a ring; NaN when the library is missing.
template <typename Work> double with(peer_ring ring, Work work) {
  switch (ring) {
  case PEER_RING_PLAIN: return work(std::type_identity<Plain>());
#if HAS_BOOST
  case PEER_RING_BOOST: return work(std::type_identity<Boost>());
#endif
#if HAS_MOODYCAMEL
  case PEER_RING_MOODYCAMEL: return work(std::type_identity<Moodycamel>());
#endif
  default: return std::numeric_limits<double>::quiet_NaN();
  }
}

} // namespace

bool peer_ring_is_installed(peer_ring ring) {
  switch (ring) {
  case PEER_RING_PLAIN: return true;
  case PEER_RING_BOOST: return HAS_BOOST;
  case PEER_RING_MOODYCAMEL: return HAS_MOODYCAMEL;
  }
  return false;
}

double peer_ring_push_pop(peer_ring ring, int64_t rounds) {
  return with(ring, [&](auto kind) { return pushPop<typename decltype(kind)::type>(rounds); });
}

double peer_ring_bursts(peer_ring ring, int64_t size, int64_t rounds, int writer, int reader) {
  return with(ring, [&](auto kind) { return bursts<typename decltype(kind)::type>(size, rounds, writer, reader); });
}

double peer_ring_round_trip(peer_ring ring, int64_t rounds, int near, int far) {
  return with(ring, [&](auto kind) { return roundTrip<typename decltype(kind)::type>(rounds, near, far); });
}
