internal import MillraceCore

/// How a client paces the packets of a voice, and how the service reacts.
///
/// Both times are taken here: a slow client or a busy machine only makes a packet later, and never earlier than it was sent. A burst
/// after a stall is not the client's fault either, so the average since the start is judged, with a tolerance.
struct VoicePace {
  struct Problem {
    var name: String
    var text: String
    /// The service answers 110001.
    var isFatal: Bool
  }

  /// Milliseconds by which packets may be ahead of the schedule.
  private static let tolerance = 400

  private let isSession: Bool
  private var begunAt: Nanoseconds?
  private var packets = 0
  private var milliseconds = 0
  /// Milliseconds by which the latest packet was behind the schedule; nil: it is the first.
  private(set) var delay: Double?

  init(isSession: Bool) { self.isSession = isSession }

  /// A new utterance.
  mutating func begin() {
    begunAt = nil
    packets = 0
    milliseconds = 0
    delay = nil
  }

  mutating func take(_ bytes: Int, isLast: Bool, at now: Nanoseconds) -> Problem? {
    let begun = begunAt ?? now
    begunAt = begun
    packets += 1
    let passed = Int((now - begun) / 1_000_000)
    // What may have been sent by now, in milliseconds since the first packet.
    let due = isSession ? max(0, packets - 6) * 120 : milliseconds
    milliseconds += bytes / 32
    delay = packets > 1 ? Double(passed - due) : nil
    if bytes % 2 != 0 {
      return Problem(name: "oddAudio", text: "\(bytes) bytes are no 16-bit samples", isFatal: false)
    }
    let sizes = isSession ? [5_120] : [3_200, 6_400]
    if bytes > (sizes.last ?? 0) {
      return Problem(name: "largeAudio", text: "a packet of \(bytes) bytes", isFatal: true)
    }
    if passed + Self.tolerance < due {
      return Problem(
        name: "fastAudio", text: "packet \(packets) came \(due - passed) ms before it is due", isFatal: true)
    }
    return nil
  }
}
