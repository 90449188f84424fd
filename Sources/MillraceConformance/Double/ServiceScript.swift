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
  /// Duration of a reply's audio.
  public var replyMilliseconds = 400
  /// How much faster than real time audio is sent. At 1000 a reply is one burst.
  public var speed = 20.0
  /// Bytes of an audio message; odd, so that samples are split.
  public var chunk = 1_787

  /// Creates a script without faults.
  public init() {}
}
