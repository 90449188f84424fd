/// Why bytes are no packets of the protocol, or a packet has no bytes. The text contains nothing of the content.
public struct TuyaWireProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// What is wrong.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    /// The first byte belongs to another dialect, or to none.
    case badVersion = "bad-version"
    /// A frame is shorter than its signature.
    case shortLength = "short-length"
    /// A frame or a packet is longer than this side takes.
    case oversized
    /// The signature is not that of the frame.
    case signMismatch = "sign-mismatch"
    /// A frame cannot be decrypted.
    case decryptFailed = "decrypt-failed"
    /// A decrypted frame does not end in padding.
    case badPadding = "bad-padding"
    /// A frame is protected in another way than agreed.
    case badSecurityLevel = "bad-security-level"
    /// A frame that begins a packet has no initialization vector.
    case ivMissing = "iv-missing"
    /// A frame was lost, repeated, or comes in another order.
    case seqOrder = "seq-order"
    /// A fragment belongs to no packet, or something lies between the fragments of one.
    case fragOrder = "frag-order"
    /// The attributes are longer than the packet.
    case attrBlockTruncated = "attr-block-truncated"
    /// An attribute is longer than the attributes.
    case attrTruncated = "attr-truncated"
    /// A number has another size than its attribute.
    case attrSize = "attr-size"
    /// An attribute is of another kind than it says.
    case attrKind = "attr-kind"
    /// The payload has another length than the packet says.
    case payloadLength = "payload-length"
    /// The counter of a text or a file does not end.
    case varint
    /// The payload is shorter than its head.
    case mediaHead = "media-head"
    /// The data have another length than their head says.
    case mediaLength = "media-length"
    /// A picture cannot be decrypted.
    case mediaDecrypt = "media-decrypt"
    /// The payload of an event is shorter than its head.
    case eventHead = "event-head"
    /// The list of data ids of a session is cut, or odd.
    case sessionIDs = "session-ids"
    /// The parameters of a stream are no numbers, or too few.
    case paramsBad = "params-bad"
    /// The user data are neither JSON nor attributes.
    case userData = "user-data"
    /// The security suite of a hello is none that is known.
    case suite
    /// A frame without a packet.
    case emptyPacket = "empty-packet"
  }

  /// What is wrong.
  public var code: Code
  /// A description of it, with lengths and numbers.
  public var text: String

  /// Creates a problem. The text must contain nothing of the content.
  public init(_ code: Code, _ text: String) {
    self.code = code
    self.text = text
  }

  /// For example `seq-order: frame 5 follows frame 3`.
  public var description: String { "\(code.rawValue): \(text)" }
}
