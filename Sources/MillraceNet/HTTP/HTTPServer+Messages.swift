extension HTTPServer {
  /// A client's request.
  public struct Request: Sendable {
    /// `GET`, `HEAD` and so on.
    public let method: String
    /// The path and the query, as they came.
    public let target: String
    /// The headers, as they came.
    public let headers: [(name: String, value: String)]
    /// The client's address.
    public let peer: String
    /// True for a well-formed WebSocket handshake, RFC 6455 section 4.1.
    public let asksForWebSocket: Bool
    /// The whole body for `Decision.receive` and `Decision.task`; empty before it was read.
    public internal(set) var body: [UInt8] = []

    /// The path, as it came: everything before the query.
    public var path: String { String(target.prefix { $0 != "?" }) }

    /// The first value of a name in the query, with escapes and `+` decoded; nil: the query does not have it.
    public subscript(query name: String) -> String? {
      HTTPText.values(of: name, in: target.replacing("+", with: "%20")).first
        .map { String(decoding: $0, as: UTF8.self) }
    }

    /// The first value of a header; the name is case-insensitive.
    public subscript(header name: String) -> String? { HTTPText.header(name, in: headers) }
  }

  /// The response to a client.
  ///
  /// `Connection` and the headers that frame the content are added, and `Cache-Control: no-store` unless the response has a
  /// `Cache-Control` of its own.
  public struct Response: Sendable {
    /// The HTTP status, 200 to 599. Statuses without content (204, 304) are sent without.
    public var status: Int
    /// Further headers. One with an invalid name or a line break in its value turns the response into status 500.
    public var headers: [(name: String, value: String)]
    /// The content; not sent to `HEAD`.
    public var content: Content

    /// What a response contains.
    public enum Content: Sendable {
      /// These bytes.
      case bytes([UInt8])
      /// The regular file at this path, read in pieces of 64 KiB off the server's thread. `Range` requests for one range are answered
      /// with 206. A path made from a request must have been checked by the caller: the server opens what it is given, and follows
      /// links. A file that cannot be opened is answered with 404.
      case file(String)
      /// Bytes as they come. The closure is called on the server's thread with the stream, and returns the receiver of its events.
      case stream(@Sendable (HTTPStream) -> @Sendable (HTTPStream.Event) -> Void)
    }

    /// A response from its parts.
    public init(status: Int = 200, headers: [(name: String, value: String)] = [], content: Content) {
      self.status = status
      self.headers = headers
      self.content = content
    }

    /// A response with these bytes.
    public init(status: Int = 200, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
      self.init(status: status, headers: headers, content: .bytes(body))
    }

    /// A response in plain text.
    public static func text(_ text: String, status: Int = 200) -> Response {
      Response(
        status: status, headers: [("Content-Type", "text/plain; charset=utf-8")], body: Array(text.utf8))
    }

    /// A response with a file.
    /// - Parameters:
    ///   - path: see `Content.file`.
    ///   - type: its media type, such as `text/html; charset=utf-8`.
    public static func file(_ path: String, type: String) -> Response {
      Response(headers: [("Content-Type", type)], content: .file(path))
    }

    /// An event stream, as browsers read it with `EventSource`; see `HTTPStream.send(event:id:_:)`.
    /// - Parameter begin: see `Content.stream`.
    public static func events(
      _ begin: @escaping @Sendable (HTTPStream) -> @Sendable (HTTPStream.Event) -> Void
    ) -> Response {
      Response(headers: [("Content-Type", "text/event-stream")], content: .stream(begin))
    }
  }

  /// What the server's code decides about a request when its head has arrived.
  public enum Decision: Sendable {
    /// Answer this. A body is read and discarded first, at most `limits.body` bytes of it.
    case answer(Response)
    /// Read the whole body, then call the closure on the server's thread. The answer may be given there or later. A body of more than
    /// `limit` bytes (nil: `limits.body`) is answered with 413, and the closure is not called.
    case receive(limit: Int? = nil, @Sendable (Request, HTTPReply) -> Void)
    /// Read the body as it comes. The closure is called on the server's thread and returns the receiver of the body. The answer may be
    /// given at any time; one given before the body's end is the connection's last, and when it is sent before that end the receiver
    /// gets `.failed` (`cancelled`). A body of more than `limit` bytes ends with `.failed`, and is answered with 413 where no answer was
    /// given.
    case stream(limit: Int, @Sendable (HTTPReply) -> @Sendable (BodyEvent) -> Void)
    /// As `receive`, but the closure runs in a task of its own, which is cancelled when the client goes.
    case task(limit: Int? = nil, @Sendable (Request) async -> Response)
    /// Open the WebSocket. The closure receives the socket and returns the receiver of its events. A request that did not ask for a
    /// WebSocket is answered with 426.
    case webSocket(protocol: String? = nil, @Sendable (WebSocket) -> @Sendable (WebSocketEvent) -> Void)
    /// Refuse the request: answer with this status and text, count it as refused, and close the connection.
    case refuse(status: Int, String)
  }

  /// A part of a request's body. Always on the server's thread, in order; `end` or `failed` is the last.
  public enum BodyEvent: Sendable {
    /// The next bytes.
    case bytes([UInt8])
    /// The body is complete.
    case end
    /// The rest does not come: the client went, was too slow, the body is too large, or its request was answered before its end.
    case failed(NetError)
  }

  /// Limits of connections, sizes and times.
  public struct Limits: Sendable, Hashable {
    /// Connections at once, without those that have become WebSockets; a few more may be open for a moment, since the system hands out
    /// several at a time. Beyond it clients wait in the system's queue.
    public var connections = 128
    /// Milliseconds a connection may take for a request's head and for a whole body; that a streamed body or a response may stand still;
    /// and that a connection may stay open between two requests. A response stands still while the client's system acknowledges nothing
    /// of it. The time until the answer is given has no limit.
    public var patience = 10_000
    /// Milliseconds a connection may stay open between two requests, or wait for the rest of a body that is not read as it comes, while
    /// other clients wait for one.
    public var crowdedPatience = 1_000
    /// Bytes of a request's body, unless a decision sets another limit. More is answered with 413.
    public var body = 65_536
    /// Bytes of a streamed response that may wait to be sent; see `HTTPStream.send`.
    public var backlog = 1 << 20
    /// Limits of WebSockets, from when they are open.
    public var webSocket = WebSocketLimits()

    /// The limits as documented.
    public init() {}
  }
}
