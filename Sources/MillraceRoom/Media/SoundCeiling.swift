internal import MillraceCore

/// How much sound of one member is taken: more than any sound has, and little enough that all others can be sent it.
///
/// Two leaky buckets of a second each, so that what a network has held back for a second passes at once. No heap request.
struct SoundCeiling: Sendable {
  /// Packets of 10 ms are 100 a second.
  private static let packets: Nanoseconds = 120
  /// 512 kbit/s; Opus has at most 510 (RFC 6716 section 2.1.1).
  private static let bytes: Nanoseconds = 64_000
  private static let second: Nanoseconds = .milliseconds(1_000)

  /// When the buckets are empty.
  private var packetsUntil: Nanoseconds = 0
  private var bytesUntil: Nanoseconds = 0

  init() {}

  /// Counts a packet of so many bytes; false: it is one too many, and does not count.
  mutating func admits(_ count: Int, at now: Nanoseconds) -> Bool {
    let packets = max(packetsUntil, now) + Self.second / Self.packets
    let bytes = max(bytesUntil, now) + Nanoseconds(count) * Self.second / Self.bytes
    guard max(packets, bytes) - now <= Self.second else { return false }
    (packetsUntil, bytesUntil) = (packets, bytes)
    return true
  }
}
