package import MillraceCore

/// Maps the timestamps of a live stream to this machine's clock, as if the fastest packet had no delay.
///
/// The fastest packet of the last five to ten seconds counts, so that a slow sender clock is followed. Pictures and audio of a stream share
/// one clock and stay in sync. A value type; no heap.
package struct StreamClock {
  /// Smallest difference between arrival and stream time, in the current and the previous window.
  private var present = Nanoseconds.max
  private var past = Nanoseconds.max
  private var windowEnd = Nanoseconds.min
  private static let window: Nanoseconds = 5_000_000_000
  /// A larger jump of the difference is not delay: the stream's timestamps restarted.
  private static let jump: Nanoseconds = 10_000_000_000

  package init() {}

  /// Records that data with stream time `time` arrived at `arrival`. False if the timestamps restarted.
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

  /// The expected arrival of data with this stream time. Call `note` first.
  package func time(_ time: Nanoseconds) -> Nanoseconds { offset == .max ? time : time &+ offset }
}

/// Maps the monotonic clock to the graph's clock, for nodes whose thread uses the former for timestamps.
///
/// A call knows the graph's time at its start, and the thread may be preempted before the node reads the other clock, for seconds on a busy
/// machine. The offset is therefore the smallest seen in the last five to ten seconds. A value type; no heap.
package struct GraphTimes {
  private var clock = StreamClock()

  package init() {}

  /// Records both clocks in a call: the graph's from its start, the monotonic one read later.
  package mutating func note(_ graph: Nanoseconds, monotonic: Nanoseconds) {
    _ = clock.note(graph, arrival: monotonic)
  }

  /// Converts a monotonic time to the graph's clock. Call `note` first.
  package func time(_ monotonic: Nanoseconds) -> Nanoseconds { monotonic &- clock.time(0) }
}
