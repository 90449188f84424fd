internal import MillraceCore

/// Where a program's output belongs when it answers sample for sample: position, time, and reply.
///
/// A pure state machine that holds no samples. It records what the program is given and returns what the samples that come back mean.
/// Counts are samples per channel. No heap after `init`.
struct OutputTimeline {
  /// Output samples that belong together.
  struct Piece {
    var count: Int
    var position: Int64
    var timestamp: Nanoseconds
    /// The reply they answer.
    var reply: HeldReply
    /// Samples are missing before the first one.
    var isBroken: Bool
  }

  /// From output sample `start` on, until the next stretch begins.
  private struct Stretch {
    var start: Int64 = 0
    var position: Int64 = 0
    var time: Nanoseconds = 0
    var reply = HeldReply()
    var isBroken = false
  }

  /// Most stretches that can be pending: the replies within what a program buffers.
  private static let capacity = 32
  /// Longest silence, in seconds, inserted for missing samples; a longer gap is a jump.
  private static let longestSilence = 10

  private let inputRate: Int
  private let outputRate: Int
  private var current = Stretch()
  private var pending = [Stretch](repeating: Stretch(), count: capacity)
  private var pendingCount = 0

  /// Samples given to the program, and samples that were missing and not replaced.
  private var given: Int64 = 0
  private var skipped: Int64 = 0
  /// Samples the program returned.
  private var answered: Int64 = 0
  /// Expected position and reply of the next input; nil before the first.
  private var next: Int64?
  private var reply = HeldReply()
  private(set) var hasOrigin = false

  /// Rates in Hz; 0 where the program takes or writes no audio.
  init(inputRate: Int, outputRate: Int) {
    self.inputRate = inputRate
    self.outputRate = outputRate
  }

  /// Sets the time of the first output sample, once.
  mutating func begin(at time: Nanoseconds) {
    guard !hasOrigin else { return }
    hasOrigin = true
    current.time = time
  }

  // MARK: In

  /// Records `count` samples that will be given next, or that are missing for good when `isLost`. Returns how much silence must be
  /// given first. Positions that go back are ignored.
  mutating func admit(_ packet: borrowing Packet, count: Int, isLost: Bool) -> Int {
    let isFirst = next == nil
    let isOther = packet.generation != reply.generation
    let gap = max(0, packet.position &- (next ?? packet.position))
    let missing = isLost ? gap &+ Int64(count) : gap
    let isJump = isOther ? gap > 0 : missing > Int64(inputRate * Self.longestSilence)
    // Too long a loss: what follows is a jump.
    if isLost && isJump && !isOther { return 0 }
    let silence = min(isJump ? (isLost ? Int64(count) : 0) : missing, Int64(inputRate * Self.longestSilence))
    let isNew = HeldReply(of: packet) != reply
    next = packet.position &+ Int64(count)
    if isJump && !isFirst { skipped &+= gap }
    if isFirst || isJump || isNew {
      // Silence before a packet of the same reply belongs to that reply.
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

  /// What the next output samples mean, at most `limit` of them.
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
    // Withdrawn samples leave no stretch behind.
    while pendingCount > 0 && pending[pendingCount - 1].start >= stretch.start { pendingCount -= 1 }
    // So many are pending only when the program does not answer. Merging makes samples count as older, never as newer.
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
