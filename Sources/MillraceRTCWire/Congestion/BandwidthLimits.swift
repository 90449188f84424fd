/// The range of a bandwidth estimate, in bits per second.
///
/// Values that do not fit are corrected: `minimum` lies between 5 kbit/s and 10 Gbit/s, `maximum` between `minimum` and 10 Gbit/s,
/// `start` between the two.
public struct BandwidthLimits: Sendable, Equatable {
  /// The lowest minimum: below it no estimate works (libwebrtc, `kCongestionControllerMinBitrate`).
  public static let lowest: Int64 = 5_000
  /// The highest maximum.
  public static let highest: Int64 = 10_000_000_000

  /// The estimate never falls below this rate.
  public let minimum: Int64
  /// The estimate before the first feedback.
  public let start: Int64
  /// The estimate never rises above this rate.
  public let maximum: Int64

  /// Creates limits. The default start is that of libwebrtc (`kDefaultStartBitrate`).
  public init(minimum: Int64 = 30_000, start: Int64 = 300_000, maximum: Int64 = 10_000_000) {
    self.minimum = max(Self.lowest, min(minimum, Self.highest))
    self.maximum = max(self.minimum, min(maximum, Self.highest))
    self.start = max(self.minimum, min(start, self.maximum))
  }

  /// The nearest rate within the limits; one that is not a number becomes the minimum.
  func clamp(_ rate: Double) -> Double {
    rate.isNaN ? Double(minimum) : max(Double(minimum), min(rate, Double(maximum)))
  }
}
