internal import MillraceCore
internal import MillraceGraph

/// A stretch of time with its unit: `500ms`, `10s`, `1.5min`, `2h`.
struct TimeSpan {
  let nanoseconds: Nanoseconds

  /// About eleven days; anything longer is surely a slip, and would be better done without a limit.
  private static let longest: Nanoseconds = 1_000_000_000_000_000

  init?(argument: String) {
    guard let time = Self.time(argument), time > 0 else { return nil }
    nanoseconds = time
  }

  /// A time or a stretch of time as it is written; nil when it is none. Zero is one.
  static func time(_ text: String) -> Nanoseconds? {
    TimeText.nanoseconds(text, units: [.ms, .s, .min, .h]).flatMap { $0 <= longest ? $0 : nil }
  }
}
