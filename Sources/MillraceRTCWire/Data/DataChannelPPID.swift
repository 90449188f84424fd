/// The payload protocol identifier of an SCTP message: what a data channel message contains (RFC 8831 section 8).
public enum DataChannelPPID: UInt32, Sendable, Hashable, CaseIterable {
  /// A message of the Data Channel Establishment Protocol.
  case control = 50
  /// Text in UTF-8.
  case text = 51
  /// A part of a binary message, deprecated.
  case partialBinary = 52
  /// Bytes.
  case binary = 53
  /// A part of a text, deprecated.
  case partialText = 54
  /// An empty text, sent as one byte because SCTP has no empty messages.
  case emptyText = 56
  /// No bytes, sent as one byte.
  case emptyBinary = 57

  /// The identifier of a message that is not control.
  public init(isText: Bool, isEmpty: Bool) {
    self = isText ? (isEmpty ? .emptyText : .text) : (isEmpty ? .emptyBinary : .binary)
  }

  /// True for text.
  public var isText: Bool { self == .text || self == .partialText || self == .emptyText }
  /// True when the one byte of the message is no content.
  public var isEmpty: Bool { self == .emptyText || self == .emptyBinary }
  /// True for the identifiers that are received but not sent: parts of messages, from before SCTP could interleave them.
  public var isDeprecated: Bool { self == .partialBinary || self == .partialText }
}
