/// Puts frames together to messages, and finds what RFC 6455 forbids. A pure value: no socket, no clock.
///
/// It never holds more than `limit` bytes.
public struct WebSocketAssembler: Sendable {
  /// One frame, unmasked.
  public struct Frame: Sendable, Hashable {
    /// The last of its message.
    public var isFinal: Bool
    /// Four bits, RFC 6455 section 5.2.
    public var opcode: UInt8
    /// Any of the three reserved bits is set; no extension was agreed on.
    public var isReserved: Bool
    /// It came masked, as those of clients have to.
    public var isMasked: Bool
    /// Its content, unmasked.
    public var payload: [UInt8]

    /// A frame as it came.
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

  /// What a frame comes to.
  public enum Step: Sendable, Hashable {
    /// More has to come.
    case nothing
    /// A whole text message, UTF-8.
    case text([UInt8])
    /// A whole binary message.
    case binary([UInt8])
    /// A ping; its content has to be sent back.
    case ping([UInt8])
    /// The answer to a ping.
    case pong
    /// The other side says good-bye; code 1005: without a code.
    case close(code: Int, reason: String)
    /// The connection has to be failed with this code.
    case violation(code: Int, String)
  }

  private let isServer: Bool
  private let limit: Int
  private var message: [UInt8] = []
  /// The opcode the present message began with.
  private var opcode: UInt8?

  /// - Parameters:
  ///   - isServer: frames come from a client, which has to mask them; otherwise from a server, which must not.
  ///   - limit: bytes of a message at most.
  public init(isServer: Bool, limit: Int) {
    self.isServer = isServer
    self.limit = limit
  }

  /// Takes the next frame.
  public mutating func take(_ frame: Frame) -> Step {
    guard !frame.isReserved else { return .violation(code: 1002, "reserved bits are set") }
    guard frame.isMasked == isServer else {
      return .violation(
        code: 1002, isServer ? "a client has to mask its frames" : "a server must not mask its frames")
    }
    switch frame.opcode {
    case 0x0: return goOn(frame)
    case 0x1, 0x2: return begin(frame)
    case 0x8, 0x9, 0xA: return control(frame)
    default: return .violation(code: 1002, "opcode \(frame.opcode) has no meaning")
    }
  }

  private mutating func begin(_ frame: Frame) -> Step {
    guard opcode == nil else { return .violation(code: 1002, "a message begins inside another") }
    opcode = frame.opcode
    message = []
    return add(frame)
  }

  private mutating func goOn(_ frame: Frame) -> Step {
    guard opcode != nil else { return .violation(code: 1002, "a message goes on that has not begun") }
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
      return .violation(code: 1007, "a text is not UTF-8")
    }
    return .text(whole)
  }

  private func control(_ frame: Frame) -> Step {
    guard frame.isFinal, frame.payload.count <= 125 else {
      return .violation(code: 1002, "a control frame is cut in pieces or too long")
    }
    switch frame.opcode {
    case 0x9: return .ping(frame.payload)
    case 0xA: return .pong
    default: return close(frame.payload)
    }
  }

  private func close(_ payload: [UInt8]) -> Step {
    guard !payload.isEmpty else { return .close(code: 1005, reason: "") }
    guard payload.count >= 2 else { return .violation(code: 1002, "a close code has two bytes") }
    let code = Int(payload[0]) << 8 | Int(payload[1])
    guard Self.mayBeSent(code) else { return .violation(code: 1002, "\(code) is no close code") }
    guard let reason = String(validating: payload.dropFirst(2), as: UTF8.self) else {
      return .violation(code: 1007, "the reason of a close is not UTF-8")
    }
    return .close(code: code, reason: reason)
  }

  /// True for codes that may stand in a frame, RFC 6455 section 7.4 and the registry it made.
  public static func mayBeSent(_ code: Int) -> Bool {
    switch code {
    case 1000...1003, 1007...1014, 3000...4999: true
    default: false
    }
  }
}
