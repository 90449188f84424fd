internal import MillraceCore
internal import Synchronization

/// Pools of graphs that have stopped, kept for graphs that start: starting a session then allocates no media memory.
///
/// Only whole pools come back here; one with a block still out is left to the block's holder.
@safe
final class PoolDepot: Sendable {
  private struct Size: Hashable {
    var blockBytes: Int
    var blockCount: Int
  }
  private struct Shelf {
    var pools: [Size: [BlockPool]] = [:]
    var byteCount = 0
  }
  private let shelf = Locked(Shelf())
  /// Bytes kept at most; beyond, pools are freed.
  private let limit: Int

  init(limit: Int = 64 << 20) { self.limit = limit }

  /// A pool of exactly this size, from the shelf or new.
  func take(blockBytes: Int, blockCount: Int) -> BlockPool {
    let size = Size(blockBytes: (blockBytes + 63) & ~63, blockCount: blockCount)
    let kept = shelf.withLock { shelf -> BlockPool? in
      guard let pool = shelf.pools[size]?.popLast() else { return nil }
      shelf.byteCount -= pool.byteCount
      return pool
    }
    return kept ?? BlockPool(blockBytes: size.blockBytes, blockCount: size.blockCount)
  }

  /// Takes a pool back. Nobody may hold a block of it.
  func give(_ pool: BlockPool) {
    let size = Size(blockBytes: pool.blockBytes, blockCount: pool.blockCount)
    shelf.withLock { shelf in
      guard shelf.byteCount + pool.byteCount <= limit else { return }
      shelf.pools[size, default: []].append(pool)
      shelf.byteCount += pool.byteCount
    }
  }
}
