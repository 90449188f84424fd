internal import Synchronization

/// Strands that other threads made ready for one worker: a lock-free stack that the worker empties in one step.
///
/// A strand is in at most one inbox or queue at a time: only the thread that set its `scheduled` bit may push it. The inbox does
/// not retain it; a strand lives until its worker has retired it, and then its `closed` bit keeps it out.
@safe
struct Inbox: ~Copyable {
  private let head = unsafe Atomic<Unmanaged<Strand>?>(nil)

  /// Pushes a strand. Any thread; no lock. True when the inbox was empty before.
  borrowing func push(_ strand: Strand) -> Bool {
    let entry = unsafe Unmanaged.passUnretained(strand)
    var first = unsafe head.load(ordering: .relaxed)
    while true {
      unsafe strand.following = unsafe first
      let (exchanged, seen) = unsafe head.weakCompareExchange(
        expected: first, desired: entry, successOrdering: .sequentiallyConsistent, failureOrdering: .relaxed)
      if exchanged { return unsafe first == nil }
      unsafe first = unsafe seen
    }
  }

  /// True when it holds no strand.
  var isEmpty: Bool { unsafe head.load(ordering: .sequentiallyConsistent) == nil }

  /// Moves all strands to the end of a queue, oldest first. Only the worker.
  borrowing func empty(into queue: inout ReadyQueue) {
    guard unsafe head.load(ordering: .relaxed) != nil else { return }
    var newestFirst = unsafe head.exchange(nil, ordering: .acquiring)
    var oldestFirst: Unmanaged<Strand>?
    while let entry = unsafe newestFirst {
      unsafe newestFirst = unsafe entry._withUnsafeGuaranteedRef { unsafe $0.following }
      unsafe entry._withUnsafeGuaranteedRef { unsafe $0.following = unsafe oldestFirst }
      unsafe oldestFirst = unsafe entry
    }
    while let entry = unsafe oldestFirst {
      unsafe oldestFirst = unsafe entry._withUnsafeGuaranteedRef { unsafe $0.following }
      unsafe queue.push(entry)
    }
  }
}

/// Strands that are ready on one worker, first in first out. Only the worker uses it.
@safe
struct ReadyQueue: ~Copyable {
  private var first: Unmanaged<Strand>?
  private var last: Unmanaged<Strand>?

  init() {
    unsafe first = nil
    unsafe last = nil
  }

  var isEmpty: Bool { unsafe first == nil }

  mutating func push(_ entry: Unmanaged<Strand>) {
    unsafe entry._withUnsafeGuaranteedRef { unsafe $0.following = nil }
    if let last = unsafe last {
      unsafe last._withUnsafeGuaranteedRef { unsafe $0.following = unsafe entry }
    } else {
      unsafe first = unsafe entry
    }
    unsafe last = unsafe entry
  }

  mutating func pop() -> Unmanaged<Strand>? {
    guard let entry = unsafe first else { return nil }
    unsafe first = unsafe entry._withUnsafeGuaranteedRef { unsafe $0.following }
    if unsafe first == nil { unsafe last = nil }
    return unsafe entry
  }
}
