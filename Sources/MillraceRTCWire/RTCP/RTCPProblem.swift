/// Why bytes are not RTCP, or an RTCP packet could not be written. Positions count from the first byte of the datagram.
public enum RTCPProblem: Error, Sendable, Equatable, CustomStringConvertible {
  /// The datagram ends within the header of a packet.
  case headerCut(at: Int, bytes: Int)
  /// The version of a packet is not 2.
  case version(UInt8, at: Int)
  /// A packet is longer than what remains of the datagram.
  case packetBeyondEnd(at: Int, needed: Int, bytes: Int)
  /// The padding of a packet is zero, or longer than the packet.
  case padding(UInt8, at: Int)
  /// A packet is shorter than what it says to contain. The packets after it can be read.
  case contentCut(type: UInt8, at: Int)
  /// A packet contains a value that has no meaning. The packets after it can be read.
  case contentInvalid(type: UInt8, at: Int)
  /// The destination is too small for what is written.
  case noRoom(needed: Int, room: Int)
  /// A report has 31 blocks, or the last packet written is no report.
  case tooManyBlocks
  /// A text is longer than the 255 bytes that its length can say.
  case textTooLong(bytes: Int)

  /// True: the reader is behind the packet that was refused and can read the next.
  public var canReadNext: Bool {
    switch self {
    case .contentCut, .contentInvalid: true
    default: false
    }
  }

  /// For example `the RTCP packet at byte 0 has 262144 bytes, 64 remain of the datagram`.
  public var description: String {
    switch self {
    case .headerCut(let at, let bytes):
      "an RTCP header at byte \(at) needs 4 bytes, \(bytes) remain of the datagram"
    case .version(let version, let at): "byte \(at) says RTCP version \(version), only version 2 is supported"
    case .packetBeyondEnd(let at, let needed, let bytes):
      "the RTCP packet at byte \(at) has \(needed) bytes, \(bytes) remain of the datagram"
    case .padding(let padding, let at):
      "the RTCP packet at byte \(at) has an invalid padding of \(padding) bytes"
    case .contentCut(let type, let at):
      "the RTCP packet of type \(type) at byte \(at) is shorter than what it says to contain"
    case .contentInvalid(let type, let at):
      "the RTCP packet of type \(type) at byte \(at) has an invalid value"
    case .noRoom(let needed, let room):
      "the RTCP packet needs \(needed) bytes, the destination has \(room): write it into the next datagram"
    case .tooManyBlocks: "no report is open that has room for a block: begin another receiver report"
    case .textTooLong(let bytes): "a text of \(bytes) bytes does not fit RTCP, shorten it to 255"
    }
  }
}
