/// How hard SCTP tries to deliver the messages of a data channel.
public enum DataChannelReliability: Sendable, Hashable {
  /// Until they arrive.
  case reliable
  /// With so many retransmissions of each message.
  case retransmissions(UInt32)
  /// For this many milliseconds after sending.
  case lifetime(milliseconds: UInt32)
}

/// The request to open a data channel (RFC 8832 section 5.1).
public struct DataChannelOpen: Sendable, Hashable {
  /// The most bytes of a label or protocol: what their length can express.
  public static let maximumTextBytes = 65_535
  static let headBytes = 12

  /// How hard SCTP tries.
  public var reliability: DataChannelReliability
  /// Whether messages arrive in the order of sending.
  public var isOrdered: Bool
  /// The weight among the channels of a connection: 128 below normal, 256 normal, 512 high, 1,024 extra high (RFC 8831 section 6.4).
  public var priority: UInt16
  /// The name of the channel, which need not be unique.
  public var label: String
  /// The name of the protocol that its messages speak; empty: none.
  public var subprotocol: String

  /// Creates a request.
  public init(
    label: String, subprotocol: String = "", reliability: DataChannelReliability = .reliable,
    isOrdered: Bool = true, priority: UInt16 = 256
  ) {
    self.label = label
    self.subprotocol = subprotocol
    self.reliability = reliability
    self.isOrdered = isOrdered
    self.priority = priority
  }

  /// Bytes of the message.
  public var byteCount: Int { Self.headBytes + label.utf8.count + subprotocol.utf8.count }
}

/// A message of the Data Channel Establishment Protocol (RFC 8832), which travels on the stream of the channel with PPID 50.
public enum DataChannelMessage: Sendable, Hashable {
  /// DATA_CHANNEL_OPEN.
  case open(DataChannelOpen)
  /// DATA_CHANNEL_ACK: the channel is open.
  case acknowledgement

  private enum Code {
    static let acknowledgement: UInt8 = 0x02
    static let open: UInt8 = 0x03
    static let unordered: UInt8 = 0x80
    static let reliable: UInt8 = 0x00
    static let retransmissions: UInt8 = 0x01
    static let lifetime: UInt8 = 0x02
  }

  // MARK: Reading

  /// Reads a message.
  /// - Parameters:
  ///   - message: the whole message of SCTP.
  ///   - maximumTextBytes: allowed in the label, and in the protocol.
  /// - Throws: when a length is wrong or too large, a type is not known, or a text is not UTF-8.
  public init(
    parsing message: Span<UInt8>, maximumTextBytes: Int = DataChannelOpen.maximumTextBytes
  ) throws(DataChannelProblem) {
    guard message.count > 0 else { throw .truncated(bytes: 0, needed: 1) }
    switch message[0] {
    case Code.acknowledgement:
      guard message.count == 1 else { throw .trailingBytes(message.count - 1) }
      self = .acknowledgement
    case Code.open:
      self = .open(try Self.open(message, maximumTextBytes))
    default:
      throw .unknownMessage(message[0])
    }
  }

  private static func open(
    _ message: Span<UInt8>, _ maximumTextBytes: Int
  ) throws(DataChannelProblem) -> DataChannelOpen {
    guard message.count >= DataChannelOpen.headBytes else {
      throw .truncated(bytes: message.count, needed: DataChannelOpen.headBytes)
    }
    let reliability = try reliability(message[1], message.uint32(at: 4))
    let labelBytes = Int(message.uint16(at: 8))
    let protocolBytes = Int(message.uint16(at: 10))
    let longer = max(labelBytes, protocolBytes)
    guard longer <= maximumTextBytes else { throw .textTooLong(bytes: longer, allowed: maximumTextBytes) }
    let labelEnd = DataChannelOpen.headBytes + labelBytes
    let end = labelEnd + protocolBytes
    guard message.count >= end else { throw .truncated(bytes: message.count, needed: end) }
    guard message.count == end else { throw .trailingBytes(message.count - end) }
    return DataChannelOpen(
      label: try text(message.extracting(DataChannelOpen.headBytes..<labelEnd)),
      subprotocol: try text(message.extracting(labelEnd..<end)), reliability: reliability,
      isOrdered: message[1] & Code.unordered == 0, priority: message.uint16(at: 2))
  }

  private static func reliability(
    _ type: UInt8, _ parameter: UInt32
  ) throws(DataChannelProblem) -> DataChannelReliability {
    switch type & ~Code.unordered {
    // The parameter of a reliable channel is ignored.
    case Code.reliable: return .reliable
    case Code.retransmissions: return .retransmissions(parameter)
    case Code.lifetime: return .lifetime(milliseconds: parameter)
    default: throw .unknownChannelType(type)
    }
  }

  private static func text(_ bytes: Span<UInt8>) throws(DataChannelProblem) -> String {
    do { return String(copying: try UTF8Span(validating: bytes)) } catch { throw .notUTF8 }
  }

  // MARK: Writing

  /// Bytes of the message.
  public var byteCount: Int {
    switch self {
    case .open(let open): open.byteCount
    case .acknowledgement: 1
    }
  }

  /// Writes the message.
  /// - Returns: the number of bytes written.
  /// - Throws: when there is no room, or the label or the protocol has more than 65,535 bytes.
  @discardableResult
  public func write(
    into target: inout MutableSpan<UInt8>, at offset: Int = 0
  ) throws(DataChannelProblem) -> Int {
    let count = byteCount
    guard offset >= 0, target.count - offset >= count else {
      throw .noRoom(bytes: max(0, target.count - offset), needed: count)
    }
    switch self {
    case .acknowledgement: target[offset] = Code.acknowledgement
    case .open(let open): try Self.write(open, into: &target, at: offset)
    }
    return count
  }

  private static func write(
    _ open: DataChannelOpen, into target: inout MutableSpan<UInt8>, at offset: Int
  ) throws(DataChannelProblem) {
    let (label, subprotocol) = (open.label.utf8, open.subprotocol.utf8)
    let longer = max(label.count, subprotocol.count)
    guard longer <= DataChannelOpen.maximumTextBytes else {
      throw .textTooLong(bytes: longer, allowed: DataChannelOpen.maximumTextBytes)
    }
    let (type, parameter) = code(open.reliability)
    target[offset] = Code.open
    target[offset + 1] = type | (open.isOrdered ? 0 : Code.unordered)
    target.put(open.priority, at: offset + 2)
    target.put(parameter, at: offset + 4)
    target.put(UInt16(truncatingIfNeeded: label.count), at: offset + 8)
    target.put(UInt16(truncatingIfNeeded: subprotocol.count), at: offset + 10)
    var position = offset + DataChannelOpen.headBytes
    for text in [label, subprotocol] {
      for byte in text {
        target[position] = byte
        position += 1
      }
    }
  }

  private static func code(_ reliability: DataChannelReliability) -> (type: UInt8, parameter: UInt32) {
    switch reliability {
    case .reliable: (Code.reliable, 0)
    case .retransmissions(let count): (Code.retransmissions, count)
    case .lifetime(let milliseconds): (Code.lifetime, milliseconds)
    }
  }
}
