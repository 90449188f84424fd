import Testing

@testable import MillraceRTCWire

@Suite("congestion: signals") struct BandwidthSignalTests {
  /// Feeds an estimator with packets every 10 ms, of which some are lost, and gives the time after the last.
  @discardableResult
  private func feed(
    _ estimator: inout BandwidthEstimator, from start: Int64, for time: Int64, lostEach: Int = .max
  ) -> Int64 {
    var (now, number) = (start, start / (10 * millisecond))
    while now < start + time {
      var results: [PacketResult] = []
      for _ in 0..<10 {
        estimator.noteSent(at: now)
        let isLost = Int(number) % lostEach == 0
        results.append(
          PacketResult(
            number: number, bytes: 1_000, sent: now, arrival: isLost ? nil : now + 20 * millisecond))
        (now, number) = (now + 10 * millisecond, number + 1)
      }
      estimator.note(feedback: results.span, at: now + 40 * millisecond)
    }
    return now
  }

  @Test("limits that do not fit are corrected")
  func limits() {
    let usual = BandwidthLimits()
    #expect(usual.minimum < usual.start && usual.start < usual.maximum)
    #expect(
      BandwidthLimits(minimum: -5, start: 0, maximum: 0)
        == BandwidthLimits(minimum: 5_000, start: 5_000, maximum: 5_000))
    let wide = BandwidthLimits(minimum: .max, start: .min, maximum: .min)
    #expect(wide.minimum == BandwidthLimits.highest && wide.start == wide.maximum)
    #expect(BandwidthLimits(minimum: 10_000, start: 90_000, maximum: 50_000).start == 50_000)
  }

  @Test("new limits hold at once")
  func newLimits() {
    var estimator = BandwidthEstimator()
    #expect(estimator.target == 300_000)
    estimator.set(BandwidthLimits(minimum: 10_000, start: 20_000, maximum: 100_000))
    #expect(estimator.target == 100_000)
    feed(&estimator, from: second, for: 10 * second)
    #expect(estimator.target == 100_000)
    estimator.set(BandwidthLimits(minimum: 400_000, start: 400_000, maximum: 1_000_000))
    #expect(estimator.target == 400_000)
  }

  @Test("a change is reported from 3 % on, and at the beginning")
  func change() {
    var estimator = BandwidthEstimator()
    #expect(estimator.takeChange() == 300_000)
    #expect(estimator.takeChange() == nil)
    estimator.note(remb: 292_000, at: 0)
    #expect(estimator.target == 292_000)
    #expect(estimator.takeChange() == nil)
    estimator.note(remb: 291_000, at: 0)
    #expect(estimator.takeChange() == 291_000)
    estimator.note(remb: 299_000, at: 0)
    #expect(estimator.takeChange() == nil)
    estimator.note(remb: 299_800, at: 0)
    #expect(estimator.takeChange() == 299_800)
  }

  @Test("without feedback, losses below 2 % let the target grow by 8 % per report")
  func growth() {
    var estimator = BandwidthEstimator()
    #expect(estimator.isLossLimited)
    for step in 0...10 as ClosedRange<Int64> { estimator.note(loss: 0.019, at: step * second) }
    #expect((300e3 * 2.15...300e3 * 2.25).contains(Double(estimator.target)))
    let reached = estimator.target
    estimator.note(loss: 0.02, at: 11 * second)
    estimator.note(loss: 0.1, at: 12 * second)
    #expect(estimator.target == reached)
  }

  @Test("without feedback, losses above 10 % shrink it by half of them, once in a round trip and 300 ms")
  func decrease() {
    var estimator = BandwidthEstimator(BandwidthLimits(start: 1_000_000))
    estimator.note(roundTrip: 100 * millisecond)
    estimator.note(loss: 0.2, at: second)
    #expect(estimator.target == 900_000)
    estimator.note(loss: 0.2, at: second + 399 * millisecond)
    #expect(estimator.target == 900_000)
    estimator.note(loss: 0.2, at: second + 400 * millisecond)
    #expect(estimator.target == 810_000)
    #expect(estimator.lossFraction == 0.2)
    for step in 2...100 as ClosedRange<Int64> { estimator.note(loss: 1, at: step * second) }
    #expect(estimator.target == estimator.limits.minimum)
  }

  @Test("REMB bounds the target with losses and with feedback")
  func remb() {
    var estimator = BandwidthEstimator()
    estimator.note(remb: 200_000, at: 0)
    #expect(estimator.target == 200_000)
    estimator.note(remb: 50_000_000, at: 0)
    #expect(estimator.target == 300_000)
    for step in 0...60 as ClosedRange<Int64> { estimator.note(loss: 0, at: step * second) }
    #expect(estimator.target == estimator.limits.maximum)
    estimator.note(remb: 700_000, at: 61 * second)
    #expect(estimator.target == 700_000)
    estimator.note(remb: 1, at: 61 * second)
    #expect(estimator.target == estimator.limits.minimum)
    estimator.note(remb: 400_000, at: 61 * second)
    feed(&estimator, from: 62 * second, for: 5 * second)
    #expect(estimator.target == 400_000)
  }

  @Test("with feedback, the losses of reports are ignored")
  func reportsBesideFeedback() {
    var estimator = BandwidthEstimator()
    let end = feed(&estimator, from: second, for: 3 * second)
    let reached = estimator.target
    #expect(reached > 300_000)
    estimator.note(loss: 0.5, at: end)
    #expect(estimator.target == reached)
    #expect(estimator.lossFraction == 0)
  }

  @Test("20 % lost in feedback shrinks the target, 5 % holds it once the ramp is over")
  func feedbackLosses() {
    var estimator = BandwidthEstimator()
    var end = feed(&estimator, from: second, for: 5 * second)
    let reached = estimator.target
    end = feed(&estimator, from: end, for: 10 * second, lostEach: 5)
    let shrunk = estimator.target
    #expect(Double(shrunk) < 0.8 * Double(reached))
    #expect(estimator.isLossLimited)
    end = feed(&estimator, from: end, for: 2 * second, lostEach: 20)
    let held = estimator.target
    feed(&estimator, from: end, for: 10 * second, lostEach: 20)
    #expect(estimator.target == held)
  }

  @Test("silence after packets decreases the target each second, silence without packets does not")
  func silence() {
    var estimator = BandwidthEstimator()
    estimator.note(roundTrip: 100 * millisecond)
    let end = feed(&estimator, from: second, for: 5 * second)
    let reached = Double(estimator.target)
    estimator.tick(at: end + 60 * second)
    #expect(Double(estimator.target) == reached)
    let start = end + 60 * second
    for time in stride(from: 0, through: 1_099, by: 50) as StrideThrough<Int64> {
      estimator.noteSent(at: start + time * millisecond)
      estimator.tick(at: start + time * millisecond)
    }
    #expect(Double(estimator.target) == reached && !estimator.isSilent)
    estimator.tick(at: start + 1_100 * millisecond)
    #expect(abs(Double(estimator.target) - 0.8 * reached) < 2 && estimator.isSilent)
    estimator.tick(at: start + 2_099 * millisecond)
    #expect(abs(Double(estimator.target) - 0.8 * reached) < 2)
    estimator.tick(at: start + 2_100 * millisecond)
    #expect(abs(Double(estimator.target) - 0.64 * reached) < 2)
    for time in 3...100 as ClosedRange<Int64> { estimator.tick(at: start + time * 2 * second) }
    #expect(estimator.target == estimator.limits.minimum)
    feed(&estimator, from: start + 300 * second, for: 5 * second)
    #expect(!estimator.isSilent)
    #expect(Double(estimator.target) > 0.9 * reached)
  }

  @Test("a peer that sends reports is given 15 s")
  func silenceOfReports() {
    var estimator = BandwidthEstimator()
    estimator.noteSent(at: second)
    estimator.tick(at: 16 * second - 1)
    #expect(estimator.target == 300_000)
    estimator.tick(at: 16 * second)
    #expect(estimator.target == 240_000)
    estimator.note(loss: 0, at: 17 * second)
    estimator.tick(at: 100 * second)
    #expect(estimator.target == 240_000 && !estimator.isSilent)
  }

  @Test("the throughput is not measured across feedback that is missing")
  func missingFeedback() {
    var estimator = BandwidthEstimator()
    for step in 0..<200 as Range<Int64> {
      feed(&estimator, from: step * 400 * millisecond, for: 300 * millisecond)
      guard let throughput = estimator.throughput else { continue }
      #expect(abs(throughput - 800_000) < 10_000)
    }
    #expect(estimator.throughput != nil)
  }

  @Test("a result that comes late corrects the losses and nothing else")
  func lateResults() {
    var estimator = BandwidthEstimator()
    for number in 0..<100 as Range<Int64> {
      let sent = second + number * 10 * millisecond
      let arrival = number % 5 == 0 ? nil : sent + 20 * millisecond
      estimator.note(
        result: PacketResult(number: number, bytes: 500, sent: sent, arrival: arrival),
        at: sent + 90 * millisecond)
      guard number % 5 == 1 else { continue }
      let late = PacketResult(
        number: number - 1, bytes: 500, sent: sent - 10 * millisecond, arrival: sent + 90 * millisecond)
      estimator.note(result: late, at: sent + 95 * millisecond)
    }
    estimator.endFeedback(at: 2 * second)
    estimator.endFeedback(at: 4 * second)
    #expect(estimator.lossFraction == 0)
    #expect(estimator.usage == .normal)
  }
}
