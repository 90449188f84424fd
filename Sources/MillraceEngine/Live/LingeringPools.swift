internal import MillraceCore
internal import Synchronization

/// Pools of removed links whose packets are still held downstream: each is freed when its last block is back.
///
/// No blocks are taken from them any more, so a pool that has all its blocks keeps them.
final class LingeringPools: Sendable {
  private struct Entry: Sendable {
    let pool: BlockPool
    let claim: MemoryClaim
  }
  private let entries = Locked<[Entry]>([])
  private let count = Atomic<Int>(0)

  /// True while there are any. One load.
  var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

  /// Keeps a pool and its claim until all of its blocks are back.
  func add(_ pool: BlockPool, _ claim: MemoryClaim) {
    entries.withLock { $0.append(Entry(pool: pool, claim: claim)) }
    count.add(1, ordering: .relaxed)
  }

  /// Frees the pools whose blocks are back. The supervisor calls it every few milliseconds.
  func sweep() {
    guard !isEmpty else { return }
    // Freed outside the lock.
    let whole = entries.withLock { entries in
      let whole = entries.filter { $0.pool.hasAllBlocks }
      entries.removeAll { entry in whole.contains { $0.pool === entry.pool } }
      return whole
    }
    count.subtract(whole.count, ordering: .relaxed)
  }

  deinit {
    // An outstanding block points at its pool: the pool must outlive it.
    for entry in entries.withLock({ $0 }) where !entry.pool.hasAllBlocks {
      _ = unsafe Unmanaged.passRetained(entry.pool)
    }
  }
}
