internal import MillraceCore

/// How many videos a member is sent: the first ones, as far as its network carries them.
///
/// What does not fit pauses at once. It goes on where it fits with room to spare; and after a while for a trial, because an estimate hardly
/// rises above what is sent. That is so for the first one too: where nothing is left for pictures it pauses like the others.
struct VideoBudget: Sendable, Hashable {
  /// Between a change and the next video that goes on.
  static let settling: Nanoseconds = .milliseconds(2_000)
  /// Before a trial, at first and at most: it doubles with each that fails.
  static let trials = Nanoseconds.milliseconds(10_000)...Nanoseconds.milliseconds(80_000)
  /// The part that must be left over, and the most that is tried, in budgets.
  private static let margin = 0.2
  private static let mostTried = 3.0

  /// The videos that are sent at most.
  private(set) var most = Int.max
  private var changedAt: Nanoseconds = 0
  private var patience = trials.lowerBound
  /// The last video that went on did so for a trial.
  private var isTrial = false

  /// Decides how many of the first videos are sent.
  /// - Parameters:
  ///   - rates: bits a second of each, the paused ones too.
  ///   - budget: bits a second that the network carries; 0: no pictures at all.
  mutating func fit(_ rates: [Int], into budget: Int, at now: Nanoseconds) -> Int {
    guard budget > 0 else { return fitNothing(rates, at: now) }
    let least = min(1, rates.count)
    var count = max(least, min(most, rates.count))
    // A trial lasts until the estimate can have followed.
    if isTrial, count > least, now - changedAt < Self.settling { return count }
    if Self.sum(rates, count) > budget, count > least {
      while count > least, Self.sum(rates, count) > budget { count -= 1 }
      if isTrial { patience = min(patience * 2, Self.trials.upperBound) }
      (most, changedAt, isTrial) = (count, now, false)
      return count
    }
    guard count < rates.count else {
      // All are sent: nothing is held back from those that come.
      if now - changedAt >= Self.settling {
        (most, patience, isTrial) = (.max, Self.trials.lowerBound, false)
      }
      return count
    }
    let wanted = Double(Self.sum(rates, count + 1))
    let isRoomy = wanted <= Double(budget) * (1 - Self.margin)
    let isTriable = isRoomy || wanted <= Double(budget) * Self.mostTried
    if isTriable, now - changedAt >= (isRoomy ? Self.settling : patience) {
      (most, changedAt, isTrial) = (count + 1, now, !isRoomy)
      return count + 1
    }
    most = count
    return count
  }

  /// Nothing is left for pictures: all pause, but for trials of the first.
  private mutating func fitNothing(_ rates: [Int], at now: Nanoseconds) -> Int {
    if isTrial, !rates.isEmpty {
      // It lasts until the estimate can have followed.
      if now - changedAt < Self.settling { return 1 }
      patience = min(patience * 2, Self.trials.upperBound)
      (most, changedAt, isTrial) = (0, now, false)
      return 0
    }
    if most != 0 || rates.isEmpty {
      (most, changedAt, isTrial) = (0, now, false)
      return 0
    }
    guard now - changedAt >= patience else { return 0 }
    (most, changedAt, isTrial) = (1, now, true)
    return 1
  }

  private static func sum(_ rates: [Int], _ count: Int) -> Int {
    rates[..<count].reduce(0) { sum, rate in
      let (total, overflow) = sum.addingReportingOverflow(rate)
      return overflow ? .max : total
    }
  }
}

/// The bits a second of a video, measured over a second.
struct PictureRate: Sendable, Hashable {
  /// What is measured at a time, and after what silence there is no video.
  private static let window: Nanoseconds = .milliseconds(1_000)
  private static let silence: Nanoseconds = .milliseconds(2_000)

  private var begunAt: Nanoseconds?
  private var lastAt: Nanoseconds = 0
  private var bytes = 0
  private var measured = 0

  /// Takes note of a picture.
  mutating func note(_ count: Int, at now: Nanoseconds) {
    lastAt = now
    let start = begunAt ?? now
    begunAt = start
    if now - start >= Self.window {
      measured = Int(Double(bytes) * 8 * 1e9 / Double(now - start))
      (begunAt, bytes) = (now, 0)
    }
    bytes += count
  }

  /// Bits a second; 0: not known, or none comes.
  func bitrate(at now: Nanoseconds) -> Int { now - lastAt > Self.silence ? 0 : measured }
}

/// When pictures were captured, on this machine's clock: spaced as their timestamps are, and never later than they came.
struct CaptureClock: Sendable {
  /// A timestamp that moves by more, in ticks of 90 kHz, or a picture that is later than this, begins again.
  private static let longestStep: Int64 = 900_000
  private static let longestDelay: Nanoseconds = .milliseconds(1_000)
  /// How slowly it follows a clock that is slower than ours: the part of the delay per picture.
  private static let pull: Nanoseconds = 256

  private var last: (ssrc: UInt32, timestamp: Int64, time: Nanoseconds)?

  init() {}

  /// The time of a picture.
  mutating func time(_ timestamp: Int64, of ssrc: UInt32, arrival: Nanoseconds) -> Nanoseconds {
    var time = arrival
    if let last, last.ssrc == ssrc {
      let step = timestamp &- last.timestamp
      if step > 0, step <= Self.longestStep {
        // 90,000 ticks in 1,000,000,000 ns.
        let due = last.time + step * 100_000 / 9
        let delay = arrival - due
        if delay > 0, delay <= Self.longestDelay { time = due + delay / Self.pull }
      }
    }
    last = (ssrc, timestamp, time)
    return time
  }
}
