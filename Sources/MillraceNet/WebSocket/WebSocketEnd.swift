/// How a WebSocket ended, or why it never began.
public struct WebSocketEnd: Error, Sendable, Hashable, CustomStringConvertible {
  /// The close code, RFC 6455 section 7.4: the other side's, or what this side sent first. 1005: none was given; 1006: there was
  /// no good-bye.
  public var code: Int
  /// The words with it, of whoever said good-bye first; empty for none.
  public var reason: String
  /// What went wrong; nil when both said good-bye.
  public var problem: NetProblem?
  /// True when the end began here.
  public var isOurs: Bool

  /// An end by its code, RFC 6455 section 7.4.
  public init(code: Int, reason: String = "", problem: NetProblem? = nil, isOurs: Bool = false) {
    self.code = code
    self.reason = reason
    self.problem = problem
    self.isOurs = isOurs
  }

  public var description: String {
    problem?.text ?? "closed with code \(code)\(reason.isEmpty ? "" : ": \(reason)")"
  }
}

/// What a WebSocket tells. Always on the thread of the sockets, one at a time; `closed` is the last.
public enum WebSocketEvent: Sendable {
  /// It is there. The sub-protocol, if one was agreed on.
  case opened(protocol: String?)
  /// A message of text: UTF-8, checked.
  case text([UInt8])
  /// A message of bytes.
  case binary([UInt8])
  /// What waited to be sent has gone out, after a send was refused.
  case drained
  /// It is over, and how.
  case closed(WebSocketEnd)
}

/// Sizes and times of a WebSocket.
public struct WebSocketLimits: Sendable, Hashable {
  /// Bytes of a message that comes in, all its fragments together, up to 4 GB. A larger one ends the connection with code 1009.
  public var message = 1 << 20
  /// Bytes that may wait to be sent; beyond that `send` refuses, but for a message with nothing before it.
  public var backlog = 1 << 20
  /// Milliseconds to open: look-up, TCP, proxy, TLS, handshake. Of a server: for a visitor to ask for what they want.
  public var open = 10_000
  /// Milliseconds between pings; 0: none are sent, and silence is never noticed.
  public var ping = 20_000
  /// Milliseconds after a ping within which something must come.
  public var pong = 10_000
  /// Milliseconds for the other side to answer a good-bye.
  public var close = 2_000

  /// The usual ones.
  public init() {}

  /// Bytes of a frame at most, as the decoder of frames takes them.
  var frame: Int { min(max(message, 0), Int(UInt32.max)) }
}
