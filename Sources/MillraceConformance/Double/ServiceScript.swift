public import MillraceDialog

/// How a double behaves in a case.
public struct ServiceScript: Sendable, Hashable {
  /// Which connections are refused.
  public enum Refusal: Sendable, Hashable {
    /// The first connections, as busy (503 for HTTP).
    case busy(Int)
    /// Every key, as invalid (401).
    case key
  }

  /// Which connections are refused; nil: none.
  public var refusal: Refusal?
  /// Connections are accepted by the system, but no byte is ever answered.
  public var isSilent = false
  /// Milliseconds from the connection to the start of the dialogue.
  public var delay = 0
  /// A fault, once.
  public var fault: ServiceFault?
  /// A gate that the service closes once; nil: none. `muted`: when it listens for the first time, until the first question.
  /// `uninterruptible`: when the first reply begins, until it ends; half of the reply is held back until the user has
  /// spoken and is silent again.
  public var gate: DialogGate?
  /// The first reply comes with something to display.
  public var sendsMedia = false
  /// When the service listens for the first time, it announces that the key expires soon. From the next `ServiceTraits.freshKey` on, only
  /// that key is valid.
  public var announcesExpiry = false
  /// Another participant joins when the service listens for the first time, and leaves after the first reply.
  public var hasPeers = false
  /// The session of the first turn is closed when its reply begins, as after a failure that passes. Its connection, and the other
  /// sessions on it, remain.
  public var closesSession = false
  /// Duration of a reply's audio.
  public var replyMilliseconds = 400
  /// How much faster than real time audio is sent. At 1000 a reply is one burst.
  public var speed = 20.0
  /// Bytes of an audio message; odd, so that samples are split.
  public var chunk = 1_787

  /// Creates a script without faults.
  public init() {}
}
