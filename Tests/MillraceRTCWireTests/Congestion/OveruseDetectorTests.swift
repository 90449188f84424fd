import Testing

@testable import MillraceRTCWire

@Suite("congestion: delays") struct OveruseDetectorTests {
  /// Feeds packets every 10 ms whose delay changes by so many milliseconds with each.
  private func feed(_ detector: inout OveruseDetector, _ change: Double, packets: Int, from first: Int = 0)
    -> [BandwidthUsage]
  {
    var usages: [BandwidthUsage] = []
    for index in first..<first + packets {
      let sent = Int64(index) * 10 * millisecond
      let delay = Int64((100 + Double(index - first) * change) * 1e6)
      detector.note(sent: sent, arrival: sent + delay, at: sent + delay)
      usages.append(detector.usage)
    }
    return usages
  }

  @Test("a delay that grows is over-use, one that falls is under-use, one that stays is neither")
  func usage() {
    var detector = OveruseDetector()
    #expect(feed(&detector, 0, packets: 100).allSatisfy { $0 == .normal })
    let growing = feed(&detector, 2, packets: 60, from: 100)
    #expect(growing.contains(.overusing) && !growing.contains(.underusing))
    #expect((growing.firstIndex(of: .overusing) ?? 60) < 30)
    detector = OveruseDetector()
    _ = feed(&detector, 0, packets: 40)
    #expect(feed(&detector, -1, packets: 60, from: 40).contains(.underusing))
  }

  @Test("random delays that do not grow are no over-use")
  func jitter() {
    var random = SeededRandom(seed: 3)
    var detector = OveruseDetector()
    var overuses = 0
    for index in 0..<6_000 as Range<Int64> {
      let sent = index * 10 * millisecond
      let arrival = sent + 20 * millisecond + Int64.random(in: 0...8 * millisecond, using: &random)
      detector.note(sent: sent, arrival: arrival, at: arrival)
      if detector.usage == .overusing { overuses += 1 }
    }
    #expect(overuses < 30)
  }

  @Test("packets within 5 ms, and bursts out of a queue, are one group")
  func groups() {
    var groups = PacketGroups()
    func note(_ sent: Int64, _ arrival: Int64) -> PacketGroups.Step? {
      groups.note(sent: sent * millisecond, arrival: arrival * millisecond, at: arrival * millisecond)
    }
    #expect(note(0, 100) == nil)
    #expect(note(5, 104) == nil)
    // Sent 15 ms later, and 4 ms later out of the queue.
    #expect(note(20, 108) == nil)
    #expect(note(40, 140) == nil)
    let step = note(60, 165)
    #expect(
      step == PacketGroups.Step(sent: 20 * millisecond, arrived: 32 * millisecond, arrival: 140 * millisecond)
    )
    // One that was overtaken counts for nothing.
    #expect(note(30, 166) == nil)
    #expect(note(80, 180)?.arrived == 25 * millisecond)
  }

  @Test("a jump of either clock begins the groups again")
  func jumps() {
    var groups = PacketGroups()
    var steps = 0
    var now: Int64 = 0
    func feed(sentBy: Int64, arrivalBy: Int64, _ count: Int) -> Int {
      steps = 0
      for _ in 0..<count {
        now += 10 * millisecond
        guard let step = groups.note(sent: now &+ sentBy, arrival: now &+ arrivalBy, at: now) else {
          continue
        }
        #expect(step.arrived < second && step.sent < second)
        steps += 1
      }
      return steps
    }
    #expect(feed(sentBy: 0, arrivalBy: 0, 50) == 48)
    #expect(feed(sentBy: 0, arrivalBy: 3_600 * second, 50) >= 44)
    #expect(feed(sentBy: 0, arrivalBy: -3_600 * second, 50) >= 42)
    #expect(feed(sentBy: -3_600 * second, arrivalBy: -3_600 * second, 150) >= 90)
  }

  @Test("the slope is that of the delay")
  func slope() {
    var trend = DelayTrend()
    for index in 1...2_500 as ClosedRange<Int64> {
      let step = PacketGroups.Step(
        sent: 10 * millisecond, arrived: 11 * millisecond, arrival: index * 11 * millisecond)
      trend.note(step)
      if index == 19 { #expect(trend.slope == 0) }
    }
    // One millisecond in eleven.
    #expect(abs(trend.slope - 1.0 / 11) < 1e-6)
  }

  @Test("the throughput follows what arrives, and skips what is not known")
  func throughput() {
    var throughput = ThroughputEstimator()
    var now: Int64 = 0
    func feed(_ bytes: Int, _ packets: Int) {
      for _ in 0..<packets {
        now += 10 * millisecond
        throughput.note(bytes: bytes, at: now)
      }
    }
    feed(1_000, 50)
    #expect(throughput.rate == nil)
    feed(1_000, 150)
    #expect(abs((throughput.rate ?? 0) - 800_000) < 20_000)
    feed(500, 300)
    #expect(abs((throughput.rate ?? 0) - 400_000) < 20_000)
    for _ in 0..<100 {
      throughput.skip()
      now += 100 * millisecond
      feed(500, 20)
      #expect(abs((throughput.rate ?? 0) - 400_000) < 20_000)
    }
  }
}
