public import MillraceCore

/// How much a link holds before its policy acts.
public enum LinkCapacity: Sendable, Hashable {
  /// So many packets.
  case packets(Int)
  /// Packets that stand for so much time, rounded up to whole packets.
  case time(Nanoseconds)

  /// Packets that stand for so many milliseconds.
  public static func milliseconds(_ count: Int) -> LinkCapacity { .time(.milliseconds(Int64(count))) }

  /// The packets a link may be given. 4096 of 20 ms are 82 s; a longer queue is a store, not a link.
  public static let packetRange = 1...4096
  /// The times a link may be given: 1 ms to 60 s.
  public static let timeRange: ClosedRange<Nanoseconds> = .milliseconds(1) ... .milliseconds(60_000)

  /// Reads `200ms`, `1.5s`; nil for anything else. The value may be out of range.
  init?(_ text: String) {
    guard let time = TimeText.nanoseconds(text) else { return nil }
    self = .time(time)
  }

  /// True when a link may hold so much.
  var isInRange: Bool {
    switch self {
    case .packets(let count): Self.packetRange.contains(count)
    case .time(let time): Self.timeRange.contains(time)
    }
  }
}
