package import MillraceCore

/// Puts the times of a live stream onto this machine's clock: as if what came quickest had taken no time at all.
///
/// The quickest of the last five to ten seconds counts, so that a sender's clock that runs slow is followed. Pictures and sound of
/// one stream go by one such clock and stay together. Values; no heap.
package struct StreamClock {
  /// The smallest difference between arrival and the stream's own time, of the present window and of the one before.
  private var present = Nanoseconds.max
  private var past = Nanoseconds.max
  private var windowEnd = Nanoseconds.min
  private static let window: Nanoseconds = 5_000_000_000
  /// A difference that grows by more at once is no delay: the stream's own times have begun anew.
  private static let jump: Nanoseconds = 10_000_000_000

  package init() {}

  /// Something of the stream's time `time` came at `arrival`. Answers false when the times have begun anew.
  package mutating func note(_ time: Nanoseconds, arrival: Nanoseconds) -> Bool {
    let difference = arrival &- time
    let isAnew = offset != .max && abs(difference &- offset) > Self.jump
    if isAnew { (present, past) = (.max, .max) }
    if arrival >= windowEnd {
      windowEnd = arrival &+ Self.window
      past = present
      present = .max
    }
    present = min(present, difference)
    return !isAnew
  }

  private var offset: Nanoseconds { min(present, past) }

  /// When something of the stream's time should have come. Not before the first `note`.
  package func time(_ time: Nanoseconds) -> Nanoseconds { offset == .max ? time : time &+ offset }
}
