public import MillraceDialog
public import MillraceNet

/// The connection that a session's messages go over: a WebSocket, a framed byte stream, or several of them as one.
///
/// All calls come from the event loop of the session, one at a time; events are reported there, and never from within a call.
public protocol ServiceWire: AnyObject {
  /// Bytes that wait to be sent.
  var backlog: Int { get }
  /// Sends one frame of the user's audio.
  func send(voice frame: [UInt8]) -> Bool
  /// Reads nothing more until `resume`.
  func pause()
  /// Reads on.
  func resume()
  /// Closes properly, with a close frame or a close alert. No event follows.
  func close()
  /// Closes at once. No event follows.
  func cancel()
}

/// The content of a message to a service.
public enum ServiceContent: Sendable, Hashable {
  /// A text message, UTF-8.
  case text([UInt8])
  /// A binary message, or a record of a byte stream.
  case binary([UInt8])
}

/// What a wire reports.
public enum ServiceEvent<Message: Sendable & Hashable>: Sendable {
  /// The connection is open.
  case opened
  /// A message arrived.
  case message(Message)
  /// An invalid message arrived; the text says what is wrong with it, and repeats nothing of it.
  case invalidMessage(String)
  /// Audio of a reply arrived.
  case audio([UInt8])
  /// A whole image of a reply arrived, a JPEG.
  case image([UInt8])
  /// The connection has ended, or could not be opened. The last event.
  case closed(DialogError)
}

/// A WebSocket as the wire of a session: text and binary messages as they are, a frame of audio in a binary message.
public final class WebSocketWire: ServiceWire {
  private let socket: WebSocket

  /// Opens a WebSocket. On the event loop.
  /// - Parameters:
  ///   - request: where to connect, with headers.
  ///   - loop: owns the socket.
  ///   - vendor: of the errors.
  ///   - cure: appended to the error for a refused key (401, 403): which parameter holds it.
  ///   - parse: a text message, parsed; binary messages are audio.
  ///   - receive: called with every event, on the event loop.
  public init<Message: Sendable & Hashable>(
    _ request: WebSocketRequest, on loop: NetLoop, vendor: String, cure: String,
    parse: @escaping @Sendable ([UInt8]) -> ServiceEvent<Message>,
    _ receive: @escaping @Sendable (ServiceEvent<Message>) -> Void
  ) {
    var request = request
    request.loop = loop
    socket = WebSocket.open(request) { event in
      switch event {
      case .opened: receive(.opened)
      case .text(let bytes): receive(parse(bytes))
      case .binary(let bytes): receive(.audio(bytes))
      case .drained: break
      case .closed(let end): receive(.closed(DialogError(end, vendor: vendor, cure: cure)))
      }
    }
  }

  public var backlog: Int { socket.backlog }

  /// Sends a message. Returns false when nothing more can be sent: the network is stalled, or the connection has ended.
  public func send(_ content: ServiceContent) -> Bool {
    switch content {
    case .text(let bytes): socket.send(bytes, isText: true)
    case .binary(let bytes): socket.send(bytes, isText: false)
    }
  }

  public func send(voice frame: [UInt8]) -> Bool { socket.send(frame, isText: false) }
  public func pause() { socket.pause() }
  public func resume() { socket.resume() }
  public func close() { socket.close(code: 1000) }
  public func cancel() { socket.cancel() }
}
