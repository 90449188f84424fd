public import MillraceCore

/// The rules of a turn machine: how the user takes the floor, when a voice over a reply counts as barge-in, and the timeouts.
public struct TurnRules: Sendable, Hashable {
  /// How the user starts and ends a turn.
  public var mode = DialogMode.duplex
  /// True: playback reports what was heard, and a reply ends when its last sample was played. False: it ends when it has arrived.
  public var followsPlayback = true
  /// True: the local voice detector interrupts replies. Only in `duplex`.
  public var listensForVoice = true
  /// Speech needed for a barge-in, without pauses.
  public var minimumSpeech: Nanoseconds = .milliseconds(250)
  /// Time from the start of a voice in which it must reach `minimumSpeech`; otherwise it was not speech.
  public var confirmWindow: Nanoseconds = .milliseconds(700)

  /// After another node has cancelled the reply: how long to wait for the service to report that it caused this, before it is asked to
  /// stop. The node that cancels a reply reports the cause in the same or the next call.
  public var serviceGrace: Nanoseconds = .milliseconds(50)

  /// Longest time to connect to the service.
  public var connect: Nanoseconds = .milliseconds(15_000)
  /// Longest speech of the user.
  public var speech: Nanoseconds = .milliseconds(60_000)
  /// Longest wait for an answer.
  public var answer: Nanoseconds = .milliseconds(20_000)
  /// Longest reply, from its first event to its last sample.
  public var reply: Nanoseconds = .milliseconds(300_000)
  /// Longest wait for a service to listen again after a reply.
  public var listen: Nanoseconds = .milliseconds(5_000)
  /// Longest time without a connection: long enough to survive an outage of a minute and the backoff after it.
  public var reconnect: Nanoseconds = .milliseconds(180_000)
  /// Longest wait for the service to close the session.
  public var close: Nanoseconds = .milliseconds(2_000)

  /// Creates the rules of a duplex dialogue with playback reports.
  public init() {}

  /// The longest time in a state; nil: unlimited.
  func timeout(of state: TurnState) -> Nanoseconds? {
    switch state {
    case .idle, .listening, .closed: nil
    case .connecting: connect
    case .hearing: speech
    case .thinking: answer
    case .responding, .draining: reply
    case .suspecting: minimumSpeech
    case .yielding: listen
    case .reconnecting: reconnect
    case .closing: close
    }
  }
}
