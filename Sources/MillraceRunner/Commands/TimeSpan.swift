internal import MillraceCore
internal import MillraceGraph

/// A duration with a unit: `500ms`, `10s`, `1.5min`, `2h`.
struct TimeSpan {
  let nanoseconds: Nanoseconds

  /// About eleven days. Anything longer is most likely a mistake.
  private static let longest: Nanoseconds = 1_000_000 * 1_000_000_000
  /// The same for messages.
  static let limit = "\(longest / 1_000_000_000)s"

  init?(argument: String) {
    guard let time = Self.time(argument), time > 0 else { return nil }
    nanoseconds = time
  }

  /// Parses a time or duration, which may be zero; nil when the text is invalid.
  static func time(_ text: String) -> Nanoseconds? {
    parsed(text).flatMap { $0 <= longest ? $0 : nil }
  }

  /// True when the text is a duration, but one that is too long.
  static func isTooLong(_ text: String) -> Bool { parsed(text).map { $0 > longest } ?? false }

  private static func parsed(_ text: String) -> Nanoseconds? {
    TimeText.nanoseconds(text, units: [.ms, .s, .min, .h])
  }
}
