import MillraceCore
import MillraceTesting
import Testing

@testable import MillraceRTCNodes
@testable import MillraceRTCSound

@Suite("received Opus that is passed on") struct SoundRelayTests {
  private let shape = OutputShape(
    .opus(rate: 48_000, channels: 1), packetDuration: nil, packetBytes: 1_500, burst: 0)

  @Test("packets pass unchanged and in order, with positions from 0")
  func order() throws {
    var arrivals = onTime(try SoundProbe.tone(2))
    for index in stride(from: 10, to: 90, by: 10) { arrivals[index].time += 32 }
    let sent = arrivals.map(\.packet)
    let probe = SoundProbe(shape)
    probe.down.delays = Nanoseconds.milliseconds(60)...Nanoseconds.milliseconds(200)
    let heard = try probe.hear(arrivals)
    #expect(heard.map(\.bytes) == sent.map(\.payload))
    #expect(heard.map(\.position) == sent.indices.map { Int64($0) * 960 })
    #expect(heard.allSatisfy { $0.duration == 960 && $0.flags == [] })
    #expect(probe.heard.reordered == 8)
  }

  @Test("what is missing is marked as lost, a pause as silence")
  func marks() throws {
    var packets = try SoundProbe.tone(2)
    for index in packets.indices.dropFirst(60) { packets[index].timestamp += 19_200 }
    let kept = onTime(packets).enumerated().filter { $0.offset != 30 }.map(\.element)
    let probe = SoundProbe(shape)
    let heard = try probe.hear(kept)
    let lost = heard.filter { $0.flags.contains(.lost) }
    #expect(lost.map(\.position) == [30 * 960] && lost.map(\.duration) == [960])
    let behind = heard.filter { $0.flags.contains(.silence) }
    #expect(behind.map(\.position) == [60 * 960 + 19_200])
    #expect(probe.heard.lost == .milliseconds(20))
  }

  @Test("a source that begins again continues behind what was played")
  func restart() throws {
    var packets = try SoundProbe.tone(2)
    for index in packets.indices.dropFirst(50) { packets[index].timestamp += 1 << 40 }
    packets[50].restarts = true
    let times: [(packet: SoundPacket, time: Double)] = packets.enumerated().map {
      ($1, Double($0) * 20 + 5)
    }
    let heard = try SoundProbe(shape).hear(times)
    #expect(zip(heard, heard.dropFirst()).allSatisfy { $1.position >= $0.position + Int64($0.duration) })
    #expect(heard.filter { $0.flags.contains(.discontinuity) }.count == 1)
  }

  @Test("only the first source is passed on, until it has ended")
  func sources() throws {
    let packets = try SoundProbe.tone(1)
    let probe = SoundProbe(shape)
    let bench = try probe.downBench()
    var other = packets[0]
    other.source = 99
    probe.exchange.deliver(packets[0], at: 0)
    probe.exchange.deliver(other, at: 0)
    try bench.advance(by: .milliseconds(200))
    #expect(probe.heard.unheard == 1 && probe.heard.packets == 1)
    probe.exchange.deliver(packets[0], at: bench.now, kind: MediaRecord.soundEnd)
    probe.exchange.deliver(other, at: bench.now)
    try bench.advance(by: .milliseconds(200))
    #expect(probe.heard.packets == 2)
    #expect(bench.packets().map(\.position) == [0, 960])
    #expect(bench.close() == [])
  }

  @Test("packets of another codec, broken ones and those that are too large are counted, not passed on")
  func refused() throws {
    let probe = SoundProbe(shape)
    let good = try SoundProbe.tone(1)[0]
    var arrivals: [(packet: SoundPacket, time: Double)] = []
    let bad: [(codec: SoundCodec, payload: [UInt8])] = [
      (SoundCodec(kind: .pcmu, clockRate: 8_000, channels: 1), Array(repeating: 0xFF, count: 160)),
      (SoundCodec.opus, []), (SoundCodec.opus, [0xFB, 63, 0]),
      (SoundCodec.opus, Array(repeating: 0xF9, count: 1_501)),
    ]
    for (codec, payload) in bad {
      var packet = good
      packet.codec = codec.packed
      packet.payload = payload
      arrivals.append((packet, 1))
    }
    let heard = try probe.hear(arrivals)
    #expect(heard.isEmpty)
    #expect(probe.heard.unheard == 1 && probe.heard.damaged == 3)
  }

  @Test(
    "passing on allocates nothing",
    .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
  func heap() throws {
    let packets = try SoundProbe.tone(1)
    let probe = SoundProbe(shape)
    let bench = try probe.downBench()
    for index in 0..<1_000 {
      if index == 100 { bench.resetHeapRequests() }
      var packet = packets[10 + index % 30]
      packet.sequence = Int64(index)
      packet.timestamp = Int64(index) * 960
      if index % 17 > 0 { probe.exchange.deliver(packet, at: bench.now) }
      try bench.advance(to: .milliseconds(Int64(index) * 20))
      if index % 50 == 0 { _ = bench.packets() }
    }
    #expect(bench.heapRequests == 0)
    _ = bench.packets()
    #expect(bench.close() == [])
  }
}
