/// Why bytes are not an RTP packet, or an RTP packet could not be written. The text contains nothing of the payload.
public enum RTPProblem: Error, Sendable, Equatable, CustomStringConvertible {
  /// The packet is shorter than the fixed header of 12 bytes.
  case tooShort(bytes: Int)
  /// The version is not 2.
  case version(UInt8)
  /// The list of contributing sources ends after the packet.
  case contributorsBeyondEnd(needed: Int, bytes: Int)
  /// The header extension ends after the packet.
  case extensionBeyondEnd(needed: Int, bytes: Int)
  /// The padding is zero, or longer than what follows the header.
  case paddingBeyondPayload(padding: Int, payload: Int)
  /// A retransmission without the original sequence number in front of its payload.
  case retransmissionTooShort(payload: Int)
  /// An identifier outside of 1 to 14, which a one-byte header extension cannot carry.
  case extensionIdentifier(UInt8)
  /// The destination is too small for what is written.
  case noRoom(needed: Int, room: Int)

  /// For example `an RTP packet of 11 bytes is shorter than its header of 12 bytes`.
  public var description: String {
    switch self {
    case .tooShort(let bytes):
      "an RTP packet of \(bytes) bytes is shorter than its header of \(RTPHeader.fixedSize) bytes"
    case .version(let version): "byte 0 says RTP version \(version), only version 2 is supported"
    case .contributorsBeyondEnd(let needed, let bytes):
      "the list of contributing sources ends at byte \(needed), the RTP packet at byte \(bytes)"
    case .extensionBeyondEnd(let needed, let bytes):
      "the header extension ends at byte \(needed), the RTP packet at byte \(bytes)"
    case .paddingBeyondPayload(let padding, let payload):
      "a padding of \(padding) bytes is not possible, \(payload) bytes follow the RTP header"
    case .retransmissionTooShort(let payload):
      "a retransmission needs 2 bytes for the original sequence number, its payload has \(payload)"
    case .extensionIdentifier(let identifier):
      "header extension \(identifier) does not fit the one-byte form: negotiate an identifier from 1 to 14"
    case .noRoom(let needed, let room):
      "the RTP packet needs \(needed) bytes, the destination has \(room): use a larger buffer"
    }
  }
}
