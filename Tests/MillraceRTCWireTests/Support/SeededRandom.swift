/// Pseudo-random numbers that are the same in each run: SplitMix64 (Steele, Lea and Flood, 2014).
struct SeededRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }

  /// A number below a bound, 0 for a bound of 0.
  mutating func below(_ bound: Int) -> Int { bound > 0 ? Int(next() % UInt64(bound)) : 0 }

  mutating func chance(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &self) < probability }

  mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) }
  }

  /// Bytes with more small numbers, and more of ones, than chance would have.
  mutating func extremeBytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in
      let value = next()
      return value >> 62 == 0 ? UInt8(value & 3) : value >> 62 == 1 ? 0xFF : UInt8(value & 0xFF)
    }
  }
}

/// Times in nanoseconds.
let second: Int64 = 1_000_000_000
let millisecond: Int64 = 1_000_000
