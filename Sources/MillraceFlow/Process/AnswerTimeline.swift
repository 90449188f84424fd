internal import MillraceCore

/// Where a program's sound belongs when it answers sample for sample: at which position and time, to which reply.
///
/// A pure state machine that holds no samples. It is told what the program is given, and asked what the samples mean that
/// come back. Counts are samples per channel. No heap after `init`.
struct AnswerTimeline {
  /// Samples of the answer that share one meaning.
  struct Piece {
    var count: Int
    var position: Int64
    var timestamp: Nanoseconds
    /// What it answers.
    var reply: HeldReply
    /// Something is missing before its first sample.
    var isBroken: Bool
  }

  /// From the `start`-th sample out on, until the next stretch begins.
  private struct Stretch {
    var start: Int64 = 0
    var position: Int64 = 0
    var time: Nanoseconds = 0
    var reply = HeldReply()
    var isBroken = false
  }

  /// Stretches that may wait for their samples: replies within what a program holds back at a time.
  private static let capacity = 32
  /// Longest silence that is given in place of what is missing; a longer gap is a jump.
  private static let longestSilence = 10

  private let inputRate: Int
  private let outputRate: Int
  private var current = Stretch()
  private var pending = [Stretch](repeating: Stretch(), count: capacity)
  private var pendingCount = 0

  /// Samples that the program is given, and that were missing and are not given.
  private var given: Int64 = 0
  private var skipped: Int64 = 0
  /// Samples that came back.
  private var answered: Int64 = 0
  /// Position the next input should have, and whose it is; nil before there is one.
  private var next: Int64?
  private var reply = HeldReply()
  private(set) var hasOrigin = false

  /// Rates in Hz; 0 where the program does not take, or does not give, sound.
  init(inputRate: Int, outputRate: Int) {
    self.inputRate = inputRate
    self.outputRate = outputRate
  }

  /// Sets the time of the first sample out, once.
  mutating func begin(at time: Nanoseconds) {
    guard !hasOrigin else { return }
    hasOrigin = true
    current.time = time
  }

  // MARK: In

  /// Takes note of `count` samples that are to be given next, or are missing for good when `isLost`. Answers how much silence
  /// must be given first. Positions that go back are not believed.
  mutating func admit(_ packet: borrowing Packet, count: Int, isLost: Bool) -> Int {
    let isFirst = next == nil
    let isOther = packet.generation != reply.generation
    let gap = max(0, packet.position &- (next ?? packet.position))
    let missing = isLost ? gap &+ Int64(count) : gap
    let isJump = isOther ? gap > 0 : missing > Int64(inputRate * Self.longestSilence)
    // Too long a loss: what comes after it will be a jump.
    if isLost && isJump && !isOther { return 0 }
    let silence = min(isJump ? (isLost ? Int64(count) : 0) : missing, Int64(inputRate * Self.longestSilence))
    let isNew = HeldReply(of: packet) != reply
    next = packet.position &+ Int64(count)
    if isJump && !isFirst { skipped &+= gap }
    if isFirst || isJump || isNew {
      // Silence before a packet of the same reply is that reply's.
      let start = given &+ (isLost || isOther || isJump ? 0 : silence)
      reply.follow(packet)
      add(
        Stretch(
          start: convert(start), position: convert(start &+ skipped), time: packet.timestamp,
          reply: reply, isBroken: isJump && !isFirst))
    }
    given &+= silence &+ (isLost ? 0 : Int64(count))
    return Int(silence)
  }

  /// Takes back the last `count` samples: they will not be given after all.
  mutating func withdraw(_ count: Int) { given &-= Int64(count) }

  // MARK: Out

  /// The meaning of the next samples out, `limit` at most.
  mutating func answer(limit: Int) -> Piece {
    while pendingCount > 0 && pending[0].start <= answered { advance() }
    var count = limit
    if pendingCount > 0 { count = Int(min(Int64(limit), pending[0].start &- answered)) }
    let offset = answered &- current.start
    let piece = Piece(
      count: count, position: current.position &+ offset,
      timestamp: current.time &+ .samples(offset, rate: outputRate), reply: current.reply,
      isBroken: current.isBroken)
    current.isBroken = false
    answered &+= Int64(count)
    return piece
  }

  // MARK: Stretches

  private mutating func add(_ stretch: Stretch) {
    guard inputRate > 0, outputRate > 0 else { return begin(at: stretch.time) }
    hasOrigin = true
    // What was taken back leaves no place behind.
    while pendingCount > 0 && pending[pendingCount - 1].start >= stretch.start { pendingCount -= 1 }
    // So many only wait when the program does not answer. What is forgotten counts as older than it is, never as newer.
    if pendingCount == Self.capacity { removeFirst() }
    pending[pendingCount] = stretch
    pendingCount += 1
  }

  private mutating func advance() {
    let isBroken = current.isBroken
    current = pending[0]
    current.isBroken = current.isBroken || isBroken
    removeFirst()
  }

  private mutating func removeFirst() {
    for index in 1..<pendingCount { pending[index - 1] = pending[index] }
    pendingCount -= 1
  }

  private func convert(_ frames: Int64) -> Int64 {
    guard inputRate > 0 else { return frames }
    return (frames &* Int64(outputRate) &+ Int64(inputRate) / 2) / Int64(inputRate)
  }
}
