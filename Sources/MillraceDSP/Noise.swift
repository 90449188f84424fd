/// A small, fast random number generator, xoshiro256++ (Blackman and Vigna 2019), seeded by SplitMix64. The same seed gives the same
/// numbers on every machine. Not for secrets. No allocation.
public struct Xoshiro256: RandomNumberGenerator, Sendable {
  private var a: UInt64
  private var b: UInt64
  private var c: UInt64
  private var d: UInt64

  /// Starts the sequence of `seed`; every seed is suitable.
  public init(seed: UInt64) {
    var state = seed
    func mixed() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var z = state
      z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
      z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
      return z ^ (z >> 31)
    }
    a = mixed()
    b = mixed()
    c = mixed()
    d = mixed()
  }

  /// The next 64 random bits.
  public mutating func next() -> UInt64 {
    let sum = a &+ d
    let result = ((sum << 23) | (sum >> 41)) &+ a
    let shifted = b << 17
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << 45) | (d >> 19)
    return result
  }

  /// The next number in -1..<1, uniformly distributed.
  public mutating func nextUnit() -> Double {
    Double(Int64(bitPattern: next()) >> 11) * 0x1p-52
  }
}

/// Noise with a given seed: white (equal power in equal bandwidths) or pink (equal power per octave). No allocation.
public struct NoiseSource: Sendable {
  /// The colour of the noise.
  public enum Color: String, Sendable, Hashable, CaseIterable {
    /// Uniformly distributed in -1..<1: RMS -4.8 dBFS.
    case white
    /// Falls by 3 dB per octave; RMS about -12 dBFS, clipped at -1 and 1, which happens for about one sample in 15,000.
    case pink
  }

  private let color: Color
  private let seed: UInt64
  private var random: Xoshiro256
  /// States of the pink filter: seven first-order sections in parallel.
  private var sections = InlineArray<7, Double>(repeating: 0)

  /// Makes a source; the same seed gives the same samples.
  public init(_ color: Color, seed: UInt64 = 1) {
    self.color = color
    self.seed = seed
    random = Xoshiro256(seed: seed)
  }

  /// Restarts at the first sample.
  public mutating func reset() {
    random = Xoshiro256(seed: seed)
    sections = InlineArray(repeating: 0)
  }

  /// The next sample, in -1...1.
  public mutating func next() -> Double {
    let white = random.nextUnit()
    return color == .white ? white : pink(white)
  }

  /// Paul Kellet's refined filter (musicdsp.org archive, "Pink noise filter", 1999): within 0.05 dB of -3 dB per octave above 9.2 Hz
  /// at 44.1 kHz; at other rates that lower bound scales with the rate.
  private mutating func pink(_ white: Double) -> Double {
    sections[0] = 0.99886 * sections[0] + white * 0.0555179
    sections[1] = 0.99332 * sections[1] + white * 0.0750759
    sections[2] = 0.96900 * sections[2] + white * 0.1538520
    sections[3] = 0.86650 * sections[3] + white * 0.3104856
    sections[4] = 0.55000 * sections[4] + white * 0.5329522
    sections[5] = -0.7616 * sections[5] - white * 0.0168980
    let sum =
      sections[0] + sections[1] + sections[2] + sections[3] + sections[4] + sections[5] + sections[6]
      + white * 0.5362
    sections[6] = white * 0.115926
    return min(max(sum * Self.pinkScale, -1), 1)
  }

  /// Scales the filter's output for white noise in -1...1 to an RMS of 1/4 (measured in the tests).
  private static let pinkScale = 0.142
}
