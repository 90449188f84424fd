public import MillraceCore

/// How a turn machine behaves: whose the floor is, when a voice over a reply counts, and how long each wait may last.
public struct TurnRules: Sendable, Hashable {
  /// Who begins and ends a turn of the user: a button, a tap, or the voice.
  public var mode = DialogMode.duplex
  /// True: playback reports what was heard, and a reply is over when its last sample was. False: when it has all come.
  public var followsPlayback = true
  /// True: the voice of a local detector cuts replies off. Only in `duplex`.
  public var listensForVoice = true
  /// Voice it takes to cut a reply off, pauses not counted.
  public var minimumSpeech: Nanoseconds = .milliseconds(250)
  /// From the first of a voice on: when it has not come to `minimumSpeech` by then, it was none.
  public var confirmWindow: Nanoseconds = .milliseconds(700)

  /// When somebody else has voided the reply: so long a service that did it itself has to say so, before it is asked to stop. The node
  /// that voids a reply tells of it in the same or the next call.
  public var ownWord: Nanoseconds = .milliseconds(50)

  /// Longest wait for a service to be there.
  public var connect: Nanoseconds = .milliseconds(15_000)
  /// Longest speech of a user.
  public var speech: Nanoseconds = .milliseconds(60_000)
  /// Longest wait for an answer.
  public var answer: Nanoseconds = .milliseconds(20_000)
  /// Longest reply, from its first word to its last sample.
  public var reply: Nanoseconds = .milliseconds(300_000)
  /// Longest wait for a service to listen again after a reply.
  public var listen: Nanoseconds = .milliseconds(5_000)
  /// Longest time without a connection: a loss of a minute is lived through, with the waits between the tries that come on top.
  public var reconnect: Nanoseconds = .milliseconds(180_000)
  /// Longest wait for a service to say good-bye.
  public var close: Nanoseconds = .milliseconds(2_000)

  /// The rules of a duplex dialogue with playback that reports.
  public init() {}
}
