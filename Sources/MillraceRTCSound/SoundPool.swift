package import MillraceCore

/// The memory of packets of sound that wait in jitter buffers. Those of a voice take small blocks, eight of which share a page, so that a
/// call touches few pages; others, and those for which no small block is left, take large ones. One thread; no heap after `init`.
package final class SoundPool {
  /// Bytes of a small block: 20 ms of Opus at up to 179 kb/s, or of a telephone's codec as 16-bit PCM.
  package static let smallBytes = 448

  private let small: BlockPool
  private let large: BlockPool

  /// Reserves the packets that so many sources keep at most, in either size.
  package init(sources: Int) {
    let count = sources * SoundSource.packets
    small = BlockPool(blockBytes: Self.smallBytes, blockCount: count)
    large = BlockPool(blockBytes: SoundSource.packetBytes, blockCount: count)
  }

  /// Takes a block for a packet of up to `SoundSource.packetBytes`; nil when there is none.
  package func take(_ bytes: Int) -> Block? {
    if bytes <= Self.smallBytes, small.hasFree { return small.take() }
    return large.take()
  }
}
