internal import MillraceCore
internal import MillraceRTCWire

/// The numbers and timestamps with which sound of other sessions is sent on, as one stream.
///
/// Gaps and the order of a source stay as they are, so that the receiver sees what was lost. When the source changes, begins again, or
/// leaves out more than a receiver takes for a loss, the stream continues at the next number, and its timestamp moves by the time that
/// has passed. No heap request.
///
/// What a source sends beside its sound is not sent on, and has taken numbers: keys (RFC 4733), comfort noise (RFC 3389) and packets
/// without a payload that probe the network leave gaps, which the receiver takes for losses and conceals.
struct SoundForwarder: Sendable {
  /// What a packet is sent with.
  struct Place: Sendable, Equatable {
    var sequence: UInt16
    var timestamp: UInt32
    var marker: Bool
    /// No packet behind it was sent before.
    var isNewest: Bool
  }

  private struct Source {
    var ssrc: UInt32
    /// From its numbers and timestamps to those of the stream.
    var sequence: Int64
    var timestamp: Int64
    /// The first number of the stream that it has: what is older would take a number of the source before it.
    var first: Int64
  }

  private struct Newest {
    var sequence: Int64
    var timestamp: Int64
    var samples: Int64
    var arrival: Nanoseconds
  }

  /// Packets in a row that may be missing: more are a pause, not a loss. No packet comes later than this many others.
  private static let largestGap = ReceptionWindow.size
  /// Sources may follow each other after days; a timestamp only has to move on.
  private static let longestPause: Nanoseconds = .milliseconds(86_400_000)

  private let clockRate: Int64
  private let start: (sequence: Int64, timestamp: Int64)
  private var source: Source?
  private var newest: Newest?
  private var window = ReceptionWindow()

  /// Creates a stream.
  /// - Parameters:
  ///   - sequence: the number of its first packet.
  ///   - clockRate: that of the codec, which is the same for all sources.
  init(sequence: UInt16, timestamp: UInt32, clockRate: Int) {
    start = (Int64(sequence), Int64(timestamp))
    self.clockRate = Int64(max(1, clockRate))
  }

  /// The number and the timestamp that would follow.
  var next: (sequence: UInt16, timestamp: UInt32) {
    let next = following(nil)
    return (UInt16(truncatingIfNeeded: next.sequence), UInt32(truncatingIfNeeded: next.timestamp))
  }

  /// The timestamp of the newest packet, and when it came; nil: none did.
  var latest: (timestamp: UInt32, arrival: Nanoseconds)? {
    newest.map { (UInt32(truncatingIfNeeded: $0.timestamp), $0.arrival) }
  }

  /// The samples of the newest packet.
  var latestSamples: Int { Int(newest?.samples ?? 0) }

  /// Gives a packet its place. Nil: it is not to be sent, because it was sent before, or is older than all of its source that were.
  /// - Parameter samples: of its payload, by the clock of the codec; 0: not known, which counts as 20 ms.
  mutating func place(_ sound: ReceivedSound, samples: Int) -> Place? {
    let begins = !continues(sound)
    if begins { begin(sound) }
    guard let source else { return nil }
    let sequence = sound.sequence &+ source.sequence
    guard sequence >= source.first else { return nil }
    switch window.note(sequence) {
    case .inOrder, .reordered: break
    case .duplicate, .tooOld: return nil
    }
    let timestamp = sound.timestamp &+ source.timestamp
    let isNewest = newest.map { sequence > $0.sequence } ?? true
    if isNewest {
      newest = Newest(
        sequence: sequence, timestamp: timestamp, samples: max(Int64(samples), clockRate / 50),
        arrival: sound.arrival)
    }
    return Place(
      sequence: UInt16(truncatingIfNeeded: sequence), timestamp: UInt32(truncatingIfNeeded: timestamp),
      marker: begins || sound.marker, isNewest: isNewest)
  }

  /// True for a packet of the source that is sent, near to its newest.
  private func continues(_ sound: ReceivedSound) -> Bool {
    guard let source, let newest, source.ssrc == sound.ssrc, !sound.restarts else { return false }
    let step = sound.sequence &+ source.sequence &- newest.sequence
    return step > -Self.largestGap && step <= Self.largestGap
  }

  private mutating func begin(_ sound: ReceivedSound) {
    let place = following(sound.arrival)
    source = Source(
      ssrc: sound.ssrc, sequence: place.sequence &- sound.sequence,
      timestamp: place.timestamp &- sound.timestamp, first: place.sequence)
  }

  /// What follows the newest packet: at once, or at a time.
  private func following(_ time: Nanoseconds?) -> (sequence: Int64, timestamp: Int64) {
    guard let newest else { return start }
    var step = newest.samples
    if let time {
      let passed = max(0, min(time &- newest.arrival, Self.longestPause))
      step = max(step, passed / 1_000 * clockRate / 1_000_000)
    }
    return (newest.sequence &+ 1, newest.timestamp &+ step)
  }
}
