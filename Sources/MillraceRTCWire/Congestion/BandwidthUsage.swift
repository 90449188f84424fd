/// What the delays of packets say about the bottleneck (draft-ietf-rmcat-gcc-02, section 5.4).
public enum BandwidthUsage: Sendable, Equatable, CaseIterable {
  /// The queue keeps its length.
  case normal
  /// The queue grows: more is sent than the link carries.
  case overusing
  /// The queue shrinks.
  case underusing
}

extension Int64 {
  /// The time from `earlier` to this one; one that does not fit becomes the nearest that does.
  func elapsed(since earlier: Int64) -> Int64 {
    let (difference, overflow) = subtractingReportingOverflow(earlier)
    guard overflow else { return difference }
    return self < earlier ? .min : .max
  }
}

/// Units of time and data.
enum CongestionUnit {
  static let nanosecondsPerMillisecond: Int64 = 1_000_000
  static let nanosecondsPerSecond: Int64 = 1_000_000_000
  /// No packet of IP has more bytes.
  static let mostPacketBytes = 65_535

  static func milliseconds(_ time: Int64) -> Double { Double(time) / 1e6 }
  static func seconds(_ time: Int64) -> Double { Double(time) / 1e9 }
  static func packetBytes(_ bytes: Int) -> Int { max(0, min(bytes, mostPacketBytes)) }
}
