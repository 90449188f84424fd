/// Extends 16-bit sequence numbers to 64 bits: each becomes the number nearest to the highest so far (RFC 3711, appendix A).
///
/// The first number is kept as it is; one that comes before it may be negative.
public struct SequenceUnwrapper: Sendable {
  /// The highest number so far; nil: none was seen.
  public private(set) var highest: Int64?

  /// Creates an unwrapper that has seen nothing.
  public init() {}

  /// The number that a sequence number stands for, without taking note of it.
  public func guess(_ sequence: UInt16) -> Int64 {
    guard let highest else { return Int64(sequence) }
    return highest + Int64(Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: highest)))
  }

  /// The number that a sequence number stands for.
  public mutating func unwrap(_ sequence: UInt16) -> Int64 {
    let number = guess(sequence)
    highest = max(highest ?? number, number)
    return number
  }

  /// Forgets all numbers, for a source that restarted.
  public mutating func reset() { highest = nil }
}

/// Extends 32-bit timestamps to 64 bits: each becomes the timestamp nearest to the highest so far.
///
/// The first timestamp is kept as it is; one that comes before it may be negative.
public struct TimestampUnwrapper: Sendable {
  /// The highest timestamp so far; nil: none was seen.
  public private(set) var highest: Int64?

  /// Creates an unwrapper that has seen nothing.
  public init() {}

  /// The time that a timestamp stands for, without taking note of it.
  public func guess(_ timestamp: UInt32) -> Int64 {
    guard let highest else { return Int64(timestamp) }
    return highest + Int64(Int32(bitPattern: timestamp &- UInt32(truncatingIfNeeded: highest)))
  }

  /// The time that a timestamp stands for.
  public mutating func unwrap(_ timestamp: UInt32) -> Int64 {
    let time = guess(timestamp)
    highest = max(highest ?? time, time)
    return time
  }

  /// Forgets all timestamps, for a source that restarted.
  public mutating func reset() { highest = nil }
}
