/// How a double behaves in one case.
public struct ServiceScript: Sendable, Hashable {
  /// Who is not let in.
  public enum Refusal: Sendable, Hashable {
    /// So many visitors are told to come later (503 where there is HTTP).
    case busy(Int)
    /// Every key is wrong (401).
    case key
  }

  /// Who is not let in; nil: everybody is.
  public var refusal: Refusal?
  /// Nobody answers: what connects is taken by the system, and not a byte comes back.
  public var isMute = false
  /// Milliseconds from the connection to the beginning of the dialogue.
  public var delay = 0
  /// What goes wrong, once.
  public var fault: ServiceFault?
  /// Length of a reply's sound.
  public var replyMilliseconds = 400
  /// How much faster than it is spoken sound is sent. At 1000 a reply is one burst.
  public var speed = 20.0
  /// Bytes of a message of sound; odd, so that samples are cut in two.
  public var chunk = 1_787

  /// Nothing goes wrong.
  public init() {}
}

/// One thing that goes wrong, once.
public struct ServiceFault: Sendable, Hashable {
  /// What goes wrong.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// Goes no further from here; whatever keeps the connection alive goes on, and whoever asks otherwise is answered.
    case hold
    /// Says and hears nothing more on this connection.
    case stall
    /// The connection is gone without a good-bye.
    case drop
    /// A message that cannot be read. It holds `ServiceFault.words`.
    case malformed
    /// A message nobody can know. It holds `ServiceFault.words`.
    case unknown
    /// Every message of the turn twice.
    case repeated
    /// A message larger than anything a service sends.
    case oversized
    /// Messages of a turn in another order than the documents have.
    case outOfOrder
    /// An error of the service that passes.
    case error
    /// An error of the service that ends the connection.
    case failure
    /// The service ends the dialogue.
    case kick
    /// The connection is gone, and the key is no longer good.
    case expire
  }

  /// Where.
  public enum Place: String, Sendable, Hashable, CaseIterable {
    /// The connection is there, the dialogue has not begun.
    case connecting
    /// The service listens, for the first time.
    case listening
    /// The user has spoken, and nothing of an answer has come.
    case thinking
    /// The reply has begun.
    case responding
    /// Half of the reply's sound has been sent.
    case midway
    /// All of the reply has been sent.
    case answered
  }

  /// What goes wrong.
  public var kind: Kind
  /// Where.
  public var place: Place

  /// A fault at a place.
  public init(_ kind: Kind, at place: Place) {
    self.kind = kind
    self.place = place
  }

  /// Words as a user might have said them: no error may repeat them.
  public static let words = "a secret of the user"
}
