internal import MillraceCore

/// Which drops of slow members are reported: the first at once, later ones once a second, each for all since the one before. A pure value.
struct StallReports: Sendable {
  enum Step: Sendable, Hashable {
    /// Report it now; look again after so many nanoseconds; nothing: that is going to be done.
    case report, wait(Nanoseconds), nothing
  }

  private static let interval: Nanoseconds = 1_000_000_000

  /// All drops so far.
  private(set) var count = 0
  private var reportedAt: Nanoseconds?
  /// The latest that was not reported.
  private var waiting: String?

  mutating func take(_ address: String, at now: Nanoseconds) -> Step {
    count += 1
    guard let reportedAt, now - reportedAt < Self.interval else {
      (self.reportedAt, waiting) = (now, nil)
      return .report
    }
    let isFirst = waiting == nil
    waiting = address
    return isFirst ? .wait(reportedAt + Self.interval - now) : .nothing
  }

  /// The address to be reported after the wait.
  mutating func takeWaiting(at now: Nanoseconds) -> String? {
    guard let address = waiting else { return nil }
    (waiting, reportedAt) = (nil, now)
    return address
  }
}
