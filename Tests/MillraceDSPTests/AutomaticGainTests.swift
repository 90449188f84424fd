import Glibc
import MillraceTesting
import Testing

@testable import MillraceDSP

@Suite("Automatic gain")
struct AutomaticGainTests {
  /// The gains in dB after every second of a signal.
  private func gains(
    _ sound: [Float], rate: Int = 16_000, channels: Int = 1, settings: AutomaticGain.Settings = .init()
  ) -> [Double] {
    var gain = AutomaticGain(rate: rate, channels: channels, settings: settings)
    return stride(from: 0, to: sound.count, by: rate * channels).map { start in
      var part = Array(sound[start..<min(start + rate * channels, sound.count)])
      var span = part.mutableSpan
      gain.process(&span)
      return gain.decibels
    }
  }

  private func voice(seconds: Int, level: Float, rate: Int = 16_000) -> [Float] {
    Fixture.voice16(rate: rate, frames: rate * seconds).map { Float($0) / 32_768 * level }
  }

  @Test(
    "the weighting is that of BS.1770: 997 Hz at full scale is -3.01 LUFS, bass counts less and treble more")
  func weighting() {
    for rate in [16_000, 44_100, 48_000, 192_000] {
      func loudness(_ frequency: Double) -> Double {
        var filter = KWeighting(rate: rate)
        let wave = tone(frequency, rate: rate, count: rate, amplitude: 1)
        let filtered = wave.map { filter.filter(Double($0)) }.suffix(rate / 2)
        return Decibels.decibels(power: filtered.reduce(0) { $0 + $1 * $1 } / Double(rate / 2)) - 0.691
      }
      #expect(abs(loudness(997) - -3.01) < 0.1, "\(rate)")
      #expect(loudness(40) < -7.5)
      if rate > 40_000 { #expect(abs(loudness(10_000) - 0.3) < 0.3, "\(rate)") }
    }
  }

  @Test("quiet speech is raised and loud speech lowered to the same loudness")
  func target() {
    for level: Float in [0.02, 0.1, 0.9] {
      var gain = AutomaticGain(rate: 16_000, channels: 1, settings: .init(target: -20, mostGain: 40))
      var sound = voice(seconds: 20, level: level)
      var span = sound.mutableSpan
      gain.process(&span)
      let after = (gain.loudness ?? 0) + gain.decibels
      #expect(abs(after - -20) < 1.5, "level \(level): \(after)")
    }
  }

  @Test("steady noise and silence leave the gain unchanged")
  func gated() {
    #expect(gains(noise(16_000 * 20, amplitude: 0.01)).allSatisfy { $0 == 0 })
    #expect(gains([Float](repeating: 0, count: 16_000 * 5)).allSatisfy { $0 == 0 })
    let held = gains(voice(seconds: 12, level: 0.05) + noise(16_000 * 10, amplitude: 0.0005))
    #expect(held[11] > 5)
    #expect(abs(held[21] - held[12]) < 0.5)
  }

  @Test("the gain changes no faster than set, and stays within its limits")
  func limits() {
    let settings = AutomaticGain.Settings(target: -10, mostGain: 9, leastGain: -20, fall: 6, rise: 3)
    let rising = gains(voice(seconds: 10, level: 0.01), settings: settings)
    for (before, after) in zip(rising, rising.dropFirst()) { #expect(after - before <= 3.01) }
    #expect(rising.last == 9)
    let falling = gains(
      voice(seconds: 10, level: 0.9), settings: .init(target: -40, mostGain: 9, leastGain: -12, fall: 6))
    for (before, after) in zip(falling, falling.dropFirst()) { #expect(before - after <= 6.01) }
    #expect(falling.last == -12)
  }

  @Test("NaN is silenced and does not stay in the measurement")
  func bad() {
    var gain = AutomaticGain(rate: 16_000, channels: 2)
    var sound = [Float.nan, .infinity, -.infinity, 3e38] + voice(seconds: 4, level: 0.5)
    var span = sound.mutableSpan
    gain.process(&span)
    #expect(sound[0] == 0)
    #expect(gain.decibels.isFinite && (gain.loudness ?? 0).isFinite)
    #expect(sound.dropFirst(4).allSatisfy { $0.isFinite })
  }

  @Test("measuring and applying the gain allocate nothing")
  func heap() {
    var gain = AutomaticGain(rate: 16_000, channels: 2)
    var sound = voice(seconds: 2, level: 0.1)
    #expect(
      heapRequests {
        var span = sound.mutableSpan
        gain.process(&span)
      } == 0)
  }
}
