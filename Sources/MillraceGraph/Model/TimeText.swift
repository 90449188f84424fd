public import MillraceCore

/// Durations as users write them: a number and its unit, `200ms`, `1.5 s`.
public enum TimeText {
  /// A unit, by its symbol.
  public enum Unit: String, Sendable, CaseIterable {
    // Longer symbols first: "ms" ends in "s".

    /// Microseconds.
    case us
    /// Milliseconds.
    case ms
    /// Minutes.
    case min
    /// Seconds.
    case s
    /// Hours.
    case h

    var nanoseconds: Double {
      switch self {
      case .us: 1e3
      case .ms: 1e6
      case .s: 1e9
      case .min: 60e9
      case .h: 3_600e9
      }
    }
  }

  /// Parses a duration in one of some units; nil for anything else.
  public static func nanoseconds(_ text: String, units: [Unit] = [.ms, .s]) -> Nanoseconds? {
    for unit in Unit.allCases where units.contains(unit) && text.hasSuffix(unit.rawValue) {
      let digits = text.dropLast(unit.rawValue.count).filter { $0 != " " }
      let isPlain = digits.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }
      guard isPlain, let number = Double(digits), number * unit.nanoseconds < 1e18 else { return nil }
      return Nanoseconds((number * unit.nanoseconds).rounded())
    }
    return nil
  }
}
