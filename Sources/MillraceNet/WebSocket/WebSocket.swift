internal import NIOCore
internal import NIOHTTP1
internal import NIOWebSocket

/// A WebSocket (RFC 6455), of a client or of a server.
///
/// Events arrive on the thread of its loop (`NetLoop`). `closed` comes exactly once and last, even when the socket never opened.
/// Sending and closing are safe from any thread; both allocate.
///
/// Not supported: extensions (compression costs 300 KB a connection, and time on every audio frame without making it smaller), and
/// redirects. A server's certificate is always verified unless it is on this machine.
@safe
public final class WebSocket: Sendable {
  /// State of the event loop.
  private struct Core {
    var handler: WebSocketHandler?
    var channel: (any Channel)?
    var isPaused = false
    var isOver = false
    var opening: LoopTimer?
  }

  /// The loop of its events, and of everything that belongs to its session.
  public let loop: NetLoop
  private let core: NIOLoopBoundBox<Core>
  private let events: @Sendable (WebSocketEvent) -> Void
  private let limits: WebSocketLimits
  private let waiting: SendBacklog

  init(
    _ limits: WebSocketLimits, on loop: NetLoop, events: @escaping @Sendable (WebSocketEvent) -> Void
  ) {
    self.loop = loop
    self.limits = limits
    self.events = events
    waiting = SendBacklog(limit: limits.backlog)
    core = .makeBoxSendingValue(Core(), eventLoop: loop.loop)
  }

  /// Opens a WebSocket. Returns at once; `opened` or `closed` follows. Call `NetLoop.begin` first where the process may be out of descriptors.
  public static func open(
    _ request: WebSocketRequest, events: @escaping @Sendable (WebSocketEvent) -> Void
  ) -> WebSocket {
    let loop = request.loop ?? .shared
    let socket = WebSocket(request.limits, on: loop, events: events)
    loop.run { socket.begin(request) }
    return socket
  }

  // MARK: Any thread

  /// Sends a message. Returns false, and sends nothing, when the backlog would exceed its limit; `drained` follows later, unless the
  /// socket ends first. A message larger than the whole limit is accepted when nothing else waits. A message sent before `opened` or after
  /// the end is discarded.
  public func send(_ bytes: [UInt8], isText: Bool) -> Bool {
    let count = bytes.count + limits.messageCost
    switch waiting.add(count) {
    case .accepted:
      onLoop { $0.write(bytes, isText: isText, count) }
      return true
    case .refused: return false
    case .refusedButDrained:
      onLoop { $0.noteSent(0) }
      return false
    }
  }

  /// Sends a text message.
  public func send(text: String) -> Bool { send(Array(text.utf8), isText: true) }

  /// Bytes waiting to be sent, as the limits count them.
  public var backlog: Int { waiting.bytes }

  /// Sends a close frame and waits for the peer's, at most as long as the limits allow. A code that must not be sent (RFC 6455
  /// section 7.4) becomes 1000.
  public func close(code: Int = 1000, reason: String = "") {
    let code = WebSocketAssembler.mayBeSent(code) ? code : 1000
    onLoop { socket in
      guard let handler = socket.openHandler else {
        socket.abandon()
        return
      }
      handler.close(code, reason)
    }
  }

  /// Closes the connection at once, without a close frame. `closed` follows without waiting for the peer.
  public func cancel() {
    onLoop { socket in
      guard let handler = socket.openHandler else {
        socket.abandon()
        return
      }
      handler.cancel()
    }
  }

  /// Stops reading. Unless called from within an event, a few messages that were already read may still arrive. The end does not wait for
  /// `resume`: it is reported at once, after the messages before it.
  public func pause() { onLoop { $0.setPaused(true) } }

  /// Continues reading.
  public func resume() { onLoop { $0.setPaused(false) } }

  private func onLoop(_ body: @escaping @Sendable (WebSocket) -> Void) {
    if loop.isCurrent {
      body(self)
    } else {
      loop.run { body(self) }
    }
  }

  // MARK: Loop

  /// The handler, once frames may be sent.
  private var openHandler: WebSocketHandler? {
    guard let handler = core.value.handler, handler.hasBegun else { return nil }
    return handler
  }

  private func setPaused(_ isPaused: Bool) {
    core.value.isPaused = isPaused
    core.value.handler?.setPaused(isPaused)
  }

  private func write(_ bytes: [UInt8], isText: Bool, _ count: Int) {
    guard let handler = openHandler else {
      noteSent(count)
      return
    }
    let promise = loop.loop.makePromise(of: Void.self)
    promise.futureResult.whenComplete { [self] _ in noteSent(count) }
    handler.send(isText ? .text : .binary, bytes, promise: promise)
  }

  /// A message was sent, discarded or lost.
  private func noteSent(_ count: Int) {
    // A receiver that sends until the backlog is full would never return where nothing can be sent: all of it is discarded.
    if waiting.sent(count), openHandler?.canSend ?? true { emit(.drained) }
  }

  /// Passes an event on; none after the end.
  private func emit(_ event: WebSocketEvent) {
    guard !core.value.isOver else { return }
    if case .closed = event {
      core.value.isOver = true
      core.value.handler = nil
      core.value.channel = nil
      core.value.opening?.cancel()
    }
    events(event)
  }

  private func begin(_ request: WebSocketRequest) {
    guard !core.value.isOver else { return }
    if let problem = request.problem {
      end(problem)
      return
    }
    let peer = request.address.authority
    let time = request.limits.open
    core.value.opening = LoopTimer(on: loop.loop, in: .milliseconds(Int64(time))) { [self] in
      end(NetError(.timeout, "\(peer) did not open a WebSocket within \(time) ms"))
    }
    let opening = ConnectionAttempt(
      address: request.address, proxy: request.proxy, trust: request.trust,
      timeout: .milliseconds(Int64(time)), isOwnServer: request.isOwnServer)
    let key = NIOWebSocketClientUpgrader.randomRequestKey()
    let bound = NIOLoopBound(self, eventLoop: loop.loop)
    opening.open(on: loop.loop) { bound.value.keep($0) }.flatMap { [self] channel in
      HTTPExchange.run(
        on: channel, Self.head(request, key), limit: 65_536, peer: peer,
        host: request.address.host
      ) { [self] answer in
        try upgrade(channel, request, answer, key)
      }
    }.map { [self] _ in begin() }.whenFailure { [self] error in
      end(NetErrorMessages.error(error, peer, request.address.host))
    }
  }

  /// TCP is connected: the channel is closed on a timeout or when the socket was cancelled meanwhile.
  private func keep(_ channel: any Channel) {
    if core.value.isOver { channel.close(promise: nil) } else { core.value.channel = channel }
  }

  /// It did not open, or was cancelled.
  private func end(_ problem: NetError) {
    let channel = core.value.channel
    emit(.closed(WebSocketEnd(code: 1006, problem: problem, isLocal: problem.kind == .cancelled)))
    channel?.close(promise: nil)
  }

  private func abandon() { end(NetError(.cancelled, "cancelled before it was open")) }

  private static func head(_ request: WebSocketRequest, _ key: String) -> HTTPRequestHead {
    var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: request.address.target)
    if !request.headers.contains(where: { $0.name.lowercased() == "host" }) {
      head.headers.add(name: "Host", value: request.address.hostHeader)
    }
    head.headers.add(name: "Connection", value: "Upgrade")
    head.headers.add(name: "Upgrade", value: "websocket")
    upgrader(key).addCustom(upgradeRequestHeaders: &head.headers)
    if !request.protocols.isEmpty {
      head.headers.add(name: "Sec-WebSocket-Protocol", value: request.protocols.joined(separator: ", "))
    }
    for (name, value) in request.headers { head.headers.add(name: name, value: value) }
    return head
  }

  /// Only checks the server's answer to the key.
  private static func upgrader(_ key: String) -> NIOWebSocketClientUpgrader {
    NIOWebSocketClientUpgrader(requestKey: key) { channel, _ in channel.eventLoop.makeSucceededVoidFuture() }
  }

  private func upgrade(
    _ channel: any Channel, _ request: WebSocketRequest, _ answer: HTTPResponse, _ key: String
  ) throws {
    guard !core.value.isOver else { throw NetError(.cancelled, "cancelled before it was open") }
    let peer = request.address.authority
    guard answer.status == 101 else {
      throw NetError(
        .refused, status: answer.status,
        "\(peer) refused the WebSocket handshake with status \(answer.status)")
    }
    let chosen = answer.headers.first(name: "Sec-WebSocket-Protocol")
    guard answer.headers[canonicalForm: "Upgrade"].contains(where: { $0.lowercased() == "websocket" }),
      answer.headers[canonicalForm: "Connection"].contains(where: { $0.lowercased() == "upgrade" }),
      Self.upgrader(key).shouldAllowUpgrade(upgradeResponse: answer.head),
      answer.headers.first(name: "Sec-WebSocket-Extensions") == nil,
      chosen.map(request.protocols.contains) ?? true
    else { throw NetError(.protocolError, "\(peer) sent an invalid WebSocket handshake") }
    core.value.opening?.cancel()
    try attach(
      to: channel, isServer: false, peer: peer, host: request.address.host, subprotocol: chosen)
  }

  /// Becomes the last handler of a channel's pipeline. Nothing is delivered and sent before `begin`.
  func attach(
    to channel: any Channel, isServer: Bool, peer: String, host: String, subprotocol: String?
  ) throws {
    guard !core.value.isOver else {
      channel.close(promise: nil)
      return
    }
    let bound = NIOLoopBound(self, eventLoop: loop.loop)
    let handler = WebSocketHandler(
      isServer: isServer, limits: limits, peer: peer, host: host, subprotocol: subprotocol
    ) { bound.value.emit($0) }
    core.value.handler = handler
    core.value.channel = channel
    let pipeline = channel.pipeline.syncOperations
    // The decoder buffers a whole frame; the size of a message of many frames is limited by the handler.
    try pipeline.addHandlers([
      WebSocketFrameEncoder(), ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: limits.frame)),
    ])
    try pipeline.addHandler(handler)
    if core.value.isPaused { handler.setPaused(true) }
  }

  /// The handlers of HTTP are gone.
  func begin() { core.value.handler?.begin() }
}
