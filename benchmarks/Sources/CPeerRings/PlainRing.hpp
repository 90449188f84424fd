#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

/// A textbook ring: a power of two, and at each end a cached copy of the other end's index, reloaded only when the ring looks full
/// or empty.
template <typename Element> class PlainRing {
public:
  explicit PlainRing(size_t capacity) : slots(new Element[capacity]), mask(capacity - 1) {}

  bool push(const Element &element) {
    const size_t at = written.load(std::memory_order_relaxed);
    if (at - seenRead > mask) {
      seenRead = read.load(std::memory_order_acquire);
      if (at - seenRead > mask) return false;
    }
    slots[at & mask] = element;
    written.store(at + 1, std::memory_order_release);
    return true;
  }

  bool pop(Element &element) {
    const size_t at = read.load(std::memory_order_relaxed);
    if (at == seenWritten) {
      seenWritten = written.load(std::memory_order_acquire);
      if (at == seenWritten) return false;
    }
    element = slots[at & mask];
    read.store(at + 1, std::memory_order_release);
    return true;
  }

private:
  // Two cache lines each, since the prefetcher fetches lines in pairs.
  alignas(128) std::atomic<size_t> written{0};
  size_t seenRead = 0;
  alignas(128) std::atomic<size_t> read{0};
  size_t seenWritten = 0;
  alignas(128) std::unique_ptr<Element[]> slots;
  size_t mask;
};
