import Glibc

/// Finds a key's two tones in steps of 20 ms, by Goertzel's algorithm: a resonator for each of eight frequencies.
struct KeyTones {
  private var (feedback, newer, older) = (SIMD8<Double>.zero, SIMD8<Double>.zero, SIMD8<Double>.zero)
  private var (energy, count, length) = (0.0, 0.0, 0.0)

  init(rate: Int) {
    length = Double(rate / 50)
    // Rows, then columns, in Hz (ITU-T Q.23).
    for (index, frequency) in [697.0, 770, 852, 941, 1_209, 1_336, 1_477, 1_633].enumerated() {
      feedback[index] = 2 * cos(2 * .pi * frequency / Double(rate))
    }
  }

  /// A step is complete: ask for its key, then restart.
  var isStep: Bool { count == length }

  mutating func restart() { (newer, older, energy, count) = (.zero, .zero, 0, 0) }

  mutating func add(_ sample: Double) {
    (newer, older) = (sample + feedback * newer - older, newer)
    (energy, count) = (energy + sample * sample, count + 1)
  }

  /// 4 * row + column of the key, whose tones have at least `threshold` dBFS each; nil without one.
  func key(threshold: Double) -> Int? {
    // Mean power at each frequency.
    let power = (newer * newer + older * older - feedback * newer * older) * (2 / (count * count))
    let (row, column) = (power.lowHalf.max(), power.highHalf.max())
    // At most 8 dB apart (Q.24). 40 % of the sound is what tones that are 1.5 % off (Q.24) still have here.
    guard min(row, column) >= pow(10, threshold / 10), max(row, column) <= 6.3 * min(row, column),
      row + column >= 0.4 * energy / count
    else { return nil }
    var key = 0
    while power[key / 4] != row || power[4 + key % 4] != column { key += 1 }
    return key
  }
}
