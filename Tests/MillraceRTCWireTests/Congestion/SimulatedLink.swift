@testable import MillraceRTCWire

/// A bottleneck: a queue that hands out bytes at a rate and drops what does not fit, then a propagation delay and losses.
struct SimulatedLink {
  /// Losses behind the queue.
  enum Loss {
    case none
    /// Each packet by itself.
    case random(Double)
    /// Gilbert's model: the chance of a burst to begin, and of one to end, per packet.
    case bursts(begin: Double, end: Double)
  }

  /// Bits per second.
  var capacity: Double
  /// Of these, what other traffic takes.
  var cross = 0.0
  /// One way.
  var delay = 20 * millisecond
  /// What the queue holds at most, as the time it takes to drain.
  var buffer = second
  var loss = Loss.none
  /// Up to this much is added to the delay, at random, without reordering.
  var jitter: Int64 = 0
  /// Parts per million by which the receiver's clock is fast, and its origin.
  var drift = 0.0
  var origin: Int64 = 0

  private(set) var dropped = 0
  private var free: Int64 = 0
  private var isBurst = false
  private var lastArrival = Int64.min
  private var random: SeededRandom

  init(_ capacity: Double, seed: UInt64 = 1) {
    self.capacity = capacity
    random = SeededRandom(seed: seed)
  }

  /// How long a packet sent now would wait.
  func queue(at now: Int64) -> Int64 { max(0, free - now) }

  /// When a packet arrives on our clock; nil: it is lost.
  mutating func carry(_ bytes: Int, at now: Int64) -> Int64? {
    guard queue(at: now) < buffer else {
      dropped += 1
      return nil
    }
    let rate = max(capacity - cross, 1)
    free = max(free, now) + Int64(Double(bytes * 8) / rate * 1e9)
    guard !loses() else { return nil }
    lastArrival = max(
      lastArrival, free + delay + (jitter > 0 ? Int64.random(in: 0...jitter, using: &random) : 0))
    return lastArrival
  }

  /// The time of the receiver's clock.
  func receiverTime(_ time: Int64) -> Int64 { origin &+ time &+ Int64(Double(time) * drift / 1e6) }

  private mutating func loses() -> Bool {
    switch loss {
    case .none: return false
    case .random(let probability): return random.chance(probability)
    case .bursts(let begin, let end):
      isBurst = random.chance(isBurst ? 1 - end : begin)
      return isBurst
    }
  }
}

/// A sender with an estimator, a link, and a receiver that sends feedback every 100 ms.
struct SimulatedCall {
  /// What was measured in 100 ms.
  struct Sample {
    var time: Int64
    var target: Double
    var queue: Int64
  }

  var link: SimulatedLink
  var estimator: BandwidthEstimator
  /// Bytes of a packet on the network.
  var packetBytes = 1_200
  /// Packets leave in frames of 1/30 s when true, else evenly.
  var sendsFrames = false
  /// The part of the target that is sent.
  var load = 1.0
  /// Feedback that is lost.
  var feedbackLoss = 0.0
  private(set) var now: Int64 = 0
  private(set) var samples: [Sample] = []
  private(set) var sent = 0

  private var random: SeededRandom
  private var nextPacket: Int64 = 0
  private var nextFeedback = 100 * millisecond
  private var waiting: [PacketResult] = []
  private var onTheWay: [(at: Int64, results: [PacketResult])] = []

  init(_ link: SimulatedLink, _ limits: BandwidthLimits = BandwidthLimits(), seed: UInt64 = 9) {
    self.link = link
    estimator = BandwidthEstimator(limits)
    random = SeededRandom(seed: seed)
  }

  /// Runs for a time in steps of a millisecond.
  mutating func run(_ time: Int64) {
    let end = now + time
    while now < end {
      while nextPacket <= now { send() }
      if now >= nextFeedback { report() }
      while let first = onTheWay.first, first.at <= now {
        onTheWay.removeFirst()
        estimator.note(feedback: first.results.span, at: now)
      }
      estimator.tick(at: now)
      if now % (100 * millisecond) == 0 {
        samples.append(
          Sample(time: now, target: Double(estimator.target), queue: link.queue(at: now)))
      }
      now += millisecond
    }
  }

  private mutating func send() {
    let rate = max(Double(estimator.target) * load, 1_000)
    let interval = Int64(Double(packetBytes * 8) / rate * 1e9)
    let count = sendsFrames ? max(1, Int((rate / 30 / Double(packetBytes * 8)).rounded())) : 1
    for _ in 0..<count {
      estimator.noteSent(at: now)
      let arrival = link.carry(packetBytes, at: now)
      waiting.append(
        PacketResult(number: Int64(sent), bytes: packetBytes, sent: now, arrival: arrival))
      sent += 1
    }
    nextPacket += interval * Int64(count)
  }

  /// Reports everything up to the last packet that has arrived.
  private mutating func report() {
    nextFeedback += 100 * millisecond
    guard let last = waiting.lastIndex(where: { $0.arrival.map { $0 <= now } ?? false }) else { return }
    var results = Array(waiting[...last])
    waiting.removeFirst(last + 1)
    guard !random.chance(feedbackLoss) else { return }
    for index in results.indices {
      results[index].arrival = results[index].arrival.map { link.receiverTime($0 / 250_000 * 250_000) }
    }
    onTheWay.append((now + link.delay, results))
  }

  // MARK: What was seen

  /// The mean target since a time.
  func target(since start: Int64) -> Double {
    let part = samples.filter { $0.time >= start }
    return part.reduce(0) { $0 + $1.target } / Double(max(part.count, 1))
  }

  /// The length of the queue that 95 % of the samples since a time do not exceed, and the longest, in milliseconds.
  func queue(since start: Int64) -> (usual: Double, most: Double) {
    let part = samples.filter { $0.time >= start }.map { Double($0.queue) / 1e6 }.sorted()
    guard let most = part.last else { return (0, 0) }
    return (part[(part.count - 1) * 95 / 100], most)
  }
}
