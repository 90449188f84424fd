internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import MillraceService
internal import Synchronization

/// The connection of a `net.websocket` node: opens it, reconnects after a loss, and moves messages in both directions. Runs on the network
/// thread, except for `start`.
final class SocketConnection: Sendable {
  /// Client or server.
  enum Side: Sendable {
    /// With its place on a network thread.
    case client(WebSocketRequest, NetLoop.Lease)
    /// Accepts one client at a time.
    case server(Listener)
  }

  /// Where to listen, and for whom.
  struct Listener: Sendable {
    var host: String
    var port: Int
    var path: String
    /// Supported subprotocols, in order of preference.
    var protocols: [String]
    /// Nil: no TLS.
    var identity: NetIdentity?
    var limits: WebSocketLimits
    var admission = ServerAdmission()
  }

  private struct State {
    var socket: WebSocket?
    var policy: ReconnectPolicy
    var attempts = 0
    /// The first attempt was made, or the server listens: until then a connection may still come.
    var hasTried = false
    /// Messages the node has no room for yet.
    var backlog = ByteBacklog()
    var isPaused = false
    var isClosing = false
    var hasEnded = false
    /// The final end; reported when the backlog is empty.
    var conclusion: Conclusion?
    var openedAt: Nanoseconds = 0
    var timer: NetTimer?
  }

  /// How it ended; without a failure it ended as intended.
  private struct Conclusion {
    var failure: SessionEnd.Failure?
  }

  /// After a connection that lasted this long, backoff starts over.
  private static let stableTime: Nanoseconds = 10_000_000_000

  /// The most events not posted yet; with more, no client is accepted.
  private static let maxEvents = 64

  private let exchange: SocketExchange
  private let side: Side
  /// True: text messages become events.
  private let takesEvents: Bool
  private let state: Locked<State>
  private let clock = Clock(.realtime)
  private let server = Locked<WebSocketServer?>(nil)

  init(_ exchange: SocketExchange, _ side: Side, _ policy: ReconnectPolicy, takesEvents: Bool) {
    self.exchange = exchange
    self.side = side
    self.takesEvents = takesEvents
    state = Locked(State(policy: policy))
  }

  /// Owns its sockets and timers; those of a server are on the shared one.
  private var loop: NetLoop {
    switch side {
    case .client(_, let lease): lease.loop
    case .server: .shared
    }
  }

  /// Starts connecting or listening. Any thread.
  func start() {
    exchange.wakeSignal.begin(on: loop) { [self] in transfer() }
    switch side {
    case .client: loop.run { [self] in connect() }
    case .server(let listener):
      WebSocketServer.listen(
        host: listener.host, port: listener.port, identity: listener.identity, limits: listener.limits,
        admission: listener.admission, refused: { [self] in report($0) },
        decide: { [self] in accept($0, listener) }, done: { [self] in didListen($0) })
    }
  }

  private func report(_ refusals: ServerAdmission.Refusals) {
    exchange.report(
      ConnectionEvent(
        kind: .refused, number: refusals.count, text: "\(refusals.peer): \(refusals.latest)",
        status: refusals.latest.status ?? 0))
  }

  private func didListen(_ result: Result<WebSocketServer, NetError>) {
    switch result {
    case .success(let server):
      self.server.withLock { $0 = server }
      state.withLock { $0.hasTried = true }
      exchange.report(
        ConnectionEvent(kind: .reconnecting, number: 0, text: "listening on port \(server.port)"))
      transfer()
    case .failure(let problem):
      exchange.end.report(SessionEnd.Failure(NodeFault(.gone), problem.text))
    }
  }

  // MARK: Opening

  private func connect() {
    guard case .client(var request, _) = side, !exchange.isStopped.load(ordering: .acquiring) else { return }
    state.withLock { $0.attempts += 1 }
    request.loop = loop
    let socket = WebSocket.open(request) { [self] event in handle(event) }
    state.withLock { state in
      state.socket = socket
      state.hasTried = true
    }
  }

  private func accept(
    _ client: WebSocketServer.Client, _ listener: Listener
  ) -> WebSocketServer.Decision {
    guard client.target.prefix(while: { $0 != "?" }) == listener.path else {
      return .refuse(status: 404, "not found")
    }
    let (isFree, isEmpty) = state.withLock { ($0.socket == nil && !$0.isClosing, $0.backlog.isEmpty) }
    guard isFree else { return .refuse(status: 503, "another client is connected") }
    // Each client leaves a few events behind: many clients must not exceed what one could not.
    guard isEmpty && exchange.eventCount < Self.maxEvents else {
      return .refuse(status: 503, "messages of the previous client are still being processed")
    }
    let offered = (client["Sec-WebSocket-Protocol"] ?? "").split(separator: ",")
      .map { $0.drop { $0 == " " }.prefix { $0 != " " } }
    return .accept(protocol: listener.protocols.first { offered.contains($0[...]) }) { [self] socket in
      let isFirst = state.withLock { state in
        guard state.socket == nil else { return false }
        state.socket = socket
        return true
      }
      if isFirst { return { [self] event in handle(event) } }
      // Two clients were accepted before either was connected.
      return { event in if case .opened = event { socket.close(code: 1013) } }
    }
  }

  private func handle(_ event: WebSocketEvent) {
    switch event {
    case .opened:
      let attempts = state.withLock { state in
        state.openedAt = clock.now
        // Left over from the socket before.
        state.isPaused = false
        state.backlog.append(SocketExchange.connectionStart, [])
        defer { state.attempts = 0 }
        return state.attempts
      }
      exchange.isOpen.store(true, ordering: .releasing)
      exchange.report(ConnectionEvent(kind: .connected, number: attempts))
    case .text(let bytes):
      if let problem = takesEvents ? Self.problem(bytes) : nil {
        take(SocketExchange.invalidText, Array(problem.utf8))
      } else {
        take(SocketExchange.text, bytes)
      }
    case .binary(let bytes): take(SocketExchange.binary, bytes)
    case .drained: break
    case .closed(let end): closed(end)
    }
    transfer()
  }

  /// Why a text message is not an event, or nil. Says where it is invalid, and never repeats its content.
  private static func problem(_ bytes: [UInt8]) -> String? {
    let size = "a message of \(bytes.count) bytes is not an event"
    do throws(JSONProblem) {
      return try JSONValue(parsing: bytes).members == nil ? "\(size): expected a JSON object" : nil
    } catch {
      return "\(size): \(error)"
    }
  }

  private func closed(_ end: WebSocketEnd) {
    exchange.isOpen.store(false, ordering: .releasing)
    let error = DialogError(end, vendor: "websocket")
    let wasOpen = state.withLock { $0.openedAt > 0 }
    let decision: ReconnectPolicy.Decision = state.withLock { state in
      state.socket = nil
      if state.openedAt > 0 && clock.now - state.openedAt > Self.stableTime { state.policy.noteSuccess() }
      state.openedAt = 0
      if state.isClosing || exchange.isStopped.load(ordering: .acquiring) { return .stop(isFailure: false) }
      return state.policy.decide(error.reaction, at: clock.now)
    }
    if wasOpen { exchange.report(ConnectionEvent(kind: .disconnected, number: end.code, text: end.reason)) }
    // A close frame with an error code is a failure, RFC 6455 section 7.4.1.
    let isFailure =
      end.problem != nil
      || wasOpen && !end.isLocal && (1_002...4_999).contains(end.code)
        && ![1_005, 1_006].contains(end.code)
    if isFailure {
      exchange.report(ConnectionEvent(kind: .error, number: error.code ?? 0, error: error, text: error.text))
    }
    if case .server = side {
      // The next client may connect.
      if state.withLock({ $0.isClosing }) { finish(nil) }
      return
    }
    switch decision {
    case .reconnect(let wait), .retry(let wait):
      exchange.report(ConnectionEvent(kind: .reconnecting, number: Int(wait / 1_000_000)))
      let timer = loop.run(after: wait) { [self] in connect() }
      state.withLock { $0.timer = timer }
    case .continue: connect()
    case .stop(let isFailure): finish(isFailure ? error : nil)
    }
  }

  private func finish(_ error: DialogError?) {
    state.withLock { state in
      guard !state.hasEnded else { return }
      state.hasEnded = true
      state.conclusion = Conclusion(failure: error.map { SessionEnd.Failure($0.fault, $0.text) })
    }
    // Reported behind the backlog.
    deliver()
  }

  // MARK: Messages

  private func take(_ kind: UInt8, _ bytes: [UInt8]) {
    state.withLock { $0.backlog.append(kind, bytes) }
  }

  /// Moves messages in both directions.
  private func transfer() {
    if exchange.isStopped.load(ordering: .sequentiallyConsistent) {
      stop()
      return
    }
    deliver()
    send()
  }

  /// Moves the backlog to the node, and pauses reading while the node has no room. The end is reported after every message before it.
  private func deliver() {
    let change: (socket: WebSocket?, isPaused: Bool)? = state.withLock { state in
      if state.backlog.move(to: exchange.incoming) { exchange.waker.wake() }
      if state.backlog.isEmpty, let conclusion = state.conclusion.take() {
        exchange.end.report(conclusion.failure)
      }
      guard state.isPaused == state.backlog.isEmpty else { return nil }
      state.isPaused = !state.backlog.isEmpty
      return (state.socket, state.isPaused)
    }
    // Not under the lock: a socket that resumes delivers its pending messages at once.
    guard let change else { return }
    if change.isPaused { change.socket?.pause() } else { change.socket?.resume() }
  }

  private func send() {
    guard exchange.isOpen.load(ordering: .acquiring), let socket = state.withLock({ $0.socket }) else {
      // No connection will follow.
      if exchange.isEnding.load(ordering: .acquiring), state.withLock({ $0.hasTried && $0.socket == nil }) {
        close(nil)
      }
      return
    }
    var sent = 0
    while let record = exchange.outgoing.peek() {
      guard socket.send(unsafe Array(record.bytes), isText: record.kind == SocketExchange.text) else { break }
      exchange.outgoing.drop(record)
      sent += 1
    }
    if sent > 0 { exchange.waker.wake() }
    if exchange.isOver.load(ordering: .acquiring) && exchange.outgoing.peek() == nil { close(socket) }
  }

  private func close(_ socket: WebSocket?) {
    let isFirst = state.withLock { state in
      defer { state.isClosing = true }
      return !state.isClosing
    }
    guard isFirst else { return }
    if let socket {
      socket.close()
    } else {
      state.withLock { $0.timer?.cancel() }
      finish(nil)
    }
  }

  private func stop() {
    let socket = state.withLock { state in
      state.isClosing = true
      state.timer?.cancel()
      state.backlog.clear()
      return state.socket
    }
    // Sends a close frame without waiting for the answer.
    socket?.close(code: 1001)
    // Its rules refer to this connection.
    server.withLock { $0.take() }?.stop()
    exchange.wakeSignal.end()
  }
}
