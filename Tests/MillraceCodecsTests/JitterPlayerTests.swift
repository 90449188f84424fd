import MillraceCore
import MillraceTesting
import Testing

@testable import MillraceCodecs

private let rate = 16_000

/// Plays packets of 20 ms of a tone on a clock of its own.
@Suite("jitter player") struct JitterPlayerTests {
  private let pool = BlockPool(blockBytes: 1_920, blockCount: JitterBuffer.capacity + 2)

  private func makePacket(_ index: Int, silence: Bool = false) -> Packet? {
    guard let block = pool.take() else { return nil }
    var packet = Packet(block, byteCount: 640)
    let samples = Fixture.sine16(400, rate: rate, frames: 320, from: index * 320)
    var target = packet.mutableSamples(of: Int16.self)
    for place in samples.indices { target[place] = samples[place] }
    packet.position = Int64(index) * 320
    packet.duration = 320
    if silence { packet.flags.insert(.silence) }
    return packet
  }

  private func makePlayer(fades: Bool = true) throws -> JitterPlayer {
    try JitterPlayer(
      .pcm(.s16, longest: 1_920), rate: rate, channels: 1, JitterPlayer.Settings(fades: fades))
  }

  /// The level of each 10 ms until `end` milliseconds, with packets that arrive as soon as they were captured.
  private func play(
    _ player: inout JitterPlayer, until end: Int, _ arrives: (Int) -> Bool,
    isSilence: (Int) -> Bool = { _ in false }
  ) -> [Double] {
    var levels: [Double] = []
    var hop = [Float](repeating: 0, count: 160)
    for time in stride(from: 0, to: end, by: 10) {
      let now = Nanoseconds.milliseconds(Int64(time))
      if time % 20 == 0, arrives(time / 20), let packet = makePacket(time / 20, silence: isSilence(time / 20))
      {
        _ = player.admit(packet, arrival: now)
      }
      guard let due = player.due, due <= now else { continue }
      var target = hop.mutableSpan
      _ = player.step(at: now, into: &target)
      levels.append(Fixture.rms(hop))
    }
    return levels
  }

  @Test(
    "a source that stops fades to silence, and is loud at once when it comes back", arguments: [true, false])
  func fade(fades: Bool) throws {
    var player = try makePlayer(fades: fades)
    let levels = play(&player, until: 3_000) { $0 < 50 || $0 >= 125 }
    #expect(levels[60] > 0.3)
    // 2.3 s after the start, 1.3 s after the last packet.
    #expect((levels[220] == 0) == fades)
    #expect(levels.suffix(10).allSatisfy { $0 > 0.3 })
    player.clear()
    #expect(pool.hasAllBlocks)
  }

  @Test("short losses are concealed at full level")
  func shortLoss() throws {
    var player = try makePlayer()
    let levels = play(&player, until: 2_000) { $0 % 20 != 7 }
    #expect(levels.allSatisfy { $0 > 0.1 })
    let counts = player.counts
    #expect(counts.lost + counts.waited > 0 && counts.paused == 0)
    player.clear()
  }

  @Test("a pause that the sender marks is no loss")
  func pause() throws {
    var player = try makePlayer()
    _ = play(&player, until: 2_000, { $0 < 40 || $0 >= 44 }, isSilence: { $0 == 44 })
    let counts = player.counts
    #expect(counts.lost == 0)
    player.clear()
  }

  @Test("the time at which a position plays is that at which it is played")
  func playTime() throws {
    var player = try makePlayer()
    _ = play(&player, until: 1_000) { _ in true }
    let (next, time) = (player.due, player.playTime(of: 16_000))
    let (due, told) = (try #require(next), try #require(time))
    let delay = player.delay(at: due)
    // The fastest packet needs no time: the delay is all there is.
    #expect(abs(told - .milliseconds(1_000) - delay) <= 1_000_000)
    player.clear()
  }

  @Test("before the first packet nothing is due, and nothing is known")
  func empty() throws {
    let player = try makePlayer()
    let (due, time, hasSound) = (player.due, player.playTime(of: 0), player.hasSound)
    #expect(due == nil && time == nil && !hasSound)
  }

  @Test("packets beyond the capacity return to their pool")
  func overflow() throws {
    var player = try makePlayer()
    for index in 0..<500 {
      if let packet = makePacket(index) { _ = player.admit(packet, arrival: 0) }
    }
    let count = player.packetCount
    #expect(count == JitterBuffer.capacity)
    player.clear()
    #expect(pool.hasAllBlocks)
  }
}
