/// A time of the Network Time Protocol: 32 bits of seconds since 1900 and 32 bits of their fraction (RFC 3550, section 4).
public struct NTPTime: RawRepresentable, Sendable, Hashable {
  /// Seconds from 1900 to 1970 (RFC 868).
  private static let unixEpoch: Int64 = 2_208_988_800
  private static let second: Int64 = 1_000_000_000

  /// The 64 bits on the wire.
  public var rawValue: UInt64

  /// Creates a time from its 64 bits.
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Creates a time from nanoseconds since 1970. From 2036 on the seconds wrap.
  public init(unixNanoseconds: Int64) {
    var (seconds, rest) = unixNanoseconds.quotientAndRemainder(dividingBy: Self.second)
    if rest < 0 { (seconds, rest) = (seconds - 1, rest + Self.second) }
    let fraction = (UInt64(rest) << 32) / UInt64(Self.second)
    rawValue = UInt64(UInt32(truncatingIfNeeded: seconds + Self.unixEpoch)) << 32 | fraction
  }

  /// Nanoseconds since 1970. A time whose highest bit is 0 lies after February 2036 (RFC 4330, section 3).
  public var unixNanoseconds: Int64 {
    var seconds = Int64(rawValue >> 32) - Self.unixEpoch
    if rawValue >> 63 == 0 { seconds += 1 << 32 }
    let fraction = (rawValue & 0xFFFF_FFFF) * UInt64(Self.second)
    return seconds * Self.second + Int64((fraction + (1 << 31)) >> 32)
  }

  /// The middle 32 bits, in units of 1/65,536 s: the form of LSR (RFC 3550, section 6.4.1).
  public var middle: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 16) }

  /// A duration in nanoseconds in units of 1/65,536 s: the form of DLSR; limited to 0 and 65,535.99 s.
  public static func short(nanoseconds: Int64) -> UInt32 {
    let (seconds, rest) = max(0, nanoseconds).quotientAndRemainder(dividingBy: second)
    guard seconds < 65_536 else { return .max }
    return UInt32(seconds) << 16 | UInt32((rest << 16) / second)
  }

  /// Nanoseconds of a duration in units of 1/65,536 s.
  public static func nanoseconds(short: UInt32) -> Int64 { (Int64(short) * second) >> 16 }
}
