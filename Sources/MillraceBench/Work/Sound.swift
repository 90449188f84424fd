import Glibc

/// Synthetic sounds, the same in every run, and WAV files of them.
enum Sound {
  /// A signal that makes a voice codec work: a gliding fundamental with decreasing overtones in four syllables a second, pauses,
  /// and breath noise. 16-bit, one channel.
  static func voice(seconds length: Double, rate: Int) -> [Int16] {
    var noise = Dice()
    var phase = 0.0
    return (0..<Int(length * Double(rate))).map { index in
      let time = Double(index) / Double(rate)
      phase += (120 + 30 * sin(2 * .pi * 0.7 * time)) / Double(rate)
      let syllable = max(0, sin(2 * .pi * 4 * time)) * (sin(2 * .pi * 0.25 * time) > -0.7 ? 1 : 0)
      let formant = 6 + 4 * sin(2 * .pi * 1.3 * time)
      var sum = 0.0
      for overtone in 1...24 {
        let distance = (Double(overtone) - formant) / 5
        sum +=
          sin(2 * .pi * phase * Double(overtone)) * (0.15 + exp(-distance * distance))
          / Double(overtone).squareRoot()
      }
      return Int16((syllable * sum * 2_600 + noise.uniform() * 60).rounded())
    }
  }

  /// White noise below a magnitude of 0.1, one channel.
  static func noise(count: Int) -> [Float] {
    var dice = Dice()
    return (0..<count).map { _ in Float(dice.uniform() * 0.1) }
  }

  /// Writes a 16-bit WAV file of one channel.
  static func write(_ samples: [Int16], rate: Int, to path: String) throws {
    var bytes: [UInt8] = []
    func put(_ value: Int, _ count: Int) {
      for shift in 0..<count { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * shift))) }
    }
    bytes.append(contentsOf: "RIFF".utf8)
    put(36 + samples.count * 2, 4)
    bytes.append(contentsOf: "WAVEfmt ".utf8)
    for (value, count) in [(16, 4), (1, 2), (1, 2), (rate, 4), (rate * 2, 4), (2, 2), (16, 2)] {
      put(value, count)
    }
    bytes.append(contentsOf: "data".utf8)
    put(samples.count * 2, 4)
    for sample in samples { put(Int(sample), 2) }
    try replaceFile(path, with: bytes)
  }

  /// The samples of a 16-bit WAV file.
  static func read(_ path: String) throws -> [Int16] {
    let bytes = try readBytes(path)
    var offset = 12
    while offset + 8 <= bytes.count {
      let size = (0..<4).reduce(0) { $0 | Int(bytes[offset + 4 + $1]) << (8 * $1) }
      if bytes[offset..<offset + 4].elementsEqual("data".utf8) {
        let end = min(bytes.count, offset + 8 + size)
        return stride(from: offset + 8, to: end - 1, by: 2).map {
          Int16(truncatingIfNeeded: Int(bytes[$0]) | Int(bytes[$0 + 1]) << 8)
        }
      }
      offset += 8 + size + size % 2
    }
    throw MeasurementProblem("\"\(path)\" has no samples; it is not a 16-bit WAV file")
  }
}

/// Pseudo-random numbers, the same in every run (SplitMix64).
struct Dice: RandomNumberGenerator {
  private var state: UInt64

  /// - Parameter seed: selects the sequence.
  init(seed: UInt64 = 1) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }

  /// From -1 to 1.
  mutating func uniform() -> Double { Double(Int64(bitPattern: next()) >> 11) / Double(1 << 52) }
}
