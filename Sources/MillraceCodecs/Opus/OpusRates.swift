/// Constants of the Opus format (RFC 6716).
package enum OpusRates {
  /// Sample rates an encoder or decoder can run at, in Hz (RFC 6716 section 2.1.3, the API rates of libopus).
  package static let all = [8000, 12_000, 16_000, 24_000, 48_000]

  /// The rate of granule positions and pre-skip, whatever was encoded (RFC 7845 section 4).
  static let granule = 48_000

  /// Longest packet in milliseconds (RFC 6716 section 3.2.5).
  package static let longestPacket = 120

  /// Most bytes of one frame inside a packet (RFC 6716 section 3.2.1).
  package static let frameBytes = 1275

  /// The lowest Opus rate that preserves a signal of this rate; the highest if none does.
  package static func holding(_ rate: Int) -> Int { all.first { $0 >= rate } ?? granule }

  /// The rates, as listed in errors.
  static var listed: String { "8000, 12000, 16000, 24000 or 48000" }
}

/// Converts a position to another rate, rounding up: sample `i` of the result is the first one at or after position `p`.
///
/// Rounding every boundary the same way keeps adjacent ranges adjacent at any rate.
package func rescale(_ position: Int64, from: Int, to: Int) -> Int64 {
  if from == to { return position }
  let (quotient, rest) = position.quotientAndRemainder(dividingBy: Int64(from))
  let product = rest * Int64(to)
  let part = product / Int64(from)
  let roundsUp = product > 0 && product % Int64(from) != 0
  return quotient &* Int64(to) &+ part &+ (roundsUp ? 1 : 0)
}
