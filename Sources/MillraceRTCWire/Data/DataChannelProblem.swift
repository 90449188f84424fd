/// Why a data channel message or a stream identifier was refused.
public enum DataChannelProblem: Error, Sendable, Equatable, CustomStringConvertible {
  /// The message ends before what it announces; `needed` bytes would have to be there.
  case truncated(bytes: Int, needed: Int)
  /// The message goes beyond what it announces.
  case trailingBytes(Int)
  /// The message is neither an open nor an acknowledgement.
  case unknownMessage(UInt8)
  /// The channel type is none of RFC 8832.
  case unknownChannelType(UInt8)
  /// The label or the protocol has more bytes than allowed.
  case textTooLong(bytes: Int, allowed: Int)
  /// The label or the protocol is not UTF-8.
  case notUTF8
  /// The target has less room than the message needs.
  case noRoom(bytes: Int, needed: Int)
  /// The stream lies beyond those the association has.
  case streamBeyondLimit(UInt16, limit: Int)
  /// The peer opens a channel on a stream with the parity of this side.
  case wrongParity(UInt16)
  /// The stream belongs to a channel already.
  case streamInUse(UInt16)

  /// What is wrong and, where there is one, the cure.
  public var description: String {
    switch self {
    case .truncated(let bytes, let needed):
      "the data channel message has \(bytes) bytes, \(needed) are needed"
    case .trailingBytes(let count):
      "the data channel message has \(count) bytes behind its end"
    case .unknownMessage(let type):
      "data channel messages of type \(type) are not known"
    case .unknownChannelType(let type):
      "data channels of type \(type) are not known"
    case .textTooLong(let bytes, let allowed):
      "the label or protocol of a data channel has \(bytes) bytes, at most \(allowed) are allowed"
    case .notUTF8:
      "the label or protocol of a data channel is not UTF-8"
    case .noRoom(let bytes, let needed):
      "the target has room for \(bytes) bytes, \(needed) are needed"
    case .streamBeyondLimit(let id, let limit):
      "stream \(id) does not exist, the association has \(limit) streams; negotiate more"
    case .wrongParity(let id):
      "the peer opens stream \(id), but the DTLS client uses even and the server odd ones"
    case .streamInUse(let id):
      "stream \(id) belongs to a data channel already"
    }
  }
}
