internal import MillraceCore

/// How long a stream is played while the graph drains.
///
/// What is still to come is played, and the node's input says when the stream is over. The source of that input may itself wait for the stream's
/// sound, such as one of two bots that listen to each other: silence ends it, too.
struct StreamDrain: Sendable {
  /// The longest silence in which more sound is awaited.
  static let longestSilence: Nanoseconds = .milliseconds(60_000)

  private var start: Nanoseconds?
  private var lastSound = Nanoseconds.min

  /// True once `end` was asked for.
  var isOn: Bool { start != nil }

  /// The stream is heard.
  mutating func noteSound(at now: Nanoseconds) { lastSound = now }

  /// When the stream ends in a graph that drains, unless it is heard before.
  mutating func end(at now: Nanoseconds) -> Nanoseconds {
    let start = start ?? now
    self.start = start
    return max(start, lastSound) &+ Self.longestSilence
  }
}
