internal import MillraceCore

/// The bits a second of sound that is sent on, all media together, without the heads of packets.
///
/// Measured over seconds. It follows a louder second at once, and falls by a quarter in each that is quieter: people who take turns do not
/// make it jump.
struct ForwardedRate: Sendable {
  /// What is measured at a time, and after what silence nothing is sent on.
  private static let window: Nanoseconds = .milliseconds(1_000)
  private static let silence: Nanoseconds = .milliseconds(3_000)
  private static let fall = 0.75

  private var begunAt: Nanoseconds?
  private var lastAt: Nanoseconds = 0
  private var bytes = 0
  private var measured: Int?

  /// Takes note of the payload of a packet.
  mutating func note(_ count: Int, at now: Nanoseconds) {
    if let begun = begunAt, now &- lastAt <= Self.silence {
      if now &- begun >= Self.window {
        let rate = Int(Double(bytes) * 8 * 1e9 / Double(now &- begun))
        measured = max(rate, Int(Double(measured ?? 0) * Self.fall))
        (begunAt, bytes) = (now, 0)
      }
    } else {
      (begunAt, bytes, measured) = (now, 0, nil)
    }
    lastAt = now
    bytes += count
  }

  /// Bits a second; nil: not known yet, or nothing is sent on.
  func bitrate(at now: Nanoseconds) -> Int? { now &- lastAt > Self.silence ? nil : measured }
}
