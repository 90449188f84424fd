/// The rate by the losses: grows below 2 %, shrinks above 10 %, holds between them (draft-ietf-rmcat-gcc-02, section 6).
///
/// With delays known, it bounds the rate only once losses were seen. Rates are bits per second.
struct LossRateControl: Sendable {
  /// Below this fraction, the rate grows; above that one, it shrinks (draft section 6).
  private static let low = 0.02
  private static let high = 0.1
  /// The natural logarithm of the growth in a second, and what is added (libwebrtc, `SendSideBandwidthEstimation`; the draft has
  /// 1.05 per report).
  private static let growth = 0.076_961
  private static let added = 1_000.0
  /// Of the fraction that is lost, what the rate shrinks by (draft section 6).
  private static let decrease = 0.5
  /// Between two decreases, beyond a round trip (libwebrtc, `kBweDecreaseIntervalMs`).
  private static let pause = 300 * CongestionUnit.nanosecondsPerMillisecond
  /// Packets of a measurement (libwebrtc, `kLimitNumPackets`).
  private static let leastPackets = 20
  /// The time of a measurement (the draft counts on reports once in a second), of one whose losses are grave beyond doubt, and of
  /// one whose losses may be grave by chance: in 30 packets, random losses of 5 % exceed 10 % every sixteenth time.
  private static let window = CongestionUnit.nanosecondsPerSecond
  private static let shortestWindow = 200 * CongestionUnit.nanosecondsPerMillisecond
  private static let longestWindow = 3 * CongestionUnit.nanosecondsPerSecond
  /// Standard deviations of the binomial distribution beyond which nothing is chance: 98 of 100 are within.
  private static let certainty = 2.0

  /// The bound; nil: losses do not bound the rate.
  private(set) var bound: Double?
  /// The fraction of the last measurement, 0 to 1.
  private(set) var fraction = 0.0

  /// The bound has not grown since losses set it; then it stays for a rate that the delays lower for a while.
  private var isHeld = false
  private var lost = 0
  private var received = 0
  private var began: Int64?
  private var updated: Int64?
  private var shrunk: Int64?

  /// Creates a control that begins with a bound, when losses are all that is known; nil: without one.
  init(bound: Double?) { self.bound = bound }

  /// Adds the outcome of one packet.
  mutating func note(isLost: Bool) {
    if isLost { lost += 1 } else { received += 1 }
  }

  /// A packet that counted as lost has arrived late.
  mutating func correct() {
    if lost > 0 { (lost, received) = (lost - 1, received + 1) }
  }

  /// Ends the measurement when it has enough packets and time, and gives the fraction that was lost.
  mutating func measure(at now: Int64) -> Double? {
    let time = now.elapsed(since: began ?? now)
    if began == nil || time < 0 { began = now }
    guard lost + received >= Self.leastPackets else { return nil }
    let fraction = Double(lost) / Double(lost + received)
    guard time >= needed(for: fraction) else { return nil }
    forget(at: now)
    return fraction
  }

  private func needed(for fraction: Double) -> Int64 {
    guard fraction > Self.high else { return Self.window }
    let deviation = (fraction * (1 - fraction) / Double(lost + received)).squareRoot()
    return fraction - Self.certainty * deviation > Self.high ? Self.shortestWindow : Self.longestWindow
  }

  /// Begins the measurement again.
  mutating func forget(at now: Int64) { (lost, received, began) = (0, 0, now) }

  /// Follows a measurement, while `target` is sent. True: the losses were grave enough for a decrease.
  ///
  /// While the rate is ramping up, losses of 2 to 10 % do not bound it yet, and graver ones show how far it overshot: the bound
  /// becomes what arrives.
  mutating func update(
    _ fraction: Double, target: Double, throughput: Double?, isRamping: Bool, roundTrip: Int64,
    limits: BandwidthLimits,
    at now: Int64
  ) -> Bool {
    self.fraction = fraction
    let time = max(0, min(CongestionUnit.seconds(now.elapsed(since: updated ?? now)), 1))
    updated = now
    guard fraction >= Self.low else {
      grow(from: target, for: time, limits)
      return false
    }
    guard fraction > Self.high else {
      if !isRamping { hold(target) }
      return false
    }
    if let shrunk, (0..<Self.pause + roundTrip).contains(now.elapsed(since: shrunk)) { return true }
    (shrunk, isHeld) = (now, true)
    let shrinking = min(bound ?? target, target) * (1 - Self.decrease * fraction)
    bound = limits.clamp(isRamping ? min(shrinking, throughput ?? shrinking) : shrinking)
    return true
  }

  /// While losses hold the rate, a bound that has grown is what is sent, not what it could have become.
  private mutating func hold(_ target: Double) {
    if !isHeld { bound = min(bound ?? target, target) }
    isHeld = true
  }

  private mutating func grow(from target: Double, for time: Double, _ limits: BandwidthLimits) {
    let exponent = Self.growth * time
    let next = target * (1 + exponent + exponent * exponent / 2) + Self.added * time
    bound = bound.map { limits.clamp(max($0, next)) }
    isHeld = false
  }

  /// Decreases the bound to a part of it.
  mutating func fallBack(to part: Double, limits: BandwidthLimits) {
    bound = bound.map { limits.clamp($0 * part) }
  }

  /// Losses do not bound the rate from here.
  mutating func unbind() { bound = nil }

  /// Keeps the bound within limits.
  mutating func set(_ limits: BandwidthLimits) { bound = bound.map(limits.clamp) }
}
