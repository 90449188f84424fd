/// Estimates how much a sender of real-time media may send: by the delays and losses that transport-wide feedback reports
/// (draft-ietf-rmcat-gcc-02 and what libwebrtc made of it), by REMB, or by the losses of RTCP reports.
///
/// A plain value without heap memory; any values may be given to it. All times but those of arrival are nanoseconds of one monotonic
/// clock; rates are bits per second of everything the network carries, with the headers of IP and UDP. With transport-wide feedback,
/// the losses of reports are ignored. REMB is an upper bound whenever it is sent. Without transport-wide feedback the rate grows by 8 %
/// per report at most, because nothing is known about queues.
///
/// What it does not do: it sends no probes and paces no packets; an application that sends far less than the target learns little,
/// and the target stays below one and a half times the throughput and 10 kbit/s while it grows.
public struct BandwidthEstimator: Sendable {
  /// Encoders hear of changes from this part of the target on.
  private static let change = 0.03
  /// A peer with transport-wide feedback, which comes every 50 to 250 ms (libwebrtc, `RemoteEstimatorProxy`), is silent after this
  /// time and a round trip.
  private static let feedbackSilence = CongestionUnit.nanosecondsPerSecond
  /// A peer with reports is silent after three intervals of 5 s (libwebrtc, `kFeedbackTimeoutIntervals`; RFC 3550, section 6.2).
  private static let reportSilence = 15 * CongestionUnit.nanosecondsPerSecond
  /// What remains of the rate, each second of silence (libwebrtc, `SendSideBandwidthEstimation`).
  private static let fallBack = 0.8
  private static let fallBackInterval = CongestionUnit.nanosecondsPerSecond
  /// The range of a round trip.
  private static let roundTrips = 0...10 * CongestionUnit.nanosecondsPerSecond

  /// The range of the target.
  public private(set) var limits: BandwidthLimits
  /// Bits per second that may be sent, within the limits.
  public private(set) var target: Int64
  /// The fraction of packets that the last measurement found lost, 0 to 1.
  public var lossFraction: Double { loss.fraction }
  /// What the delays say; `normal` without transport-wide feedback.
  public var usage: BandwidthUsage { detector.usage }
  /// Bits per second that arrive, by transport-wide feedback; nil: not known.
  public var throughput: Int64? { arrived.rate.map { Int64(min($0, Double(BandwidthLimits.highest))) } }
  /// The target is that of the losses: they, not the delays, bound the rate.
  public var isLossLimited: Bool { loss.bound.map { Int64($0) == target } ?? false }
  /// Nothing was heard from the peer for so long that the target falls.
  public private(set) var isSilent = false

  private var detector = OveruseDetector()
  private var arrived = ThroughputEstimator()
  private var delay: DelayRateControl
  private var loss: LossRateControl
  private var remb: Int64?
  private var hasFeedback = false
  private var hasRoundTrip = false
  private var announced: Int64?
  private var highest: Int64?
  /// The shortest and thus latest round trip of the feedback at hand.
  private var shortest: Int64?
  /// When the first packet was sent after the peer was heard last.
  private var unanswered: Int64?
  private var fell: Int64?

  /// Creates an estimator whose target is `limits.start`.
  public init(_ limits: BandwidthLimits = BandwidthLimits()) {
    self.limits = limits
    target = limits.start
    delay = DelayRateControl(limits)
    loss = LossRateControl(bound: Double(limits.start))
  }

  /// Changes the limits.
  public mutating func set(_ limits: BandwidthLimits) {
    self.limits = limits
    delay.set(limits)
    loss.set(limits)
    settle()
  }

  /// The target, when it moved by 3 % or more since this was asked last, and once at the beginning; nil: the encoders may stay
  /// as they are.
  public mutating func takeChange() -> Int64? {
    if let announced, Double(abs(target - announced)) < Self.change * Double(announced) { return nil }
    announced = target
    return target
  }

  // MARK: What is known

  /// Notes that a packet was sent; without this, silence of the peer is not noticed.
  public mutating func noteSent(at now: Int64) {
    if unanswered == nil { unanswered = now }
  }

  /// Notes the results of one transport-wide feedback, in the order of their numbers.
  public mutating func note(feedback: Span<PacketResult>, at now: Int64) {
    for index in feedback.indices { note(result: feedback[index], at: now) }
    endFeedback(at: now)
  }

  /// Notes one result of a transport-wide feedback that came at `now`; `endFeedback` must follow the last.
  public mutating func note(result: PacketResult, at now: Int64) {
    preferFeedback()
    let isNew = highest.map { result.number > $0 } ?? true
    guard isNew else {
      // What came late was overtaken; its delay is not the queue's.
      if result.arrival != nil { loss.correct() }
      return
    }
    // Between two numbers, feedback is missing.
    if let highest, result.number.elapsed(since: highest) > 1 { arrived.skip() }
    highest = result.number
    loss.note(isLost: result.arrival == nil)
    guard let arrival = result.arrival else { return }
    arrived.note(bytes: CongestionUnit.packetBytes(result.bytes), at: arrival)
    detector.note(sent: result.sent, arrival: arrival, at: now)
    shortest = min(shortest ?? .max, max(0, now.elapsed(since: result.sent)))
  }

  /// Changes the target by the results that were noted.
  public mutating func endFeedback(at now: Int64) {
    preferFeedback()
    if isSilent { arrived = ThroughputEstimator() }
    heard(at: now)
    if !hasRoundTrip, let shortest { delay.roundTrip = min(shortest, Self.roundTrips.upperBound) }
    shortest = nil
    delay.update(detector.usage, throughput: arrived.rate, at: now)
    if let fraction = loss.measure(at: now) { follow(loss: fraction, at: now) }
    settle()
  }

  /// Notes the fraction of packets that a report says are lost, 0 to 1 (RFC 3550, section 6.4.1); ignored with transport-wide feedback.
  public mutating func note(loss fraction: Double, at now: Int64) {
    guard !hasFeedback, fraction >= 0 else { return }
    heard(at: now)
    follow(loss: min(fraction, 1), at: now)
    settle()
  }

  /// Notes a REMB in bits per second (draft-alvestrand-rmcat-remb-03): an upper bound until the next.
  public mutating func note(remb rate: Int64, at now: Int64) {
    if !hasFeedback { heard(at: now) }
    remb = max(0, rate)
    settle()
  }

  /// Notes a round trip in nanoseconds, as reports give it. Without it, that of transport-wide feedback is used.
  public mutating func note(roundTrip: Int64) {
    hasRoundTrip = true
    delay.roundTrip = max(Self.roundTrips.lowerBound, min(roundTrip, Self.roundTrips.upperBound))
  }

  /// Decreases the target while the peer is silent; to be called several times in a second.
  public mutating func tick(at now: Int64) {
    guard let unanswered else { return }
    let patience = hasFeedback ? Self.feedbackSilence + delay.roundTrip : Self.reportSilence
    guard now.elapsed(since: unanswered) >= patience else { return }
    if let fell, now >= fell, now.elapsed(since: fell) < Self.fallBackInterval { return }
    (isSilent, fell) = (true, now)
    delay.fallBack(to: Double(target) / delay.rate * Self.fallBack, at: now)
    loss.fallBack(to: Self.fallBack, limits: limits)
    // What is known about losses is as old as the silence.
    loss.forget(at: now)
    settle()
  }

  // MARK: The target

  /// From the first feedback on, delays bound the rate; what reports said about losses does not count any more.
  private mutating func preferFeedback() {
    guard !hasFeedback else { return }
    hasFeedback = true
    loss = LossRateControl(bound: nil)
  }

  private mutating func heard(at now: Int64) {
    (unanswered, isSilent, fell) = (nil, false, nil)
  }

  private mutating func follow(loss fraction: Double, at now: Int64) {
    let isGrave = loss.update(
      fraction, target: Double(target), throughput: arrived.rate, isRamping: hasFeedback && delay.isRamping,
      roundTrip: delay.roundTrip,
      limits: limits, at: now)
    if isGrave { delay.endRamp() }
    // A bound that losses have left behind is none.
    if hasFeedback, let bound = loss.bound, bound > Double(limits.maximum) - 1 { loss.unbind() }
  }

  private mutating func settle() {
    var rate = hasFeedback ? delay.rate : .infinity
    if let bound = loss.bound { rate = min(rate, bound) }
    if let remb { rate = min(rate, Double(remb)) }
    target = Int64(limits.clamp(rate))
  }
}
