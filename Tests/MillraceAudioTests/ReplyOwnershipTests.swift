import MillraceAudio
import MillraceCore
import MillraceTesting
import Testing

/// Which reply a packet belongs to, when a node has the user's audio on one input and the bot's on another.
@Suite("Reply ownership")
struct ReplyOwnershipTests {
  /// A reproducible sequence of numbers.
  private struct Dice: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state
    }
  }

  private static let frames = 160
  private static let step = Nanoseconds.samples(Int64(frames), rate: 16_000)

  /// Pushes two seconds of both inputs, each at its own pace, with occasional interruptions. Returns the output packets.
  private func run(_ bench: NodeBench, mine: String, bots: String, seed: UInt64) throws -> [CapturedPacket] {
    var dice = Dice(state: seed)
    let voice = [Int16](repeating: 900, count: Self.frames)
    let reply = [Int16](repeating: 4_000, count: Self.frames)
    var replied = 0
    var packets: [CapturedPacket] = []
    for number in 0..<200 {
      let time = Int64(number) * Self.step
      bench.push(voice, to: mine, timestamp: time)
      // The bot's audio is ahead or behind, and arrives in bursts.
      while replied < number + 20, Bool.random(using: &dice) {
        bench.setGeneration(bench.generation, of: bots)
        bench.push(reply, to: bots, timestamp: Int64(replied) * Self.step)
        replied += 1
      }
      try bench.advance(to: time + .random(in: 0..<Self.step, using: &dice))
      // The node's output is still queued when the user barges in.
      if Int.random(in: 0..<12, using: &dice) == 0 {
        bench.hold()
        try bench.advance(to: time + Self.step - 1)
        bench.interrupt()
        bench.release()
      }
      packets += bench.packets()
    }
    try bench.finish()
    return packets + bench.packets()
  }

  @Test("no interruption of a reply in the reference affects the user's audio", arguments: 1...20)
  func reference(seed: UInt64) throws {
    let input = shape(frames: Self.frames)
    let bench = try NodeBench(AudioEchoCancel.self, inputs: ["near": input, "reference": input])
    let packets = try run(bench, mine: "near", bots: "reference", seed: seed)
    #expect(packets.allSatisfy { $0.generation == 0 })
    #expect(packets.reduce(0) { $0 + $1.duration } == 200 * Self.frames)
    #expect(bench.linkCounts()?.droppedStale == 0)
    #expect(bench.close() == [])
  }

  @Test("a reply mixed with the user's audio cancels none of the latter", arguments: 1...20)
  func mix(seed: UInt64) throws {
    let input = shape(frames: Self.frames)
    let bench = try NodeBench(AudioMix.self, inputs: ["in1": input, "in2": input])
    let packets = try run(bench, mine: "in1", bots: "in2", seed: seed)
    // Packets with the reply alone belong to it; the user's part is always there.
    let kept = packets.filter { $0.position < Int64(200 * Self.frames) }
    #expect(kept.reduce(0) { $0 + $1.duration } >= 200 * Self.frames)
    for packet in kept where packet.generation != 0 { #expect(packet.int16.allSatisfy { $0 != 900 }) }
    #expect(bench.close() == [])
  }
}
