import Testing

@testable import MillraceRTCWire

@Suite("congestion: receiver's estimate") struct ReceiverEstimatorTests {
  /// A sender that sends what the last value allows, and what its receiver said.
  private struct Stream {
    var link: SimulatedLink
    var receiver: ReceiverEstimator
    var rate = 300e3
    var offset: UInt64 = 0
    var reports: [(time: Int64, value: Int64)] = []
    var now: Int64 = 0
    var next: Int64 = 0
    var isVideo = false
    var onTheWay: [(stamp: UInt32, arrival: Int64)] = []

    mutating func run(_ time: Int64) {
      let end = now + time
      while now < end {
        while next <= now { send() }
        while let first = onTheWay.first, first.arrival <= now {
          onTheWay.removeFirst()
          receiver.note(stamp: first.stamp, bytes: 1_200, at: link.receiverTime(first.arrival))
        }
        if let value = receiver.takeReport(at: link.receiverTime(now)) {
          reports.append((now, value))
          rate = Double(value)
        }
        now += millisecond
      }
    }

    private mutating func send() {
      let count = isVideo ? max(1, Int((rate / 30 / 9_600).rounded())) : 1
      for _ in 0..<count {
        if let arrival = link.carry(1_200, at: now) { onTheWay.append((stamp, arrival)) }
      }
      next += Int64(9_600 * Double(count) / rate * 1e9)
    }

    private var stamp: UInt32 {
      let time = UInt64(now)
      if isVideo { return UInt32(truncatingIfNeeded: offset + time * 9 / 100_000) }
      return UInt32(truncatingIfNeeded: (offset + (time << 18) / 1_000_000_000) & 0xFF_FFFF)
    }
  }

  @Test("the value converges to 80 to 100 % of a link", arguments: [300e3, 1e6, 5e6], [false, true])
  func convergence(_ capacity: Double, _ isVideo: Bool) {
    let clock: ReceiverEstimator.SendClock = isVideo ? .timestamps(rate: 90_000) : .absoluteSendTime
    var stream = Stream(link: SimulatedLink(capacity), receiver: ReceiverEstimator(clock: clock))
    stream.isVideo = isVideo
    stream.link.drift = 200
    // Both stamps wrap within the test: after 20 s, and every 64 s.
    if isVideo { stream.offset = (1 << 32) - 20 * 90_000 }
    stream.run(100 * second)
    let late = stream.reports.filter { $0.time > 20 * second }.map { Double($0.value) / capacity }
    let mean = late.reduce(0, +) / Double(max(late.count, 1))
    #expect((0.75...1).contains(mean), "\(mean)")
    #expect(late.allSatisfy { (0.6...1.2).contains($0) })
  }

  @Test("a value comes once in a second, and at once when it falls")
  func interval() {
    var stream = Stream(link: SimulatedLink(1e6), receiver: ReceiverEstimator(clock: .absoluteSendTime))
    stream.run(20 * second)
    for (earlier, later) in zip(stream.reports, stream.reports.dropFirst()) {
      let isFall = Double(later.value) < 0.97 * Double(earlier.value)
      #expect(later.time - earlier.time >= second || isFall)
      #expect(later.time - earlier.time < 1_100 * millisecond)
    }
    let before = stream.reports.last?.value ?? 0
    stream.link.capacity = 500e3
    stream.run(2 * second)
    let fall = stream.reports.first { $0.time >= 20 * second && Double($0.value) < 0.97 * Double(before) }
    #expect((fall?.time ?? .max) < 21 * second)
    let late = stream.reports.filter { $0.time > 19 * second }
    #expect(zip(late, late.dropFirst()).contains { $1.time - $0.time < 900 * millisecond })
    #expect((stream.reports.last?.value ?? .max) < 500_000)
  }

  @Test("nothing is said before enough has arrived, and when nothing arrives")
  func silence() {
    var stream = Stream(link: SimulatedLink(1e6), receiver: ReceiverEstimator(clock: .absoluteSendTime))
    #expect(stream.receiver.takeReport(at: 0) == nil)
    stream.run(400 * millisecond)
    #expect(stream.reports.isEmpty && stream.receiver.estimate == nil)
    stream.run(10 * second)
    #expect(!stream.reports.isEmpty)
    let count = stream.reports.count
    #expect(stream.receiver.takeReport(at: stream.now + 5 * second) == nil)
    // Another sender with other stamps is no jump of the delay.
    stream.offset = 0x80_0000
    (stream.now, stream.next) = (stream.now + 5 * second, stream.now + 5 * second)
    stream.onTheWay = []
    stream.run(5 * second)
    #expect(stream.reports.count > count)
    #expect(stream.receiver.usage != .overusing)
  }

  @Test("a sender that sends much from the beginning is not cut down to the start")
  func fastStart() {
    var stream = Stream(link: SimulatedLink(10e6), receiver: ReceiverEstimator(clock: .absoluteSendTime))
    stream.rate = 3e6
    stream.run(2 * second)
    #expect(stream.reports.allSatisfy { $0.value > 2_500_000 })
    #expect(stream.reports.count >= 1)
  }

  @Test("random packets keep the value within its limits")
  func hostile() {
    let limits = BandwidthLimits(minimum: 50_000, start: 300_000, maximum: 2_000_000)
    var random = SeededRandom(seed: 11)
    for rate in [0, -1, 1, 90_000, .max] {
      var receiver = ReceiverEstimator(limits, clock: rate == 1 ? .absoluteSendTime : .timestamps(rate: rate))
      var now: Int64 = 0
      for _ in 0..<5_000 {
        now += Int64(random.next() % 10_000_000)
        let time = random.next() % 32 == 0 ? Int64(bitPattern: random.next()) : now
        let bytes = [0, 65_535, 1_200, .min, .max].randomElement(using: &random) ?? 0
        receiver.note(stamp: UInt32(truncatingIfNeeded: random.next()), bytes: bytes, at: time)
        receiver.note(roundTrip: time)
        let value = receiver.takeReport(at: time) ?? limits.minimum
        #expect(limits.minimum <= value && value <= limits.maximum)
      }
    }
  }
}
