/// The rate by the delays: increased while the queue is normal, decreased below the throughput when it grows
/// (draft-ietf-rmcat-gcc-02, section 5.5; libwebrtc, `AimdRateControl`).
///
/// Until the link was full for the first time, the rate follows the throughput by the accelerated ramp-up of RFC 8698, section
/// 4.3, in the place of libwebrtc's probes. Rates are bits per second.
struct DelayRateControl: Sendable {
  /// Of the throughput, what is sent after an over-use (draft section 5.5, `beta`).
  private static let decrease = 0.85
  /// The natural logarithm of 1.08, the growth in a second (draft section 5.5, `eta`).
  private static let growth = 0.076_961
  /// The slowest growth, in bits per second (draft section 5.5).
  private static let leastGrowth = 1_000.0
  /// The rate never grows farther than this above the throughput (draft section 5.5 has the factor, libwebrtc the sum).
  private static let mostAbove = (factor: 1.5, sum: 10_000.0)
  /// What the detector takes to see an over-use (draft section 5.5: `response_time_ms`).
  private static let detection = 100 * CongestionUnit.nanosecondsPerMillisecond
  /// Near convergence: one packet of this size in two response times, frames being 1/30 s (libwebrtc,
  /// `GetNearMaxIncreaseRateBpsPerSecond`).
  private static let packetBits = 1_200.0 * 8
  private static let framesPerSecond = 30.0
  private static let leastSlope = 4_000.0
  /// The range of the time between two decreases (libwebrtc, `TimeToReduceFurther`).
  private static let pauses =
    10 * CongestionUnit.nanosecondsPerMillisecond...200 * CongestionUnit.nanosecondsPerMillisecond
  /// A throughput below this part of the rate decreases it at once (libwebrtc, `TimeToReduceFurther`).
  private static let collapse = 0.5
  /// Ramp-up: the longest queue that it may build, and the largest step (RFC 8698, figure 6: QBOUND and GAMMA_MAX).
  private static let rampQueue = 50.0
  private static let rampStep = 0.5
  /// Ramp-up: what a step takes beyond the round trip, in milliseconds (RFC 8698, figure 6: DELTA and DFILT).
  private static let rampDelay = 100.0 + 120

  private enum Action { case hold, increase }

  /// The rate.
  private(set) var rate: Double
  /// The link was not full yet.
  private(set) var isRamping = true
  /// The round trip in nanoseconds (libwebrtc begins with `kDefaultRtt`).
  var roundTrip = 200 * CongestionUnit.nanosecondsPerMillisecond

  private var limits: BandwidthLimits
  private var action = Action.increase
  private var capacity = LinkCapacity()
  private var changed: Int64?

  init(_ limits: BandwidthLimits) {
    self.limits = limits
    rate = Double(limits.start)
  }

  /// Changes the limits.
  mutating func set(_ limits: BandwidthLimits) {
    self.limits = limits
    rate = limits.clamp(rate)
  }

  /// Leaves the ramp-up, after losses.
  mutating func endRamp() { isRamping = false }

  /// Decreases the rate to a part of it, for a peer that is silent; when it is heard again, the link is explored as a new one.
  mutating func fallBack(to part: Double, at now: Int64) {
    rate = limits.clamp(rate * part)
    (isRamping, changed) = (true, now)
    capacity.reset()
  }

  /// Follows what the detector says; `throughput` is nil when it is not known.
  mutating func update(_ usage: BandwidthUsage, throughput: Double?, at now: Int64) {
    if let last = changed, now < last { changed = now }
    switch usage {
    case .overusing: if mayDecrease(throughput, at: now) { decrease(throughput, at: now) }
    case .underusing: action = .hold
    case .normal:
      if action == .hold { changed = now }
      action = .increase
      increase(throughput, at: now)
    }
  }

  // MARK: Increase

  private mutating func increase(_ throughput: Double?, at now: Int64) {
    let time = CongestionUnit.seconds(max(0, now.elapsed(since: changed ?? now)))
    changed = now
    if let upper = capacity.upper, let throughput, throughput > upper { capacity.reset() }
    let limit = throughput.map { $0 * Self.mostAbove.factor + Self.mostAbove.sum } ?? .infinity
    var next = rate + (capacity.rate == nil ? growth(time) : slope * time)
    if isRamping, let throughput { next = max(next, throughput * (1 + ramp)) }
    // A rate above its limit, for a sender that has less to send, stays.
    rate = limits.clamp(max(rate, min(next, limit)))
  }

  private func growth(_ time: Double) -> Double {
    let exponent = Self.growth * min(time, 1)
    return max(rate * (exponent + exponent * exponent / 2), Self.leastGrowth * min(time, 1))
  }

  /// Bits per second in a second, near convergence.
  private var slope: Double {
    let frame = rate / Self.framesPerSecond
    let packet = frame / (frame / Self.packetBits).rounded(.up)
    let response = 2 * CongestionUnit.seconds(roundTrip + Self.detection)
    return max(Self.leastSlope, packet / response)
  }

  private var ramp: Double {
    min(Self.rampStep, Self.rampQueue / (CongestionUnit.milliseconds(roundTrip) + Self.rampDelay))
  }

  // MARK: Decrease

  private func mayDecrease(_ throughput: Double?, at now: Int64) -> Bool {
    guard let changed, action == .hold else { return true }
    guard let throughput else { return now.elapsed(since: changed) >= Self.pauses.upperBound }
    let pause = max(Self.pauses.lowerBound, min(roundTrip, Self.pauses.upperBound))
    return now.elapsed(since: changed) >= pause || throughput < Self.collapse * rate
  }

  private mutating func decrease(_ throughput: Double?, at now: Int64) {
    (action, changed, isRamping) = (.hold, now, false)
    guard let throughput else {
      // libwebrtc halves the rate when it does not know the throughput (`DelayBasedBwe`).
      rate = limits.clamp(rate / 2)
      return
    }
    var next = throughput * Self.decrease
    if next > rate, let average = capacity.rate { next = average * Self.decrease }
    rate = limits.clamp(min(rate, next))
    if let lower = capacity.lower, throughput < lower { capacity.reset() }
    capacity.note(throughput)
  }
}
