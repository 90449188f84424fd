internal import Foundation

extension Fixture {
  /// A synthetic voice that speech detectors accept: pulses of a falling pitch through two moving resonances, in syllables of 220 ms,
  /// 100 ms apart, with a pause of 420 ms after every fourth, over faint noise. It nearly reaches full scale and is the same on every
  /// machine.
  public static func voice16(rate: Int, frames: Int) -> [Int16] {
    var seed: UInt32 = 1
    var phase = 0
    var (low, high) = (Resonance(width: 80), Resonance(width: 120))
    return (0..<frames).map { index in
      seed = seed &* 1_664_525 &+ 1_013_904_223
      let noise = Int(seed >> 16) % 65 - 32
      let time = index * 1_000 / rate
      phase += 1
      var pulse = 0.0
      if phase >= rate / 130 + time % 1_600 * rate / 160_000 {
        phase = 0
        if time % 320 < 220 && time % 1_600 < 1_200 { pulse = 6_000 }
      }
      let sound =
        low.filter(pulse, frequency: Double(500 + time % 320), rate: rate)
        + high.filter(pulse, frequency: Double(1_500 - time % 320 * 2), rate: rate) / 2
      return Int16(max(-32_768, min(32_767, Int((sound + 0.5).rounded(.down)) + noise)))
    }
  }

  /// A resonance with a bandwidth in Hz.
  private struct Resonance {
    let width: Double
    private var last = 0.0
    private var before = 0.0

    init(width: Double) { self.width = width }

    mutating func filter(_ input: Double, frequency: Double, rate: Int) -> Double {
      let radius = exp(-.pi * width / Double(rate))
      let output =
        input + 2 * radius * cos(2 * .pi * frequency / Double(rate)) * last - radius * radius * before
      (before, last) = (last, output)
      return output
    }
  }
}
