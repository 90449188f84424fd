/// Says from the delays of packets whether a queue grows at the bottleneck (draft-ietf-rmcat-gcc-02, sections 5.2 to 5.4).
///
/// The trend is compared with a threshold that adapts to it, so that flows of TCP do not starve ours.
struct OveruseDetector: Sendable {
  /// The threshold at first, in milliseconds (draft section 5.4, `del_var_th(0)`).
  private static let firstThreshold = 12.5
  /// The range of the threshold, in milliseconds (draft section 5.4).
  private static let thresholds = 6.0...600.0
  /// How fast the threshold rises and falls, per millisecond (libwebrtc, `k_up_` and `k_down_`; the draft has 0.01 and 0.00018).
  private static let rise = 0.0087
  private static let fall = 0.039
  /// A trend farther above is a spike that the threshold does not follow (draft section 5.4).
  private static let spike = 15.0
  /// The longest time that the threshold adapts at once, in milliseconds (libwebrtc, `kMaxTimeDeltaMs`).
  private static let longestStep = 100.0
  /// The queue must grow for longer than this, in milliseconds (draft section 5.4, `overuse_time_th`).
  private static let overuseTime = 10.0
  /// What makes a slope comparable with the threshold (libwebrtc, `kDefaultTrendlineThresholdGain` and `kMinNumDeltas`).
  private static let gain = 4.0
  private static let mostWeight = 60
  /// After so long without packets, nothing that was known holds (libwebrtc, `kStreamTimeOut`).
  private static let silence = 2 * CongestionUnit.nanosecondsPerSecond

  /// What the delays say.
  private(set) var usage = BandwidthUsage.normal

  private var groups = PacketGroups()
  private var trend = DelayTrend()
  private var threshold = Self.firstThreshold
  private var adapted: Int64?
  private var overusing: Double?
  private var overuses = 0
  private var lastSlope = 0.0
  private var lastPacket: Int64?

  /// Adds a packet that was sent, arrived, and became known at `now` on our clock, in the order of sending.
  mutating func note(sent: Int64, arrival: Int64, at now: Int64) {
    if let last = lastPacket, now.elapsed(since: last) > Self.silence { self = OveruseDetector() }
    lastPacket = now
    guard let step = groups.note(sent: sent, arrival: arrival, at: now) else { return }
    trend.note(step)
    detect(step)
  }

  private mutating func detect(_ step: PacketGroups.Step) {
    guard trend.groups >= 2 else { return }
    let modified = Double(min(trend.groups, Self.mostWeight)) * trend.slope * Self.gain
    if modified > threshold {
      growing(for: CongestionUnit.milliseconds(step.sent))
    } else {
      usage = modified < -threshold ? .underusing : .normal
      (overusing, overuses) = (nil, 0)
    }
    lastSlope = trend.slope
    adapt(to: abs(modified), at: step.arrival)
  }

  private mutating func growing(for time: Double) {
    // Of the first step, it is not known when the growth began.
    let sum = overusing.map { $0 + time } ?? time / 2
    (overusing, overuses) = (sum, overuses + 1)
    guard sum > Self.overuseTime, overuses > 1, trend.slope >= lastSlope else { return }
    (overusing, overuses, usage) = (0, 0, .overusing)
  }

  private mutating func adapt(to modified: Double, at time: Int64) {
    let elapsed = CongestionUnit.milliseconds(time.elapsed(since: adapted ?? time))
    adapted = time
    guard modified <= threshold + Self.spike else { return }
    let speed = modified < threshold ? Self.fall : Self.rise
    let change = speed * (modified - threshold) * max(0, min(elapsed, Self.longestStep))
    threshold = max(Self.thresholds.lowerBound, min(threshold + change, Self.thresholds.upperBound))
  }
}
