public import MillraceNet

/// HTTP requests and a WebSocket as one wire: for services whose sessions are created and ended by requests, and controlled over a WebSocket
/// in between.
///
/// The wire is open at once, and never ends by itself: a request that fails and a channel that is lost are messages, since the session decides
/// what follows. Requests that were sent when the wire is closed are still carried out, such as the one that ends the session; their
/// answers are ignored. On the event loop of the session, like every wire.
public final class ChannelWire<Message: Sendable & Hashable>: ServiceWire, @unchecked Sendable {
  /// What happens to the channel.
  public enum ChannelEvent: Sendable {
    /// It is open.
    case opened
    /// A text message arrived.
    case text([UInt8])
    /// It was lost, or could not be opened. The last event of a channel.
    case closed(WebSocketEnd)
  }

  private let loop: NetLoop
  private let client: HTTPClient
  private let voice: ([UInt8]) -> [UInt8]
  private let receive: @Sendable (ServiceEvent<Message>) -> Void
  private var channel: WebSocket?
  /// Number of the channel: events of older ones are ignored.
  private var attempt = 0
  private var isPaused = false
  /// Requests without a response.
  private var pending = 0
  /// It was closed from this side: what still arrives is not reported.
  public private(set) var isClosed = false

  /// Opens a wire without a channel. On the event loop.
  /// - Parameters:
  ///   - loop: owns the sockets.
  ///   - voice: the text message of the channel for a frame of the user's audio; empty: none.
  ///   - receive: called with every event, on the event loop.
  public init(
    on loop: NetLoop, voice: @escaping ([UInt8]) -> [UInt8],
    _ receive: @escaping @Sendable (ServiceEvent<Message>) -> Void
  ) {
    self.loop = loop
    self.voice = voice
    self.receive = receive
    client = HTTPClient(on: loop)
    report(.opened)
  }

  /// Reports an event that the endpoint created, such as a request that cannot be made.
  public func report(_ event: ServiceEvent<Message>) { loop.run { [self] in deliver(event) } }

  private func deliver(_ event: ServiceEvent<Message>) {
    if !isClosed { receive(event) }
  }

  // MARK: Requests

  /// Sends a request.
  /// - Parameter event: what its response, or its failure, means.
  public func call(
    _ request: HTTPClient.Request,
    _ event: @escaping @Sendable (Result<HTTPClient.Response, NetError>) -> ServiceEvent<Message>
  ) {
    pending += 1
    if isClosed { LastRequests.begin() }
    // The client lives as long as its requests.
    client.run(request) { [self, client] result in
      _ = client
      deliver(event(result))
      pending -= 1
      if isClosed { LastRequests.end() }
    }
  }

  // MARK: The channel

  /// Opens the channel; one that is open is closed first.
  /// - Parameters:
  ///   - request: where it is.
  ///   - event: what happens on it, in the service's terms.
  public func openChannel(
    _ request: WebSocketRequest,
    _ event: @escaping @Sendable (ChannelEvent) -> ServiceEvent<Message>
  ) {
    closeChannel()
    let number = attempt
    var request = request
    request.loop = loop
    let socket = WebSocket.open(request) { [self] socketEvent in
      guard number == attempt else { return }
      switch socketEvent {
      case .opened: deliver(event(.opened))
      case .text(let bytes): deliver(event(.text(bytes)))
      case .binary: deliver(.invalidMessage("a binary message, where all are text"))
      case .drained: break
      case .closed(let end):
        channel = nil
        deliver(event(.closed(end)))
      }
    }
    if isPaused { socket.pause() }
    channel = socket
  }

  /// Closes the channel. No event of it follows.
  public func closeChannel() {
    attempt += 1
    channel?.close(code: 1000)
    channel = nil
  }

  /// Sends a text message over the channel. Without a channel it is discarded, as the loss is reported.
  /// - Returns: false when the network is stalled.
  public func send(_ text: [UInt8]) -> Bool { channel?.send(text, isText: true) ?? true }

  // MARK: ServiceWire

  public var backlog: Int { channel?.backlog ?? 0 }

  public func send(voice frame: [UInt8]) -> Bool {
    let text = voice(frame)
    return text.isEmpty || send(text)
  }

  public func pause() {
    isPaused = true
    channel?.pause()
  }

  public func resume() {
    isPaused = false
    channel?.resume()
  }

  public func close() {
    abandon()
    closeChannel()
  }

  /// Pending requests continue; an exiting program waits for them.
  private func abandon() {
    guard !isClosed else { return }
    isClosed = true
    for _ in 0..<pending { LastRequests.begin() }
  }

  public func cancel() {
    abandon()
    attempt += 1
    channel?.cancel()
    channel = nil
  }
}
