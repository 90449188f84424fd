import Glibc
import MillraceDSP
import MillraceTesting
import Testing

/// The energy detector and the pause hint, both of which use levels of the speech band.
@Suite("Speech detection by level")
struct SpeechLevelTests {
  /// Levels of every whole block.
  private func levels(_ samples: [Float], rate: Int = 16_000) -> [Double] {
    var band = SpeechBand(rate: rate)
    let block = band.blockSamples
    return stride(from: 0, through: samples.count - block, by: block).map {
      band.level(samples.span.extracting($0..<$0 + block))
    }
  }

  @Test("the band passes speech, and neither hum nor hiss", arguments: [16_000, 8_000])
  func band(rate: Int) {
    func level(_ frequency: Double) -> Double {
      levels(tone(frequency, rate: rate, count: rate, amplitude: 1), rate: rate).suffix(20).max() ?? 0
    }
    #expect(abs(level(1_000) - -3) < 0.5)
    #expect(level(50) < -23)
    if rate == 16_000 { #expect(level(7_000) < -20) }
    #expect(levels([Float](repeating: 1, count: rate), rate: rate).suffix(20).allSatisfy { $0 < -100 })
    #expect(
      levels([.nan, .infinity] + tone(1_000, rate: rate, count: rate), rate: rate).allSatisfy { $0.isFinite })
  }

  @Test("speech above the noise is detected from its first 24 ms until shortly after its end")
  func energy() {
    let voice = Fixture.voice16(rate: 16_000, frames: 16_000 * 3).map { Float($0) / 32_768 }
    var detector = EnergyDetector(every: 8)
    let quiet = noise(16_000, amplitude: 0.001)
    let heard = levels(quiet + voice + quiet).map { detector.probability($0) }
    #expect(heard[..<124].allSatisfy { $0 < 0.3 })
    #expect(heard[125..<128].contains { $0 > 0.9 })
    #expect(heard[125..<275].count { $0 > 0.5 } > 100)
    #expect(heard.suffix(100).allSatisfy { $0 < 0.3 })
  }

  @Test("steady noise becomes the floor, loud or quiet; very quiet sound is never speech")
  func floor() {
    for amplitude in [1.0, 0.1, 0.01] {
      var detector = EnergyDetector(every: 8)
      let quiet = [Float](repeating: 0, count: 8_000)
      let heard = levels(quiet + noise(16_000 * 25, amplitude: amplitude)).map { detector.probability($0) }
      #expect(heard.suffix(200).allSatisfy { $0 < 0.3 }, "\(amplitude)")
    }
    var detector = EnergyDetector(every: 8)
    let faint = tone(1_000, rate: 16_000, count: 16_000, amplitude: 0.0005)
    #expect(levels([Float](repeating: 0, count: 8_000) + faint).allSatisfy { detector.probability($0) == 0 })
  }

  @Test("a pause is detected once, 40 to 80 ms after the talker fell silent")
  func hint() {
    var hint = PauseHint(every: 8)
    let quiet = noise(16_000, amplitude: 0.001)
    let voice = tone(400, rate: 16_000, count: 16_000, amplitude: 0.3)
    let heard = levels(quiet + voice + quiet + voice + quiet)
    let noticed = heard.indices.filter { hint.take(heard[$0]) }
    #expect(noticed.count == 2)
    for (block, silence) in zip(noticed, [250, 500]) {
      let late = (block + 1 - silence) * 8
      #expect(late >= 40 && late <= 80, "\(late) ms")
    }
  }

  @Test("without speech before it no pause is detected")
  func noHint() {
    var hint = PauseHint(every: 8)
    #expect(levels(noise(16_000 * 5, amplitude: 0.01)).allSatisfy { !hint.take($0) })
  }
}
