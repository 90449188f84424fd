import MillraceCore
import Testing

@testable import MillraceRTCNodes
@testable import MillraceRTCSound

@Suite("memory of a call's sound") struct SoundMemoryTests {
  private func taken(_ pool: SoundPool, _ bytes: Int, _ packets: inout [PacketBox]) -> Int? {
    guard let block = pool.take(bytes) else { return nil }
    let count = block.byteCount
    packets.append(PacketBox(Packet(block, byteCount: 0)))
    return count
  }

  /// Packets cannot be elements of an array.
  private final class PacketBox {
    let packet: Packet
    init(_ packet: consuming Packet) { self.packet = packet }
  }

  @Test("a voice takes small blocks, larger packets large ones; a voice, too, when no small one is left")
  func blocks() {
    let pool = SoundPool(sources: 1)
    var packets: [PacketBox] = []
    let large = taken(pool, SoundPool.smallBytes + 1, &packets)
    #expect(large == SoundSource.packetBytes)
    var sizes: [Int] = []
    for _ in 0..<SoundSource.packets {
      if let size = taken(pool, SoundPool.smallBytes, &packets) { sizes.append(size) }
    }
    #expect(sizes == Array(repeating: SoundPool.smallBytes, count: SoundSource.packets))
    let next = taken(pool, 80, &packets)
    #expect(next == SoundSource.packetBytes)
    packets.removeAll()
    let again = taken(pool, 80, &packets)
    #expect(again == SoundPool.smallBytes)
    // Blocks return before their pool goes.
    withExtendedLifetime(pool) { packets.removeAll() }
  }

  /// Records of so many bytes that a queue of sound takes.
  private func room(_ use: RTCExchange.Use, _ count: Int) -> Int {
    let exchange = RTCExchange(use, events: 4_096, waker: .none)
    var records = 0
    while exchange.soundDown.hasRoom(count) {
      exchange.soundDown.put(MediaRecord.sound, count: count) { target in
        for index in 0..<count { target[index] = 0 }
      }
      records += 1
    }
    return records
  }

  @Test("the queues of sound hold two seconds of a voice in 16 KB, and 300 ms of L16 where it is used")
  func queues() {
    let voice = room(RTCExchange.Use(hearsSound: true), SoundDownHead.byteCount + 80)
    #expect((100...120).contains(voice))
    // Of sixteen sources twice as much as of eight.
    let sixteen = room(RTCExchange.Use(hearsSound: true, sources: 16), SoundDownHead.byteCount + 80)
    #expect((200...240).contains(sixteen))
    let longest = room(RTCExchange.Use(hearsSound: true), SoundDownHead.byteCount + 7_657)
    #expect(longest == 2)
    // 6 ms of 48 kHz in stereo.
    let l16 = room(RTCExchange.Use(hearsSound: true, hasL16: true), SoundDownHead.byteCount + 1_152)
    #expect(l16 * 6 >= 300)
  }

  @Test("the codec may change within a call, and change back")
  func codecs() throws {
    let probe = SoundProbe()
    let bench = try probe.upBench(.pcm(rate: 48_000, channels: 1, sample: .f32, frames: 960))
    let (pcmu, pcma) = (probe.up.codecs[1], probe.up.codecs[2])
    for codec in [pcmu, .opus, pcma, .opus] {
      probe.agree(codec)
      for _ in 0..<5 {
        bench.push([Float](repeating: 0.1, count: 960))
        try bench.run()
      }
      let sent = probe.exchange.takeSent()
      #expect(sent.count >= 4)
      #expect(sent.allSatisfy { $0.codec == codec.packed })
      #expect(sent.allSatisfy { $0.duration == codec.clockRate / 50 })
      if codec.kind != .opus { #expect(sent.allSatisfy { $0.payload.count == 160 }) }
    }
    #expect(probe.refusals.isEmpty)
    #expect(bench.close() == [])
  }
}
