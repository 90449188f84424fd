public import MillraceCore

/// How much a link holds before its policy applies.
public enum LinkCapacity: Sendable, Hashable {
  /// A number of packets.
  case packets(Int)
  /// Packets of a total duration, rounded up to whole packets.
  case time(Nanoseconds)

  /// Packets of a total duration in milliseconds.
  public static func milliseconds(_ count: Int) -> LinkCapacity { .time(.milliseconds(Int64(count))) }

  /// The valid numbers of packets. 4096 packets of 20 ms are 82 s; a longer queue is storage, not a link.
  public static let packetRange = 1...4096
  /// The valid durations: 1 ms to 60 s.
  public static let timeRange: ClosedRange<Nanoseconds> = .milliseconds(1) ... .milliseconds(60_000)

  /// Parses `200ms` or `1.5s`; nil for anything else. Does not check the range.
  init?(_ text: String) {
    guard let time = TimeText.nanoseconds(text) else { return nil }
    self = .time(time)
  }

  /// Whether it is valid.
  var isInRange: Bool {
    switch self {
    case .packets(let count): Self.packetRange.contains(count)
    case .time(let time): Self.timeRange.contains(time)
    }
  }
}
