import Testing

@testable import MillraceRTCWire

@Suite("congestion: simulated links") struct BandwidthLinkTests {
  /// Capacities of links in bits per second.
  static let capacities = [300e3, 1e6, 5e6]

  private func call(_ capacity: Double, seed: UInt64 = 1, _ change: (inout SimulatedLink) -> Void = { _ in })
    -> SimulatedCall
  {
    var link = SimulatedLink(capacity, seed: seed)
    change(&link)
    return SimulatedCall(link)
  }

  @Test(
    "the target converges to 80 to 100 % of a link in 10 s, without a standing queue", arguments: capacities)
  func convergence(_ capacity: Double) {
    for jitter in [0, 10 * millisecond] {
      var call = call(capacity) { $0.jitter = jitter }
      call.run(40 * second)
      let share = call.target(since: 10 * second) / capacity
      #expect((0.8...1).contains(share), "\(share) of \(capacity)")
      #expect((0.8...1.1).contains(call.samples[100].target / capacity))
      #expect(call.queue(since: 10 * second).most < 100)
      #expect(call.link.dropped == 0)
    }
  }

  @Test("frames that leave at once are not taken for a queue", arguments: capacities)
  func frames(_ capacity: Double) {
    var call = call(capacity) { $0.jitter = 5 * millisecond }
    call.sendsFrames = true
    call.run(30 * second)
    let share = call.target(since: 10 * second) / capacity
    #expect((0.8...1).contains(share), "\(share) of \(capacity)")
    #expect(call.queue(since: 10 * second).most < 100)
  }

  @Test("longer round trips converge, too", arguments: [100, 200] as [Int64])
  func roundTrip(_ oneWay: Int64) {
    var call = call(1e6) { $0.delay = oneWay * millisecond }
    call.run(40 * second)
    #expect((0.8...1).contains(call.target(since: 15 * second) / 1e6))
    #expect(call.queue(since: 15 * second).usual < 150)
  }

  @Test("half of the capacity is followed in 2 s, and its return, too", arguments: capacities)
  func halving(_ capacity: Double) {
    var call = call(capacity)
    call.run(20 * second)
    call.link.capacity = capacity / 2
    call.run(2 * second)
    #expect(Double(call.estimator.target) < 0.5 * capacity)
    #expect(Double(call.estimator.target) > 0.25 * capacity)
    call.run(8 * second)
    #expect((0.75...1).contains(call.target(since: 24 * second) / (capacity / 2)))
    #expect(call.queue(since: 26 * second).usual < 100)
    call.link.capacity = capacity
    call.run(20 * second)
    #expect((0.8...1).contains(call.target(since: 46 * second) / capacity))
  }

  @Test("5 % random loss without a queue leaves more than half", arguments: capacities)
  func randomLoss(_ capacity: Double) {
    for seed in 1...8 as ClosedRange<UInt64> {
      var call = call(capacity, seed: seed) { $0.loss = .random(0.05) }
      call.run(30 * second)
      let share = call.target(since: 10 * second) / capacity
      #expect(share > 0.65, "seed \(seed): \(share) of \(capacity)")
    }
  }

  @Test("3 % loss in bursts leaves more than half")
  func burstLoss() {
    for seed in 1...8 as ClosedRange<UInt64> {
      var call = call(1e6, seed: seed) { $0.loss = .bursts(begin: 0.01, end: 0.3) }
      call.run(30 * second)
      #expect(call.target(since: 10 * second) > 650e3, "seed \(seed)")
    }
  }

  @Test("30 % loss shrinks the target, which grows again after it")
  func graveLoss() {
    var call = call(5e6) { $0.loss = .random(0.3) }
    call.run(15 * second)
    #expect(call.target(since: 10 * second) < 250e3)
    #expect(call.estimator.isLossLimited)
    call.link.loss = .none
    call.run(20 * second)
    #expect(call.estimator.target > 2 * BandwidthLimits().minimum)
    #expect(call.estimator.lossFraction == 0)
  }

  @Test(
    "a queue too short to show a delay is found by its losses",
    arguments: [(1e6, 10), (5e6, 3)] as [(Double, Int64)])
  func shallowQueue(_ capacity: Double, _ buffer: Int64) {
    var call = call(capacity) { $0.buffer = buffer * millisecond }
    call.run(40 * second)
    let share = call.target(since: 10 * second) / capacity
    #expect((0.8...1.09).contains(share), "\(share)")
    #expect(Double(call.link.dropped) < 0.09 * Double(call.sent))
  }

  @Test("constant traffic beside ours keeps its share")
  func crossTraffic() {
    var call = call(1e6)
    call.run(15 * second)
    call.link.cross = 400e3
    call.run(20 * second)
    #expect((0.8...1).contains(call.target(since: 20 * second) / 600e3))
    #expect(call.queue(since: 20 * second).most < 100)
  }

  @Test("feedback that is lost does not change the estimate", arguments: [0.1, 0.3])
  func lostFeedback(_ part: Double) {
    var call = call(1e6)
    call.feedbackLoss = part
    call.run(40 * second)
    #expect((0.8...1).contains(call.target(since: 10 * second) / 1e6))
    #expect(call.queue(since: 10 * second).most < 120)
  }

  @Test("when feedback stops, the target falls, and when it returns, the link is found again in 5 s")
  func outage() {
    var call = call(1e6)
    call.run(20 * second)
    call.feedbackLoss = 1
    call.run(6 * second)
    #expect(call.estimator.target < 400_000)
    #expect(call.estimator.isSilent)
    call.feedbackLoss = 0
    call.run(15 * second)
    #expect((0.8...1).contains(call.target(since: 31 * second) / 1e6))
    #expect(call.queue(since: 31 * second).most < 100)
  }

  @Test("clocks that drift by 200 ppm do not look like a queue", arguments: [200.0, -200])
  func drift(_ drift: Double) {
    var call = call(1e6) { $0.drift = drift }
    call.run(60 * second)
    #expect((0.8...1).contains(call.target(since: 10 * second) / 1e6))
    #expect(call.queue(since: 10 * second).most < 100)
  }

  @Test("the origin of the receiver's clock has no meaning, and it may jump", arguments: [-1, 1] as [Int64])
  func clockJump(_ direction: Int64) {
    var call = call(1e6) { $0.origin = direction * (.max / 2) }
    call.run(20 * second)
    call.link.origin += direction * 3_600 * second
    call.run(20 * second)
    #expect(call.estimator.target > 700_000)
    call.link.origin -= direction * 7_200 * second
    call.run(20 * second)
    #expect(call.estimator.target > 700_000)
    #expect((0.75...1).contains(call.target(since: 10 * second) / 1e6))
  }

  @Test("a sender that sends less is not given far more than it sends")
  func applicationLimit() {
    var call = call(5e6)
    call.load = 0.2
    call.run(60 * second)
    let arriving = Double(call.estimator.throughput ?? 0)
    #expect(call.estimator.target >= 300_000)
    #expect(Double(call.estimator.target) < max(330e3, 1.7 * arriving + 10_000))
  }
}
