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

/// A fault that happens once.
public struct ServiceFault: Sendable, Hashable {
  /// The kind of fault.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// Stays at this point; heartbeats continue, and other requests are answered.
    case hold
    /// Neither sends nor receives anything more on this connection.
    case stall
    /// Closes the connection without a close frame.
    case drop
    /// Sends an invalid message, which contains `ServiceFault.userText`.
    case malformed
    /// Sends an unknown message, which contains `ServiceFault.userText`.
    case unknown
    /// Sends every message of the turn twice.
    case repeated
    /// Sends a message larger than any of the service.
    case oversized
    /// Sends the messages of a turn in an undocumented order.
    case outOfOrder
    /// Reports an error after which the dialogue continues.
    case error
    /// Reports an error that ends the connection.
    case failure
    /// Ends the dialogue.
    case kick
    /// Closes the connection, and rejects the key from then on.
    case expire
  }

  /// Where it happens.
  public enum Place: String, Sendable, Hashable, CaseIterable {
    /// Connected, before the dialogue begins.
    case connecting
    /// When the service listens for the first time.
    case listening
    /// After the user has spoken, before anything of an answer.
    case thinking
    /// When the reply has begun.
    case responding
    /// When half of the reply's audio was sent.
    case midway
    /// When the reply was sent completely.
    case answered
  }

  /// The kind of fault.
  public var kind: Kind
  /// Where it happens.
  public var place: Place

  /// Creates a fault.
  public init(_ kind: Kind, at place: Place) {
    self.kind = kind
    self.place = place
  }

  /// A text as a user might have said it: no error may repeat it.
  public static let userText = "a secret of the user"
}
