internal import MillraceCore

/// Assigns input samples to an encoder's frames: which frame, at which offset, with how much silence around them.
///
/// A pure state machine: it takes packets, is closed at the end, and returns the next step. It holds no samples. Internal positions count
/// from the first input sample, or from 0 if that lies before 0.
struct FrameTimeline {
  /// The next action.
  enum Step: Equatable {
    /// Write `count` samples of silence into the frame at `offset`.
    case silence(offset: Int, count: Int)
    /// Write the next `count` input samples into the frame at `offset`.
    case samples(offset: Int, count: Int)
    /// Skip whole frames of silence and reset the encoder.
    case skip
    /// Encode the frame.
    case encode(Slot)
  }

  /// Metadata of an encoded frame.
  struct Slot: Equatable {
    /// Position of its first decoded sample.
    var position: Int64
    var duration: Int
    /// Padding samples at its end.
    var trimEnd: Int
    /// Time of its first decoded sample.
    var timestamp: Nanoseconds
    /// True for the last frame of the stream.
    var isLast: Bool
    /// True if an utterance ends in it.
    var endsUtterance = false
  }

  private let rate: Int
  private let frame: Int
  private let lookahead: Int

  /// The input position that counts as 0; nil before the first packet.
  private var origin: Int64?
  private var frameStart: Int64 = 0
  private var fill = 0
  /// Silence is needed up to this position.
  private var target: Int64 = 0
  /// End of the last real sample.
  private var signalEnd: Int64 = 0
  /// End of the frames of a finished utterance; nil if they are all encoded, or the utterance is not finished.
  private var utteranceEnd: Int64?
  /// True between the end of an utterance and the next packet.
  private var isBetween = false
  /// Total number of input samples; set by `close`.
  private var total: Int64?
  /// A known position and its time, from the latest packet.
  private var anchor: (position: Int64, time: Nanoseconds) = (0, 0)
  private var frameTime: Nanoseconds = 0

  init(rate: Int, frame: Int, lookahead: Int) {
    self.rate = rate
    self.frame = frame
    self.lookahead = lookahead
  }

  /// Position of the next output packet.
  var nextPosition: Int64 { frameStart &- Int64(lookahead) }

  /// Position of the next input sample.
  private var next: Int64 { frameStart &+ Int64(fill) }

  /// Takes a packet. Call `next` until it returns nil before taking another one.
  mutating func admit(position: Int64, count: Int, isLost: Bool, timestamp: Nanoseconds) {
    if origin == nil {
      // A stream that starts late starts at 0. One that starts before 0 carries a filter's run-in, which stays before 0 and is
      // discarded by the decoder together with the look-ahead.
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

  /// Discards pending samples, here and inside the encoder; silence takes their place.
  mutating func discardPending() {
    target = next
    signalEnd = min(signalEnd, frameStart &- Int64(lookahead))
  }

  /// Ends an utterance: silence completes the frames that its end lies in. False if all of it has been encoded.
  mutating func endUtterance() -> Bool {
    isBetween = true
    guard origin != nil, fill > 0 || frameStart < signalEnd &+ Int64(lookahead) else { return false }
    target = lastFrameEnd
    utteranceEnd = target
    return true
  }

  /// Ends the input. False if everything has been encoded.
  mutating func close() -> Bool {
    guard total == nil, next > 0, !isBetween else { return false }
    total = next
    target = lastFrameEnd
    return true
  }

  /// End of the frame that outputs the newest sample.
  private var lastFrameEnd: Int64 {
    let frames = (next &+ Int64(lookahead) &- frameStart &+ Int64(frame) &- 1) / Int64(frame)
    return frameStart &+ frames &* Int64(frame)
  }

  /// True if this many input samples, or silence that is due anyway, complete a frame.
  func completesFrame(available: Int) -> Bool {
    fill + available + Int(clamping: max(0, target &- next)) >= frame
  }

  /// The next step; nil when another packet is needed.
  /// - Parameter available: number of input samples at hand.
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

  /// Skips whole frames of silence once the encoder holds nothing of the signal.
  private mutating func skips() -> Bool {
    guard fill == 0, frameStart >= signalEnd &+ Int64(lookahead) else { return false }
    // The last frame of the stream is always sent, because it carries the padding; that of an utterance, because it carries the mark.
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
