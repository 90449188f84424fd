import Testing

@testable import MillraceRTCWire

@Suite("congestion: hostile results") struct BandwidthHostileTests {
  private let limits = BandwidthLimits(minimum: 50_000, start: 300_000, maximum: 2_000_000)

  private func isWithin(_ estimator: BandwidthEstimator) -> Bool {
    limits.minimum <= estimator.target && estimator.target <= limits.maximum
      && (0...1).contains(estimator.lossFraction)
  }

  @Test("impossible results keep the target within its limits")
  func impossible() {
    let arrivals: [(Int64) -> Int64?] = [
      { 0 &- $0 }, { $0 &- 5 * second }, { _ in nil }, { _ in 0 }, { _ in .min }, { _ in .max },
      { $0 % 2 == 0 ? .min : .max }, { $0 &* 1_000_003 },
    ]
    let times: [(Int64) -> Int64] = [{ $0 }, { 0 &- $0 }, { _ in .max }, { _ in .min }, { $0 &* 7_000_003 }]
    for arrival in arrivals {
      for time in times {
        for bytes in [0, 65_535, .max, .min] {
          var estimator = BandwidthEstimator(limits)
          for number in 0..<300 as Range<Int64> {
            let sent = time(number * 10 * millisecond)
            estimator.noteSent(at: sent)
            estimator.note(
              result: PacketResult(number: number, bytes: bytes, sent: sent, arrival: arrival(sent)),
              at: number * 10 * millisecond)
            if number % 10 == 9 { estimator.endFeedback(at: number * 10 * millisecond) }
            estimator.tick(at: sent)
          }
          #expect(isWithin(estimator))
        }
      }
    }
  }

  @Test("when all is lost, the target falls to its minimum")
  func allLost() {
    var estimator = BandwidthEstimator(limits)
    for number in 0..<3_000 as Range<Int64> {
      let now = number * 10 * millisecond
      estimator.note(result: PacketResult(number: number, bytes: 1_000, sent: now, arrival: nil), at: now)
      if number % 10 == 9 { estimator.endFeedback(at: now) }
    }
    #expect(estimator.target == limits.minimum)
    #expect(estimator.lossFraction == 1)
  }

  @Test("random signals keep the target within its limits")
  func random() {
    var random = SeededRandom(seed: 5)
    var estimator = BandwidthEstimator(limits)
    var now: Int64 = 0
    func any(_ usual: Int64) -> Int64 {
      switch random.next() % 16 {
      case 0: Int64(bitPattern: random.next())
      case 1: [.min, .max, 0, -1].randomElement(using: &random) ?? 0
      default: usual &+ Int64(random.next() % 100_000_000) - 50_000_000
      }
    }
    for step in 0..<20_000 as Range<Int64> {
      now = now &+ Int64(random.next() % 20_000_000)
      switch random.next() % 12 {
      case 0:
        estimator.note(
          loss: [0, 0.5, 2, -1, .nan, .infinity].randomElement(using: &random) ?? 0, at: any(now))
      case 1: estimator.note(remb: any(1_000_000), at: any(now))
      case 2: estimator.note(roundTrip: any(50 * millisecond))
      case 3: estimator.tick(at: any(now))
      case 4: estimator.endFeedback(at: any(now))
      case 5: _ = estimator.takeChange()
      default:
        estimator.noteSent(at: any(now))
        let result = PacketResult(
          number: random.next() % 64 == 0 ? any(step) : step, bytes: Int(any(1_000)), sent: any(now),
          arrival: random.next() % 8 == 0 ? nil : any(now))
        estimator.note(result: result, at: any(now))
      }
      #expect(isWithin(estimator))
      #expect(estimator.throughput ?? 0 >= 0)
      if step % 1_000 == 999 { estimator = BandwidthEstimator(limits) }
    }
  }

  @Test("an estimator recovers from a receiver that reported nonsense")
  func recovery() {
    var call = SimulatedCall(SimulatedLink(1e6))
    call.run(5 * second)
    for index in 0..<50 as Range<Int64> {
      let result = PacketResult(
        number: Int64(call.sent) - 1, bytes: 65_535, sent: index % 2 == 0 ? .max : .min, arrival: index)
      call.estimator.note(result: result, at: call.now)
    }
    call.estimator.endFeedback(at: call.now)
    call.run(30 * second)
    #expect(call.target(since: 25 * second) > 750e3)
  }
}
