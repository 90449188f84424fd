internal import MillraceCore

/// Where the samples of an encoder go: which frame, at which place, between how much silence.
///
/// A pure state machine: it is told of packets and closed at the end, and answers what to do next. It holds
/// no samples. Positions inside count from the first input sample ever, or
/// from 0 when that lies before 0.
struct FrameTimeline {
  /// What to do next.
  enum Step: Equatable {
    /// Put `count` samples of silence into the frame behind the first `offset`.
    case silence(offset: Int, count: Int)
    /// Put the next `count` samples of the input into the frame behind the first `offset`.
    case samples(offset: Int, count: Int)
    /// Whole frames of silence are left out here: forget the signal so far.
    case skip
    /// Code the frame.
    case encode(Slot)
  }

  /// What describes one coded frame.
  struct Slot: Equatable {
    /// Position of its first decoded sample.
    var position: Int64
    var duration: Int
    /// Padding at its end.
    var trimEnd: Int
    /// Time of its first decoded sample.
    var timestamp: Nanoseconds
    /// Nothing comes after it.
    var isLast: Bool
    /// The last of an utterance lies in it.
    var endsUtterance = false
  }

  private let rate: Int
  private let frame: Int
  private let lookahead: Int

  /// The input position that counts as 0; nil before the first packet.
  private var origin: Int64?
  private var frameStart: Int64 = 0
  private var fill = 0
  /// Silence is wanted up to here.
  private var target: Int64 = 0
  /// Where the last real sample ended.
  private var signalEnd: Int64 = 0
  /// Where the frames of an utterance that is over end; nil: they have all been coded, or it is not over.
  private var utteranceEnd: Int64?
  /// Nothing has come since an utterance was over.
  private var isBetween = false
  /// Samples the input had in all; set by `close`.
  private var total: Int64?
  /// The time of one known position, from the packet admitted last.
  private var anchor: (position: Int64, time: Nanoseconds) = (0, 0)
  private var frameTime: Nanoseconds = 0

  init(rate: Int, frame: Int, lookahead: Int) {
    self.rate = rate
    self.frame = frame
    self.lookahead = lookahead
  }

  /// Position the next packet gets.
  var nextPosition: Int64 { frameStart &- Int64(lookahead) }

  /// Position the next input sample gets.
  private var next: Int64 { frameStart &+ Int64(fill) }

  /// Takes note of a packet. Ask for steps until there are none before the next one.
  mutating func admit(position: Int64, count: Int, isLost: Bool, timestamp: Nanoseconds) {
    if origin == nil {
      // A stream that begins late begins at 0. One that begins before 0 carries a filter's run-in, which stays before 0 and
      // is thrown away behind the decoder together with the look-ahead.
      origin = max(0, position)
      frameStart = min(0, position)
    }
    var place = position &- (origin ?? position)
    if place < next {
      origin = position &- next
      place = next
    }
    isBetween = false
    anchor = (place, timestamp)
    target = isLost ? place &+ Int64(count) : place
  }

  /// What was waiting is void, here and inside the encoder; the place it had will be silence.
  mutating func forgetPending() {
    target = next
    signalEnd = min(signalEnd, frameStart &- Int64(lookahead))
  }

  /// Says that an utterance is over: silence fills the frames that its end lies in. False when all of it has come out already.
  mutating func endUtterance() -> Bool {
    isBetween = true
    guard origin != nil, fill > 0 || frameStart < signalEnd &+ Int64(lookahead) else { return false }
    target = lastFrameEnd
    utteranceEnd = target
    return true
  }

  /// Says that the input is over. False when everything has come out already.
  mutating func close() -> Bool {
    guard total == nil, next > 0, !isBetween else { return false }
    total = next
    target = lastFrameEnd
    return true
  }

  /// Where the frame ends out of which the newest sample comes.
  private var lastFrameEnd: Int64 {
    let frames = (next &+ Int64(lookahead) &- frameStart &+ Int64(frame) &- 1) / Int64(frame)
    return frameStart &+ frames &* Int64(frame)
  }

  /// True when so many input samples, or silence that is due anyhow, complete a frame.
  func completesFrame(available: Int) -> Bool {
    fill + available + Int(clamping: max(0, target &- next)) >= frame
  }

  /// The next step, nil when nothing can be done without another packet.
  /// - Parameter available: input samples at hand.
  mutating func next(available: Int) -> Step? {
    if fill == frame { return .encode(takeSlot()) }
    if next < target {
      if skips() { return .skip }
      let count = Int(min(Int64(frame - fill), target &- next))
      return .silence(offset: advance(count), count: count)
    }
    guard available > 0 else { return nil }
    let count = min(frame - fill, available)
    let offset = advance(count)
    signalEnd = next
    return .samples(offset: offset, count: count)
  }

  /// Leaves out whole frames of silence, once nothing of the signal is left inside the encoder.
  private mutating func skips() -> Bool {
    guard fill == 0, frameStart >= signalEnd &+ Int64(lookahead) else { return false }
    // The last frame of all is always sent: it carries the padding. So is an utterance's: it carries the mark.
    let count = (target &- frameStart) / Int64(frame) - (total == nil && utteranceEnd == nil ? 0 : 1)
    guard count > 0 else { return false }
    frameStart &+= count &* Int64(frame)
    return true
  }

  private mutating func advance(_ count: Int) -> Int {
    if fill == 0 {
      frameTime = anchor.time &+ .samples(frameStart &- anchor.position, rate: rate)
    }
    let offset = fill
    fill += count
    return offset
  }

  private mutating func takeSlot() -> Slot {
    let end = frameStart &+ Int64(frame)
    let isLast = total != nil && end >= target
    let position = frameStart &- Int64(lookahead)
    let surplus = isLast ? end &- Int64(lookahead) &- (total ?? 0) : 0
    let slot = Slot(
      position: position, duration: frame, trimEnd: Int(surplus),
      timestamp: frameTime &- .samples(Int64(lookahead), rate: rate), isLast: isLast,
      endsUtterance: end == utteranceEnd)
    if slot.endsUtterance { utteranceEnd = nil }
    frameStart = end
    fill = 0
    return slot
  }
}
