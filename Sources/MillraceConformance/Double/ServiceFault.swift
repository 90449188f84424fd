public import MillraceDialog

/// A fault of a service, which happens once: in the scenario of a double, and in the script of a conformance case.
///
/// What each kind means on the wire is the double's to say, and in its documentation.
public struct ServiceFault: Sendable, Hashable {
  /// The kind of fault. The names are those in scenario files.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// Closes the connection without a close frame.
    case drop
    /// Neither sends nor receives anything more on this connection.
    case stall
    /// Stays at this point; heartbeats continue, and other requests are answered.
    case hold
    /// Sends an invalid message, which contains `ServiceFault.userText`.
    case malformed
    /// Sends an unknown message, which contains `ServiceFault.userText`.
    case unknown
    /// Sends a message larger than any of the service.
    case oversized
    /// Reports an error after which the dialogue continues.
    case error
    /// Reports an error that ends the connection.
    case fail
    /// Sends every message of the turn twice.
    case repeated
    /// Sends the messages of a turn in an undocumented order.
    case outOfOrder
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

    /// True: belongs to the dialogue rather than to one of its turns.
    public var isBeforeTurns: Bool { self == .connecting || self == .listening }
  }

  /// The kind of fault.
  public var kind: Kind
  /// Where it happens.
  public var place: Place
  /// For `error`: the vendor's code; nil: the double's choice.
  public var code: Int?
  /// For `error` and `fail`: the vendor's name; nil: the double's choice.
  public var name: String?
  /// For `kick`: the reason the service states; nil: it states none.
  public var reason: KickReason?

  /// Creates a fault; by default at the beginning of a reply.
  public init(_ kind: Kind, at place: Place = .responding) {
    self.kind = kind
    self.place = place
  }

  /// A text as a user might have said it: no error may repeat it.
  public static let userText = "a secret of the user"
}
