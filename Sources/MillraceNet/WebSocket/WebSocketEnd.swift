/// How a WebSocket ended, or why it did not open.
public struct WebSocketEnd: Error, Sendable, Hashable, CustomStringConvertible {
  /// The close code, RFC 6455 section 7.4, of the side that closed first. 1005: none was given; 1006: there was no close frame.
  public var code: Int
  /// The reason of the first close frame; empty for none.
  public var reason: String
  /// The error; nil after a proper close.
  public var problem: NetError?
  /// True when this side ended it.
  public var isLocal: Bool

  /// Creates an end with a close code.
  public init(code: Int, reason: String = "", problem: NetError? = nil, isLocal: Bool = false) {
    self.code = code
    self.reason = reason
    self.problem = problem
    self.isLocal = isLocal
  }

  public var description: String {
    problem?.text ?? "closed with code \(code)\(reason.isEmpty ? "" : ": \(reason)")"
  }
}

/// An event of a WebSocket. Always on the thread of its loop; `closed` is the last. One may arrive within a call made from another event:
/// `closed` within `cancel`, `drained` within `send`, messages within `resume`.
public enum WebSocketEvent: Sendable {
  /// The WebSocket is open; with the subprotocol, if one was negotiated.
  case opened(protocol: String?)
  /// A text message, valid UTF-8.
  case text([UInt8])
  /// A binary message.
  case binary([UInt8])
  /// The backlog was sent, after `send` had refused a message, and more can be sent.
  case drained
  /// The WebSocket ended.
  case closed(WebSocketEnd)
}

/// Size limits and timeouts of a WebSocket.
public struct WebSocketLimits: Sendable, Hashable {
  /// The largest incoming message in bytes, all fragments together, up to 4 GB. A larger one closes the connection with code 1009.
  public var message = 1 << 20
  /// Bytes that may wait to be sent; beyond that `send` refuses, except for a message with nothing before it.
  public var backlog = 1 << 20
  /// What each message that waits counts besides its bytes: it takes a buffer and a place in queues, however small it is. For servers
  /// that send what others have them send.
  package var messageCost = 0
  /// Milliseconds to open: DNS lookup, TCP, proxy, TLS, handshake. For a server: the client's time to send its request.
  public var open = 10_000
  /// Milliseconds between pings; 0: none are sent, and an unresponsive peer is not detected.
  public var ping = 20_000
  /// Milliseconds after a ping within which the peer must send something.
  public var pong = 10_000
  /// Milliseconds for the peer to answer a close frame.
  public var close = 2_000

  /// Creates the defaults.
  public init() {}

  /// The largest frame in bytes, for the frame decoder.
  var frame: Int { min(max(message, 0), Int(UInt32.max)) }
}
