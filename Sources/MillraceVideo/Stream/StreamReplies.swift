package import MillraceCore

/// Finds the utterances of a bot in the sound of a live stream, which has no marks, and cancels the rest of one that was interrupted.
///
/// An utterance begins with a packet that is not quiet and ends when the sound was quiet for `gap`; what is shorter is a pause in it. After
/// an interruption the sound is cancelled until it was quiet for as long, because a service continues to speak for as long as its stream is
/// late, and nothing in the sound says where another reply begins.
///
/// A stream may also say that a reply is over (`mark`). What the codec makes of its last sound follows that, so that it ends with the next
/// packet that is quiet.
///
/// Quiet is measured in the stream: sound that the stream skips is quiet, sound that is held up by the network is not. What comes after a
/// stall may still be the interrupted utterance, so only an utterance ends by the clock (`pause`). A value type; no heap.
package struct StreamReplies {
  /// What a packet of the stream is.
  package enum Part: Equatable {
    /// Quiet between utterances: of no reply.
    case quiet
    /// Of the current reply; `isLast`: the utterance ends with it.
    case reply(isLast: Bool)
    /// Of a reply that was interrupted: silence takes its place.
    case cancelled
  }

  private enum State {
    case quiet
    case utterance
    case cancelled
  }

  private let gap: Int
  private var state = State.quiet
  /// Frames of quiet at the end of what was taken.
  private var quietFrames = 0
  /// Sound that was expected before this time is older than the last interruption; on the monotonic clock.
  private var interruption = Nanoseconds.min
  private var cancelledFrames = 0
  private var ended: Int?
  /// Frames since the stream has said that the reply is over; nil: it has not.
  private var markedFrames: Int?

  /// - Parameter gap: frames of quiet that end an utterance.
  package init(gap: Int) { self.gap = gap }

  /// True within an utterance that was not interrupted.
  package var isSpeaking: Bool { state == .utterance }

  /// Takes the stream's next packet.
  /// - Parameters:
  ///   - isLoud: whether it is not quiet.
  ///   - frames: its length.
  ///   - time: when its first frame was expected to arrive, on the monotonic clock.
  package mutating func take(isLoud: Bool, frames: Int, time: Nanoseconds) -> Part {
    quietFrames = isLoud ? 0 : quietFrames + frames
    passMark(frames)
    if state == .quiet, isLoud { state = time < interruption ? .cancelled : .utterance }
    let isLast = quietFrames >= gap || !isLoud && markedFrames != nil
    switch state {
    case .quiet: return .quiet
    case .utterance:
      if isLast {
        state = .quiet
        markedFrames = nil
      }
      return .reply(isLast: isLast)
    case .cancelled:
      cancelledFrames += frames
      if isLast { endCancellation() }
      return .cancelled
    }
  }

  /// After a third of the gap, sound that does not become quiet is another reply.
  private mutating func passMark(_ frames: Int) {
    guard let passed = markedFrames else { return }
    markedFrames = passed + frames
    guard passed + frames > gap / 3 else { return }
    markedFrames = nil
    if state == .cancelled { beginNext() }
  }

  /// The stream says that the reply is over.
  package mutating func mark() { if state != .quiet { markedFrames = 0 } }

  /// The reply was interrupted: what belongs to it, and what has arrived by now, is cancelled.
  package mutating func interrupt(at time: Nanoseconds) {
    interruption = time
    if state == .utterance { state = .cancelled }
  }

  /// The next reply begins: sound is not cancelled from here on.
  package mutating func beginNext() {
    interruption = .min
    if state == .cancelled { endCancellation() }
  }

  /// The stream has no sound for this many frames before the next packet. True if that ends an utterance.
  package mutating func skip(_ frames: Int) -> Bool {
    quietFrames += frames
    return quietFrames >= gap && close()
  }

  /// No sound came for the length of the gap, on the clock. True if that ends an utterance. A cancellation continues: the rest may be late.
  package mutating func pause() -> Bool { isSpeaking && close() }

  /// The stream has ended. True if that ends an utterance.
  package mutating func close() -> Bool {
    let ends = isSpeaking
    quietFrames = 0
    endCancellation()
    return ends
  }

  private mutating func endCancellation() {
    state = .quiet
    markedFrames = nil
    if cancelledFrames > 0 { ended = (ended ?? 0) + cancelledFrames }
    cancelledFrames = 0
  }

  /// Frames in the place of which silence was put, once that is over; nil while it is not, and after it was taken.
  package mutating func takeCancelled() -> Int? { ended.take() }
}
