/// G.711 (ITU-T, 11/1988), the coding of telephone sound: one byte a sample, with a resolution that grows towards silence.
///
/// RTP names it PCMU (payload type 0) and PCMA (8), RFC 3551 sections 4.5.14 and 6. Samples are 16 bits wide; the 14 bits of µ-law and the
/// 13 bits of A-law are their upper bits. Pure arithmetic without tables, exact for every code and every sample.
public enum G711: Sendable {
  /// The two laws.
  public enum Law: Sendable, Hashable, CaseIterable {
    /// µ-law: PCMU.
    case mu
    /// A-law: PCMA.
    case a
  }

  /// The byte of silence: what a sample of 0 becomes.
  public static func silence(_ law: Law) -> UInt8 { law == .mu ? 0xFF : 0xD5 }

  /// Encodes samples, one byte each, as many as there are and the target has room for.
  /// - Returns: the number of bytes written.
  public static func encode(
    _ samples: Span<Int16>, _ law: Law, into target: inout MutableSpan<UInt8>, at position: Int = 0
  ) -> Int {
    let count = max(0, min(samples.count, target.count - position))
    switch law {
    case .mu: for index in 0..<count { target[position + index] = muLaw(samples[index]) }
    case .a: for index in 0..<count { target[position + index] = aLaw(samples[index]) }
    }
    return count
  }

  /// Decodes bytes, one sample each, as many as there are and the target has room for.
  /// - Returns: the number of samples written.
  public static func decode(
    _ bytes: Span<UInt8>, _ law: Law, into target: inout MutableSpan<Int16>, at position: Int = 0
  ) -> Int {
    let count = max(0, min(bytes.count, target.count - position))
    switch law {
    case .mu: for index in 0..<count { target[position + index] = sample(muLaw: bytes[index]) }
    case .a: for index in 0..<count { target[position + index] = sample(aLaw: bytes[index]) }
    }
    return count
  }

  // MARK: µ-law

  /// Shifts the segments so that each begins at a power of two (33 steps of the 14-bit scale).
  private static let bias: Int32 = 33 << 2
  /// The largest biased magnitude: the overload point 8,159 of the 14-bit scale.
  private static let clip: Int32 = (8_192 << 2) - 1

  /// The µ-law code of a sample (table 2 of G.711).
  ///
  /// The tables do not say to which side a sample exactly between two values goes. As in the ITU's reference software (G.191), negative
  /// samples are complemented: the magnitude 0 is the first below zero.
  public static func muLaw(_ sample: Int16) -> UInt8 {
    let isNegative = sample < 0
    let magnitude = min(Int32(isNegative ? ~sample : sample) + bias, clip)
    // The biased magnitude has its highest bit between 7 and 14; below it lie four bits of mantissa.
    let segment = UInt8(24 - magnitude.leadingZeroBitCount)
    let mantissa = UInt8(truncatingIfNeeded: magnitude >> (Int32(segment) + 3)) & 0x0F
    return ~((isNegative ? 0x80 : 0) | segment << 4 | mantissa)
  }

  /// The sample of a µ-law code, between −32,124 and 32,124. The codes 0xFF and 0x7F are both 0.
  public static func sample(muLaw code: UInt8) -> Int16 {
    let bits = ~code
    let magnitude = (Int16(bits & 0x0F) << 3 + Int16(bias)) << Int16(bits >> 4 & 7) - Int16(bias)
    return bits & 0x80 != 0 ? -magnitude : magnitude
  }

  // MARK: A-law

  /// Every second bit of an A-law code is inverted.
  private static let alternate: UInt8 = 0x55

  /// The A-law code of a sample (table 1 of G.711), ties as with `muLaw`.
  public static func aLaw(_ sample: Int16) -> UInt8 {
    let isNegative = sample < 0
    let magnitude = Int32(isNegative ? ~sample : sample)
    // The first two segments have the same step; from the third on the highest bit, 9 to 14, selects the segment.
    let segment = UInt8(max(0, 24 - magnitude.leadingZeroBitCount))
    let mantissa = UInt8(truncatingIfNeeded: magnitude >> (max(1, Int32(segment)) + 3)) & 0x0F
    return ((isNegative ? 0 : 0x80) | segment << 4 | mantissa) ^ alternate
  }

  /// The sample of an A-law code, between −32,256 and 32,256, never 0.
  public static func sample(aLaw code: UInt8) -> Int16 {
    let bits = code ^ alternate
    let segment = Int16(bits >> 4 & 7)
    let low = Int16(bits & 0x0F) << 4 + 8
    let magnitude = segment == 0 ? low : (low + 0x100) << (segment - 1)
    return bits & 0x80 != 0 ? magnitude : -magnitude
  }
}
