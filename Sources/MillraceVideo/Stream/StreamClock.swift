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

/// Puts times of the monotonic clock onto the graph's clock, for a node with a thread that stamps by the former.
///
/// A call knows the graph's time of its own beginning, and the machine may put the thread aside before the node reads the other
/// clock, for seconds when it has much else to do. So the two are taken for as far apart as they were seen at the closest in the last
/// five to ten seconds. Values; no heap.
package struct GraphTimes {
  private var clock = StreamClock()

  package init() {}

  /// Both clocks as a call sees them: the graph's when it began, the other one after that.
  package mutating func note(_ graph: Nanoseconds, monotonic: Nanoseconds) {
    _ = clock.note(graph, arrival: monotonic)
  }

  /// The graph's time of a monotonic one. Not before the first `note`.
  package func time(_ monotonic: Nanoseconds) -> Nanoseconds { monotonic &- clock.time(0) }
}
