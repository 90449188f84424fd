import MillraceDSP
import MillraceTesting
import Testing

@Suite("Limiter")
struct LimiterTests {
  /// The output for interleaved audio in pieces.
  private func limited(
    _ samples: [Float], channels: Int = 1, ceiling: Double = 0.5, lookAhead: Int = 80, release: Int = 800,
    piece: Int = 160
  ) -> [Float] {
    var limiter = Limiter(channels: channels, ceiling: ceiling, lookAhead: lookAhead, release: release)
    var output = samples
    for range in pieces(of: samples.count / channels, length: piece) {
      var span = output.mutableSpan
      var part = span._mutatingExtracting(range.lowerBound * channels..<range.upperBound * channels)
      limiter.process(&part)
    }
    return output
  }

  @Test("no sample exceeds the ceiling, whatever the input", arguments: [1, 2, 5], [1, 7, 80])
  func never(channels: Int, lookAhead: Int) {
    let square = (0..<2_000).map { Float($0 / 100 % 2 == 0 ? 3 : -3) }
    let impulses = (0..<2_000).map { Float($0 % 97 == 0 ? 100 : 0.1) }
    let rising = (0..<2_000).map { Float($0) / 500 * ($0 % 2 == 0 ? 1 : -1) }
    for sound in [noise(6_000, amplitude: 4), square, impulses, rising] {
      let whole = Array(sound.prefix(sound.count / channels * channels))
      for ceiling in [0.5, 0.891_250_938_133_745_6, 1] {
        let output = limited(whole, channels: channels, ceiling: ceiling, lookAhead: lookAhead)
        #expect(output.allSatisfy { Double($0.magnitude) <= ceiling })
      }
    }
  }

  @Test("audio below the ceiling passes bit for bit, delayed by the look-ahead")
  func transparent() {
    let sound = noise(4_000, amplitude: 0.49)
    let output = limited(sound)
    #expect(output.prefix(80).allSatisfy { $0 == 0 })
    #expect(Array(output.dropFirst(80)) == Array(sound.dropLast(80)))
  }

  @Test("the gain falls in a straight line before a peak, and recovers to exactly 1")
  func shape() {
    var sound = [Float](repeating: 0.1, count: 40_000)
    sound[1_000] = 1
    let output = limited(sound)
    func gain(_ frame: Int) -> Float { output[frame + 80] / sound[frame] }
    #expect(gain(900) == 1)
    #expect(abs(gain(960) - 0.75) < 0.02)
    #expect(gain(1_000) <= 0.5 && gain(1_000) > 0.49)
    #expect(gain(1_400) > gain(1_100) && gain(1_400) < 1)
    for frame in 920..<1_000 { #expect(gain(frame + 1) <= gain(frame) + 1e-6) }
    #expect(gain(39_000) == 1)
  }

  @Test("the result does not depend on how the stream is chunked", arguments: [1, 7, 53, 0])
  func cut(piece: Int) {
    let sound = noise(8_000, amplitude: 2)
    #expect(limited(sound, channels: 2, piece: piece) == limited(sound, channels: 2, piece: 4_000))
  }

  @Test("all channels of a frame get the same gain")
  func channels() {
    var sound = [Float](repeating: 0.1, count: 4_000)
    sound[2_000] = 2
    let output = limited(sound, channels: 2)
    for frame in stride(from: 200, to: 3_998, by: 2) where frame + 160 != 2_160 {
      #expect(output[frame] == output[frame + 1] || frame == 2_160)
    }
  }

  @Test("NaN becomes silence, infinity the ceiling, and neither leaves a trace")
  func bad() {
    var sound = [Float](repeating: 0.25, count: 60_000)
    (sound[500], sound[700], sound[900]) = (.nan, .infinity, -.greatestFiniteMagnitude)
    let output = limited(sound)
    #expect(output.allSatisfy { $0.isFinite && $0.magnitude <= 0.5 })
    #expect(output[580] == 0)
    #expect(output[59_999] == 0.25)
  }

  @Test("a reset limiter behaves like a new one")
  func reset() {
    var limiter = Limiter(channels: 1, ceiling: 0.5, lookAhead: 20, release: 100)
    func run() -> [Float] {
      var output = noise(500, amplitude: 2)
      var span = output.mutableSpan
      limiter.process(&span)
      return output
    }
    let first = run()
    limiter.reset()
    #expect(run() == first)
  }

  @Test("limiting allocates nothing")
  func heap() {
    var limiter = Limiter(channels: 2, ceiling: 0.5, lookAhead: 240, release: 4_800)
    var sound = noise(960, amplitude: 2)
    #expect(
      heapRequests {
        var span = sound.mutableSpan
        limiter.process(&span)
      } == 0)
  }
}
