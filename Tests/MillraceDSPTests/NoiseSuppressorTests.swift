import Glibc
import MillraceDSP
import MillraceTesting
import Testing

@Suite("Noise suppressor")
struct NoiseSuppressorTests {
  private func cleaned(_ samples: [Float], rate: Int = 16_000, floor: Double = -25, piece: Int = 160)
    -> [Float]
  {
    var suppressor = NoiseSuppressor(rate: rate, settings: .init(floor: floor))
    var output = samples
    for range in pieces(of: samples.count, length: piece) {
      var span = output.mutableSpan
      var part = span._mutatingExtracting(range)
      suppressor.process(&part)
    }
    return output
  }

  private func voice(_ rate: Int, seconds: Int) -> [Float] {
    Fixture.voice16(rate: rate, frames: rate * seconds).map { Float($0) / 32_768 }
  }

  @Test("steady noise is attenuated, and no further than the floor", arguments: [(-10.0, -8.0), (-25, -12)])
  func noiseAlone(floor: Double, least: Double) {
    let sound = noise(16_000 * 6, amplitude: 0.05)
    let after = cleaned(sound, floor: floor)
    let drop = rms(after[48_000...]) - rms(sound[48_000...])
    #expect(drop < least && drop > floor - 0.5, "\(drop) dB")
  }

  @Test("speech in noise gains signal-to-noise ratio", arguments: [8_000, 16_000, 48_000])
  func voiceInNoise(rate: Int) {
    let voice = [Float](repeating: 0, count: rate) + voice(rate, seconds: 4)
    let noise = noise(voice.count, amplitude: 0.1)
    let output = cleaned(zip(voice, noise).map(+), rate: rate)
    let late = NoiseSuppressor.latency(rate: rate)
    func ratio(_ sound: ArraySlice<Float>) -> Double {
      let wanted = voice[rate..<rate * 4]
      return rms(wanted) - rms(ArraySlice(zip(wanted, sound).map { $1 - $0 }))
    }
    let before = ratio(zip(voice, noise).map(+)[rate..<rate * 4])
    let after = ratio(output[rate + late..<rate * 4 + late])
    #expect(after > before + 3, "\(before) dB, then \(after) dB")
  }

  @Test("clean speech passes unchanged, delayed by the stated latency", arguments: [8_000, 16_000, 48_000])
  func cleanVoice(rate: Int) {
    let sound = [Float](repeating: 0, count: rate) + voice(rate, seconds: 3)
    let output = cleaned(sound, rate: rate)
    let late = NoiseSuppressor.latency(rate: rate)
    // Without the first half second: what comes first counts as noise until it pauses.
    let wanted = sound[rate * 3 / 2..<rate * 3]
    let difference = zip(wanted, output[(rate * 3 / 2 + late)...]).map { $1 - $0 }
    #expect(rms(wanted) - rms(ArraySlice(difference)) > 12)
  }

  @Test("the result does not depend on how the stream is chunked", arguments: [1, 7, 333, 0])
  func cut(piece: Int) {
    let sound = noise(16_000, amplitude: 0.2)
    #expect(cleaned(sound, piece: piece) == cleaned(sound, piece: 16_000))
  }

  @Test("after a reset it behaves like a new one")
  func reset() {
    var suppressor = NoiseSuppressor(rate: 16_000)
    func run() -> [Float] {
      var output = noise(8_000)
      var span = output.mutableSpan
      suppressor.process(&span)
      return output
    }
    let first = run()
    suppressor.reset()
    #expect(run() == first)
  }

  @Test("silence stays silence; NaN and infinities affect nothing that follows")
  func bad() {
    #expect(cleaned([Float](repeating: 0, count: 8_000)).allSatisfy { $0 == 0 })
    var sound = noise(16_000, amplitude: 0.1)
    (sound[300], sound[301], sound[302]) = (.nan, .infinity, -.infinity)
    #expect(cleaned(sound).allSatisfy { $0.isFinite && $0.magnitude <= 16 })
  }

  @Test("suppressing allocates nothing")
  func heap() {
    var suppressor = NoiseSuppressor(rate: 16_000)
    var sound = noise(1_600)
    #expect(
      heapRequests {
        var span = sound.mutableSpan
        suppressor.process(&span)
      } == 0)
  }
}
