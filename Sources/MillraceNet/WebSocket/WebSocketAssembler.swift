/// Assembles frames into messages and detects violations of RFC 6455. A pure value: no socket, no clock.
///
/// Holds at most `limit` bytes.
public struct WebSocketAssembler: Sendable {
  /// A frame, unmasked.
  public struct Frame: Sendable, Hashable {
    /// The last frame of its message.
    public var isFinal: Bool
    /// The opcode, four bits, RFC 6455 section 5.2.
    public var opcode: UInt8
    /// One of the three reserved bits is set; no extension was negotiated.
    public var isReserved: Bool
    /// It arrived masked, as frames of clients must.
    public var isMasked: Bool
    /// The payload, unmasked.
    public var payload: [UInt8]

    /// Creates a frame.
    public init(
      isFinal: Bool = true, opcode: UInt8, isReserved: Bool = false, isMasked: Bool, payload: [UInt8]
    ) {
      self.isFinal = isFinal
      self.opcode = opcode
      self.isReserved = isReserved
      self.isMasked = isMasked
      self.payload = payload
    }
  }

  /// The result of a frame.
  public enum Step: Sendable, Hashable {
    /// The message is not complete.
    case nothing
    /// A complete text message, valid UTF-8.
    case text([UInt8])
    /// A complete binary message.
    case binary([UInt8])
    /// A ping; its payload must be sent back.
    case ping([UInt8])
    /// The answer to a ping.
    case pong
    /// The peer sent a close frame; 1005 means without a code.
    case close(code: Int, reason: String)
    /// The connection must fail with this code.
    case violation(code: Int, String)
  }

  private let isServer: Bool
  private let limit: Int
  private var message: [UInt8] = []
  /// The opcode of the message being assembled.
  private var opcode: UInt8?

  /// - Parameters:
  ///   - isServer: true when frames come from a client and must be masked; false when they come from a server and must not be.
  ///   - limit: the largest message in bytes.
  public init(isServer: Bool, limit: Int) {
    self.isServer = isServer
    self.limit = limit
  }

  /// Takes the next frame.
  public mutating func take(_ frame: Frame) -> Step {
    guard !frame.isReserved else { return .violation(code: 1002, "reserved bits are set") }
    guard frame.isMasked == isServer else {
      return .violation(
        code: 1002, isServer ? "a client must mask its frames" : "a server must not mask its frames")
    }
    switch frame.opcode {
    case 0x0: return resume(frame)
    case 0x1, 0x2: return begin(frame)
    case 0x8, 0x9, 0xA: return control(frame)
    default: return .violation(code: 1002, "unknown opcode \(frame.opcode)")
    }
  }

  private mutating func begin(_ frame: Frame) -> Step {
    guard opcode == nil else {
      return .violation(code: 1002, "a new message started before the last one ended")
    }
    opcode = frame.opcode
    message = []
    return add(frame)
  }

  private mutating func resume(_ frame: Frame) -> Step {
    guard opcode != nil else { return .violation(code: 1002, "a continuation frame without a message") }
    return add(frame)
  }

  private mutating func add(_ frame: Frame) -> Step {
    guard message.count + frame.payload.count <= limit else {
      return .violation(code: 1009, "a message is larger than \(limit) bytes")
    }
    if message.isEmpty { message = frame.payload } else { message += frame.payload }
    guard frame.isFinal, let opcode else { return .nothing }
    self.opcode = nil
    let whole = message
    message = []
    guard opcode == 0x1 else { return .binary(whole) }
    guard String(validating: whole, as: UTF8.self) != nil else {
      return .violation(code: 1007, "a text message is not valid UTF-8")
    }
    return .text(whole)
  }

  private func control(_ frame: Frame) -> Step {
    guard frame.isFinal, frame.payload.count <= 125 else {
      return .violation(code: 1002, "a control frame is fragmented or too long")
    }
    switch frame.opcode {
    case 0x9: return .ping(frame.payload)
    case 0xA: return .pong
    default: return close(frame.payload)
    }
  }

  private func close(_ payload: [UInt8]) -> Step {
    guard !payload.isEmpty else { return .close(code: 1005, reason: "") }
    guard payload.count >= 2 else { return .violation(code: 1002, "a close code must have two bytes") }
    let code = Int(payload[0]) << 8 | Int(payload[1])
    guard Self.mayBeSent(code) else { return .violation(code: 1002, "invalid close code \(code)") }
    guard let reason = String(validating: payload.dropFirst(2), as: UTF8.self) else {
      return .violation(code: 1007, "the reason of a close frame is not valid UTF-8")
    }
    return .close(code: code, reason: reason)
  }

  /// True for close codes that may be sent, RFC 6455 section 7.4 and its registry.
  public static func mayBeSent(_ code: Int) -> Bool {
    switch code {
    case 1000...1003, 1007...1014, 3000...4999: true
    default: false
    }
  }
}
