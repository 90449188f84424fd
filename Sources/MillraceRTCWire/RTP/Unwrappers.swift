/// Extends numbers that wrap to 64 bits: each becomes the one nearest to the highest so far (RFC 3711, appendix A).
///
/// The first number is kept as it is; one that comes before it may be negative.
public struct Unwrapper<Number: FixedWidthInteger & UnsignedInteger & Sendable>: Sendable {
  /// The highest number so far; nil: none was seen.
  public private(set) var highest: Int64?

  /// Creates an unwrapper that has seen nothing.
  public init() {}

  /// What a number stands for, without taking note of it.
  public func guess(_ number: Number) -> Int64 {
    guard let highest else { return Int64(number) }
    let ahead = Int64(number &- Number(truncatingIfNeeded: highest))
    // More than half of the numbers ahead is behind.
    return highest + (ahead > Int64(Number.max >> 1) ? ahead - Int64(Number.max) - 1 : ahead)
  }

  /// What a number stands for.
  public mutating func unwrap(_ number: Number) -> Int64 {
    let whole = guess(number)
    highest = max(highest ?? whole, whole)
    return whole
  }

  /// Forgets all numbers, for a source that restarted.
  public mutating func reset() { highest = nil }
}

/// Extends sequence numbers of RTP.
public typealias SequenceUnwrapper = Unwrapper<UInt16>
/// Extends timestamps of RTP.
public typealias TimestampUnwrapper = Unwrapper<UInt32>
