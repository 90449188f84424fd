import Glibc

/// Finds the two tones of a telephone key in a step of sound, by Goertzel's algorithm: eight resonators, one a frequency.
struct KeyTones {
  /// Rows of four, as on the keypad.
  static let keys = Array("123A456B789C*0#D".utf8)
  /// Rows, then columns, in Hz (ITU-T Q.23).
  static let frequencies = SIMD8<Double>(697, 770, 852, 941, 1_209, 1_336, 1_477, 1_633)
  /// How much stronger one tone may be, as a ratio of powers: 8 dB (ITU-T Q.24).
  static let twist = 6.3
  /// Least share of the sound that is in the two tones. Chosen: a tone 1.5 % off (Q.24) still has 42 %; speech rarely reaches it.
  static let purity = 0.4

  private let feedback: SIMD8<Double>
  private let stepLength: Int
  private var (newer, older) = (SIMD8<Double>.zero, SIMD8<Double>.zero)
  private var energy = 0.0
  private var count = 0

  init(rate: Int) {
    stepLength = rate / 50
    var feedback = SIMD8<Double>.zero
    for index in 0..<8 { feedback[index] = 2 * cos(2 * .pi * Self.frequencies[index] / Double(rate)) }
    self.feedback = feedback
  }

  /// True when a step is complete: ask for its key, then restart.
  var isStep: Bool { count == stepLength }

  mutating func add(_ sample: Int16) {
    let value = Double(sample) / 32_768
    (newer, older) = (value + feedback * newer - older, newer)
    energy += value * value
    count += 1
  }

  mutating func restart() { (newer, older, energy, count) = (.zero, .zero, 0, 0) }

  /// The index of the key whose tones make up the sound, each at least as loud as `threshold` in dBFS; nil: none.
  func key(threshold: Double) -> Int? {
    // Mean power of the part of the sound at each frequency: |X|² · 2 / n².
    let length = Double(count)
    let power = (newer * newer + older * older - feedback * newer * older) * (2 / (length * length))
    let (row, column) = (power.lowHalf.max(), power.highHalf.max())
    guard min(row, column) >= pow(10, threshold / 10), max(row, column) <= Self.twist * min(row, column),
      row + column >= Self.purity * energy / length
    else { return nil }
    var key = 0
    for index in 0..<4 {
      if power.lowHalf[index] == row { key += 4 * index }
      if power.highHalf[index] == column { key += index }
    }
    return key
  }
}
