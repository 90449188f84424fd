/// Memory sizes as users write them: a number and its unit, `512MB`, `1.5 GiB`.
public enum SizeText {
  /// A unit, by its symbol: powers of 1000, and with an `i` powers of 1024 (IEC 80000-13).
  public enum Unit: String, Sendable, CaseIterable {
    // Longer symbols first: "MB" ends in "B".

    /// 2^10 bytes.
    case kibibyte = "KiB"
    /// 2^20 bytes.
    case mebibyte = "MiB"
    /// 2^30 bytes.
    case gibibyte = "GiB"
    /// 2^40 bytes.
    case tebibyte = "TiB"
    /// 10^3 bytes.
    case kilobyte = "kB"
    /// 10^3 bytes, in the spelling most people use.
    case kilobyteAsOftenWritten = "KB"
    /// 10^6 bytes.
    case megabyte = "MB"
    /// 10^9 bytes.
    case gigabyte = "GB"
    /// 10^12 bytes.
    case terabyte = "TB"
    /// One byte.
    case byte = "B"

    var bytes: Double {
      switch self {
      case .byte: 1
      case .kilobyte, .kilobyteAsOftenWritten: 1e3
      case .megabyte: 1e6
      case .gigabyte: 1e9
      case .terabyte: 1e12
      case .kibibyte: 1_024
      case .mebibyte: 1_048_576
      case .gibibyte: 1_073_741_824
      case .tebibyte: 1_099_511_627_776
      }
    }
  }

  /// Sizes from here on, 1 EB, are refused.
  private static let limit = 1e18

  /// Parses a size, in bytes; nil for anything else.
  public static func bytes(_ text: String) -> Int? {
    guard let unit = Unit.allCases.first(where: { text.hasSuffix($0.rawValue) }) else { return nil }
    let digits = text.dropLast(unit.rawValue.count).filter { $0 != " " }
    let isPlain = digits.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }
    guard isPlain, let number = Double(digits), number * unit.bytes < limit else { return nil }
    return Int((number * unit.bytes).rounded())
  }
}
