import CMillraceSys
import MillraceCore
import Synchronization

/// What one end of a measured call hears. Any thread.
///
/// The voice of the other end contains a tone all the time, or in bursts, so that whatever is quieter than a tenth of it was not filled.
/// Times are those at which a packet came out of the call's node.
final class CallEar: Sendable {
  struct Heard: Sendable {
    /// When the first sound was heard, on the monotonic clock; nil: nothing yet.
    var firstAt: Int64?
    /// Packets of 10 ms since `reset`.
    var packets = 0
    /// The longest silence since `reset`, and how many were longer than `CallEar.gap`.
    var longestSilence: Nanoseconds = 0
    var silences = 0
    /// The longest time between two packets since `reset`, and how many were longer than `CallEar.gap`.
    var longestPause: Nanoseconds = 0
    var pauses = 0
    /// When something was last missing, on the monotonic clock; 0: never.
    var brokenAt: Int64 = 0
    /// When sound began after a long silence, in graph time.
    var onsets: [Nanoseconds] = []

    fileprivate var silence: Nanoseconds = 0
    fileprivate var lastAt: Int64?
  }

  /// Silences and pauses beyond it are counted. Source: the goal of the suite.
  static let gap: Nanoseconds = .milliseconds(60)
  /// What is quieter than a tenth of the tone is silence.
  private static let threshold = Float(CallVoice.amplitude / 2.0.squareRoot() / 10)
  /// Samples that are judged together: 2.5 ms.
  private static let block = 120
  private static let blockTime: Nanoseconds = .samples(Int64(block), rate: CallVoice.rate)
  /// Silence after which sound counts as a beginning.
  private static let rest: Nanoseconds = .milliseconds(200)
  /// Shorter silences are no losses: a codec's own ripple.
  private static let shortest: Nanoseconds = .milliseconds(10)

  private let state = Mutex(Heard())

  /// What was heard so far.
  var heard: Heard { state.withLock { $0 } }

  /// Begins another measurement; the first sound stays.
  func reset() {
    state.withLock { heard in
      let (first, last) = (heard.firstAt, heard.lastAt)
      heard = Heard()
      (heard.firstAt, heard.lastAt) = (first, last)
    }
  }

  /// Takes a packet that came out at `time` of the graph's clock.
  func take(_ samples: Span<Float>, at time: Nanoseconds) {
    let now = millrace_monotonic_ns()
    state.withLock { heard in
      if let last = heard.lastAt, heard.firstAt != nil {
        heard.longestPause = max(heard.longestPause, now - last)
        if now - last > Self.gap { heard.pauses += 1 }
      }
      heard.lastAt = now
      heard.packets += 1
      var start = 0
      while start + Self.block <= samples.count {
        let begin = time + .samples(Int64(start), rate: CallVoice.rate)
        Self.note(Self.level(samples, start), begin, now, &heard)
        start += Self.block
      }
    }
  }

  private static func level(_ samples: Span<Float>, _ start: Int) -> Float {
    var sum: Float = 0
    for index in start..<start + block { sum += samples[index] * samples[index] }
    return (sum / Float(block)).squareRoot()
  }

  private static func note(_ level: Float, _ begin: Nanoseconds, _ now: Int64, _ heard: inout Heard) {
    guard level < threshold else {
      if heard.firstAt == nil { heard.firstAt = now }
      if heard.silence >= rest { heard.onsets.append(begin) }
      heard.silence = 0
      return
    }
    heard.silence += blockTime
    guard heard.firstAt != nil else { return }
    if heard.silence > shortest { heard.brokenAt = now }
    heard.longestSilence = max(heard.longestSilence, heard.silence)
    // Counted once, when it becomes too long.
    if heard.silence > gap, heard.silence - blockTime <= gap { heard.silences += 1 }
  }
}

/// The ears of calls that are being measured, by the numbers in their graphs.
enum CallEars {
  private static let all = Mutex<[Int: CallEar]>([:])

  /// An ear with a new number.
  static func make() -> (number: Int, ear: CallEar) {
    all.withLock { ears in
      let number = (ears.keys.max() ?? -1) + 1
      let ear = CallEar()
      ears[number] = ear
      return (number, ear)
    }
  }

  static func find(_ number: Int) throws(NodeProblem) -> CallEar {
    guard let ear = all.withLock({ $0[number] }) else {
      throw NodeProblem("there is no ear \(number) in this measurement")
    }
    return ear
  }

  /// Forgets the ears; nodes keep theirs.
  static func clear() { all.withLock { $0 = [:] } }
}
