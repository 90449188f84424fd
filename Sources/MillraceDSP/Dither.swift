/// Turns floats into 16-bit samples with triangular dither of two steps' width (TPDF; Lipshitz, Wannamaker,
/// Vanderkooy, JAES 1992), which makes the rounding error independent of the signal: quiet sounds fade into
/// noise, not into distortion.
///
/// The noise is a function of the seed and of the sample's number, not of how the stream is cut. Its cost is
/// 4.8 dB more noise than plain rounding: for recordings that end at 16 bits, not between nodes. No
/// allocation.
public struct Dither: Sendable {
  private let seed: UInt64
  private var random: Xoshiro256

  /// Starts the dither sequence of `seed`.
  public init(seed: UInt64 = 1) {
    self.seed = seed
    random = Xoshiro256(seed: seed)
  }

  /// Goes back to the first number of the sequence.
  public mutating func reset() { random = Xoshiro256(seed: seed) }

  /// Converts samples; both spans hold the same number. Saturates; NaN becomes 0.
  public mutating func convert(_ source: Span<Float>, into destination: inout MutableSpan<Int16>) {
    precondition(source.count == destination.count, "sample counts differ")
    for index in source.indices {
      // Two independent 32-bit numbers out of one draw; their sum is triangular in -1..<1 steps.
      let bits = random.next()
      let noise =
        Float(Int32(truncatingIfNeeded: bits >> 32)) * 0x1p-32 + Float(Int32(truncatingIfNeeded: bits))
        * 0x1p-32
      destination[index] = Int16(rounding: source[index] * 32_768 + noise)
    }
  }
}
