public import MillraceCore

/// Finds audio messages that arrive late.
///
/// A microphone delivers audio in real time, so the duration of all audio so far says when the next message is due; the message that came
/// earliest determines the beginning.
public struct FrameTiming: Sendable {
  /// A message that arrives later than this many milliseconds counts as late: the length of a usual frame.
  public static let tolerance = 20.0

  private var heard: Nanoseconds = 0
  private var earliest: Nanoseconds?

  /// Creates a timing without messages.
  public init() {}

  /// The delay of a message in milliseconds, compared with the earliest so far.
  /// - Parameters:
  ///   - samples: its number of samples.
  ///   - rate: the sample rate in Hz.
  ///   - now: when it arrived.
  public mutating func delay(ofSamples samples: Int, rate: Int, at now: Nanoseconds) -> Double {
    let offset = now - heard
    heard += .samples(Int64(samples), rate: rate)
    let first = min(earliest ?? offset, offset)
    earliest = first
    return Double(offset - first) / 1e6
  }
}
