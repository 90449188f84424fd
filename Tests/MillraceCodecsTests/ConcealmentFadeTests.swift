import Testing

@testable import MillraceCodecs

@Suite("the fade of concealment") struct ConcealmentFadeTests {
  @Test(
    "concealment is whole for 480 ms, falls in a straight line, and is silent after 800 ms",
    arguments: [1, 2])
  func fades(channels: Int) {
    var fade = ConcealmentFade(rate: 8_000)
    var samples = [Float](repeating: 1, count: 8_000 * channels)
    // In packets of 20 ms.
    for packet in 0..<50 {
      #expect(fade.isSilent == (packet >= 40))
      var all = samples.mutableSpan
      var part = all._mutatingExtracting(packet * 160 * channels..<(packet + 1) * 160 * channels)
      fade.apply(to: &part, channels: channels)
    }
    let gains = (0..<8_000).map { samples[$0 * channels] }
    #expect(gains[..<3_841].allSatisfy { $0 == 1 })
    #expect(abs(gains[5_120] - 0.5) < 0.001 && gains[6_400...].allSatisfy { $0 == 0 })
    #expect(zip(gains, gains.dropFirst()).allSatisfy { $0 >= $1 })
    fade.reset()
    #expect(fade.gain == 1 && !fade.isSilent)
  }
}
