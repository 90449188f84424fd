/// The slope of the queueing delay: how many milliseconds it grows per millisecond (libwebrtc, `TrendlineEstimator`, which took the
/// place of the Kalman filter of draft-ietf-rmcat-gcc-02, section 5.3).
///
/// The slope is that of the line of least squares through the smoothed delay of the last 20 groups.
struct DelayTrend: Sendable {
  /// Groups on the line (libwebrtc, `kDefaultTrendlineWindowSize`).
  private static let window = 20
  /// What remains of the smoothed delay with each group (libwebrtc, `kDefaultTrendlineSmoothingCoeff`).
  private static let smoothing = 0.9
  /// Groups are counted up to here (libwebrtc, `kDeltaCounterMax`).
  private static let mostGroups = 1_000

  private struct Point {
    var time = 0.0
    var delay = 0.0
  }

  /// The slope; 0 until there are enough groups.
  private(set) var slope = 0.0
  /// Groups so far, up to 1,000.
  private(set) var groups = 0

  private var points = InlineArray<20, Point>(repeating: Point())
  private var origin: Int64?
  private var delay = 0.0
  private var smoothed = 0.0

  /// Adds the step to a group.
  mutating func note(_ step: PacketGroups.Step) {
    let start = origin ?? step.arrival
    origin = start
    delay += CongestionUnit.milliseconds(step.arrived) - CongestionUnit.milliseconds(step.sent)
    smoothed = Self.smoothing * smoothed + (1 - Self.smoothing) * delay
    points[groups % Self.window] = Point(
      time: CongestionUnit.milliseconds(step.arrival.elapsed(since: start)), delay: smoothed)
    // The count stops at a multiple of the window, so that the next place stays right.
    groups = groups + 1 == Self.mostGroups + Self.window ? Self.mostGroups : groups + 1
    if groups >= Self.window { slope = fit() ?? slope }
  }

  /// The slope of the line; nil: all points have one time.
  private func fit() -> Double? {
    var (time, delay) = (0.0, 0.0)
    for index in points.indices {
      time += points[index].time
      delay += points[index].delay
    }
    time /= Double(Self.window)
    delay /= Double(Self.window)
    var (covariance, variance) = (0.0, 0.0)
    for index in points.indices {
      let distance = points[index].time - time
      covariance += distance * (points[index].delay - delay)
      variance += distance * distance
    }
    guard variance > 0 else { return nil }
    let slope = covariance / variance
    return slope.isFinite ? slope : nil
  }
}
