import MillraceCore
import Testing

@Suite("packet") struct PacketTests {
  @Test("a packet is 32 bytes, half a cache line")
  func size() {
    #expect(MemoryLayout<Packet>.stride == 32)
  }

  @Test("a shared packet has the same metadata and bytes, and neither may be written until one is gone")
  func sharing() {
    let pool = BlockPool(blockBytes: 64, blockCount: 1)
    var packet = Packet(
      pool.take()!, byteCount: 6, timestamp: 42, format: 3, generation: 9, flags: [.key, .discontinuity])
    packet.position = -7
    packet.duration = 3
    packet.trimStart = 1
    packet.trimEnd = 2
    var samples = packet.mutableSamples(of: Int16.self)
    for index in samples.indices { samples[index] = Int16(index) }
    let other = packet.share()
    #expect(other.timestamp == 42)
    #expect(other.byteCount == 6)
    #expect(other.format == 3)
    #expect(other.generation == 9)
    #expect(other.flags == [.key, .discontinuity])
    #expect(other.position == -7)
    #expect(other.duration == 3)
    #expect(other.trimStart == 1)
    #expect(other.trimEnd == 2)
    let view = other.samples(of: Int16.self)
    let content = [view[0], view[1], view[2]]
    #expect(content == [0, 1, 2])
    var unique = packet.block.isUnique
    #expect(!unique)
    _ = consume packet
    unique = other.block.isUnique
    #expect(unique)
  }

  @Test("an incomplete last element is left out of the view")
  func remainder() {
    let pool = BlockPool(blockBytes: 64, blockCount: 1)
    let packet = Packet(pool.take()!, byteCount: 7)
    let counts = [packet.samples(of: Int16.self).count, packet.samples(of: Float.self).count]
    #expect(counts == [3, 1])
  }

  @Test("copyMetadata copies time, position and flags, but not bytes and format")
  func describing() {
    let pool = BlockPool(blockBytes: 64, blockCount: 2)
    var model = Packet(pool.take()!, byteCount: 8, timestamp: 5, format: 1, generation: 2, flags: .lost)
    model.position = 100
    model.duration = 4
    model.trimStart = 6
    model.trimEnd = 7
    var packet = Packet(pool.take()!, byteCount: 2, format: 8)
    packet.copyMetadata(from: model)
    #expect(packet.timestamp == 5)
    #expect(packet.generation == 2)
    #expect(packet.flags == .lost)
    #expect(packet.position == 100)
    #expect(packet.duration == 4)
    #expect(packet.trimStart == 6)
    #expect(packet.trimEnd == 7)
    #expect(packet.byteCount == 2)
    #expect(packet.format == 8)
  }

  @Test("a packet may use all or nothing of its block, but no more")
  func length() async {
    let pool = BlockPool(blockBytes: 64, blockCount: 1)
    var packet = Packet(pool.take()!, byteCount: 64)
    packet.setByteCount(0)
    let count = packet.samples(of: UInt8.self).count
    #expect(count == 0)
    await #expect(processExitsWith: .failure) {
      _ = Packet(BlockPool(blockBytes: 64, blockCount: 1).take()!, byteCount: 65)
    }
    await #expect(processExitsWith: .failure) {
      let pool = BlockPool(blockBytes: 64, blockCount: 1)
      var packet = Packet(pool.take()!, byteCount: 1)
      packet.setByteCount(65)
    }
  }

  @Test("writing the bytes of a shared packet traps")
  func sharedWrite() async {
    await #expect(processExitsWith: .failure) {
      let pool = BlockPool(blockBytes: 64, blockCount: 1)
      var packet = Packet(pool.take()!, byteCount: 2)
      let other = packet.share()
      var view = packet.mutableSamples(of: Int16.self)
      view[0] = 1
      _ = consume other
    }
  }

  @Test("setting the position of a shared packet traps, because it would change for every holder")
  func sharedMarks() async {
    await #expect(processExitsWith: .failure) {
      let pool = BlockPool(blockBytes: 64, blockCount: 1)
      var packet = Packet(pool.take()!, byteCount: 2)
      let other = packet.share()
      packet.position = 5
      _ = consume other
    }
  }
}
