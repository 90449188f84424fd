import MillraceTesting
import Testing

@Suite("fixtures") struct FixtureTests {
  @Test("a sine has the given amplitude, is the same in every channel, and continues from any position")
  func sine() {
    let whole = Fixture.sine(1000, rate: 48000, frames: 480, amplitude: 0.5)
    let halves =
      Fixture.sine(1000, rate: 48000, frames: 240, amplitude: 0.5)
      + Fixture.sine(1000, rate: 48000, frames: 240, amplitude: 0.5, from: 240)
    #expect(whole == halves)
    #expect(abs(Fixture.rms(whole) - 0.5 / 2.0.squareRoot()) < 1e-6)
    let stereo = Fixture.sine16(1000, rate: 48000, frames: 48, channels: 2)
    #expect(stereo.count == 96)
    #expect(stereo[24] == stereo[25])
    #expect(stereo[24] == 16384)
  }

  @Test("noise depends only on its seed and stays within its amplitude")
  func noise() {
    #expect(Fixture.noise(seed: 5, count: 100) == Fixture.noise(seed: 5, count: 100))
    #expect(Fixture.noise(seed: 5, count: 100) != Fixture.noise(seed: 6, count: 100))
    let noise = Fixture.noise(seed: 5, count: 100_000)
    #expect(noise.allSatisfy { abs($0) <= 0.5 })
    // Uniform noise of amplitude a has the power a * a / 3.
    #expect(abs(Fixture.rms(noise) - 0.5 / 3.0.squareRoot()) < 0.002)
  }

  @Test("the first SplitMix64 numbers match the published generator")
  func splitMix() {
    var generator = SplitMix64(seed: 1_234_567)
    #expect(generator.next() == 6_457_827_717_110_365_317)
    #expect(generator.next() == 3_203_168_211_198_807_973)
  }

  @Test("a missing recording has no path")
  func corpus() {
    #expect(Corpus.path("no such recording.wav") == nil)
    #expect(!Corpus.root.isEmpty)
  }
}
