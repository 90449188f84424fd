internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// Keeps a connection alive for a node: opens it, opens it again after a loss, and carries bytes both ways. On the thread of the
/// sockets, but for `start`.
final class SocketKeeper: Sendable {
  /// How the connection comes about.
  enum Side: Sendable {
    case client(WebSocketRequest)
    /// Listens; one visitor at a time.
    case server(Reception)
  }

  /// Where visitors are waited for, and what they get.
  struct Reception: Sendable {
    var host: String
    var port: Int
    var path: String
    /// Spoken here, the best first.
    var protocols: [String]
    /// nil: no TLS.
    var identity: NetIdentity?
    var limits: WebSocketLimits
    var door = WebSocketDoor()
  }

  private struct State {
    var socket: WebSocket?
    var policy: ReconnectPolicy
    var attempts = 0
    /// The first attempt was made, or visitors are waited for: before that there is hope.
    var hasTried = false
    /// Messages that the node has no room for yet.
    var waiting = ByteBacklog()
    var isPaused = false
    var isClosing = false
    var hasEnded = false
    /// Why there is an end; told once nothing waits any more.
    var conclusion: Conclusion?
    var openedAt: Nanoseconds = 0
    var timer: NetTimer?
  }

  /// How it ended; without a failure it was meant to.
  private struct Conclusion {
    var failure: SessionEnd.Failure?
  }

  /// A connection that lasted so long was of use: the next wait is the first again.
  private static let useful: Nanoseconds = 10_000_000_000

  /// Events that the node has not told yet; with more of them nobody is let in.
  private static let mostNotes = 64

  private let exchange: SocketExchange
  private let side: Side
  /// True: what comes in text frames goes on as events.
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

  /// Begins. Any thread.
  func start() {
    exchange.ringer.begin { [self] in look() }
    switch side {
    case .client: NetLoop.shared.run { [self] in connect() }
    case .server(let reception):
      WebSocketServer.listen(
        host: reception.host, port: reception.port, identity: reception.identity, limits: reception.limits,
        door: reception.door, refused: { [self] in tell($0) },
        decide: { [self] in receive($0, reception) }, done: { [self] in listen($0) })
    }
  }

  private func tell(_ refusals: WebSocketDoor.Refusals) {
    exchange.tell(
      SocketNote(
        event: .refused, number: refusals.count, text: "\(refusals.place): \(refusals.latest)",
        status: refusals.latest.status ?? 0))
  }

  private func listen(_ result: Result<WebSocketServer, NetProblem>) {
    switch result {
    case .success(let server):
      self.server.withLock { $0 = server }
      state.withLock { $0.hasTried = true }
      exchange.tell(SocketNote(event: .reconnecting, number: 0, text: "listening at port \(server.port)"))
      look()
    case .failure(let problem):
      exchange.end.tell(SessionEnd.Failure(NodeFault(.gone), problem.text))
    }
  }

  // MARK: Opening

  private func connect() {
    guard case .client(let request) = side, !exchange.isStopped.load(ordering: .acquiring) else { return }
    state.withLock { $0.attempts += 1 }
    let socket = WebSocket.open(request) { [self] event in hear(event) }
    state.withLock { state in
      state.socket = socket
      state.hasTried = true
    }
  }

  private func receive(
    _ visitor: WebSocketServer.Visitor, _ reception: Reception
  ) -> WebSocketServer.Decision {
    guard visitor.target.prefix(while: { $0 != "?" }) == reception.path else {
      return .refuse(status: 404, "not here")
    }
    let (isFree, isEmpty) = state.withLock { ($0.socket == nil && !$0.isClosing, $0.waiting.isEmpty) }
    guard isFree else { return .refuse(status: 503, "somebody is here already") }
    // Each visitor leaves a little behind: many of them must not fill what one could not.
    guard isEmpty && exchange.noteCount < Self.mostNotes else {
      return .refuse(status: 503, "what the visitor before sent is not taken yet")
    }
    let offered = (visitor["Sec-WebSocket-Protocol"] ?? "").split(separator: ",")
      .map { $0.drop { $0 == " " }.prefix { $0 != " " } }
    return .accept(protocol: reception.protocols.first { offered.contains($0[...]) }) { [self] socket in
      let isFirst = state.withLock { state in
        guard state.socket == nil else { return false }
        state.socket = socket
        return true
      }
      if isFirst { return { [self] event in hear(event) } }
      // Two were let in before either was here.
      return { event in if case .opened = event { socket.close(code: 1013) } }
    }
  }

  private func hear(_ event: WebSocketEvent) {
    switch event {
    case .opened:
      let attempts = state.withLock { state in
        state.openedAt = clock.now
        // Of the socket before it.
        state.isPaused = false
        state.waiting.append(SocketExchange.beginning, [])
        defer { state.attempts = 0 }
        return state.attempts
      }
      exchange.isOpen.store(true, ordering: .releasing)
      exchange.tell(SocketNote(event: .connected, number: attempts))
    case .text(let bytes):
      if let words = takesEvents ? Self.objection(bytes) : nil {
        take(SocketExchange.noEvent, Array(words.utf8))
      } else {
        take(SocketExchange.text, bytes)
      }
    case .binary(let bytes): take(SocketExchange.binary, bytes)
    case .drained: break
    case .closed(let end): closed(end)
    }
    look()
  }

  /// Why a text is no event; nil: it is one. Says where it goes wrong, and never what stands there.
  private static func objection(_ bytes: [UInt8]) -> String? {
    let size = "a message of \(bytes.count) bytes is no event"
    do throws(JSONProblem) {
      return try JSONValue(parsing: bytes).members == nil ? "\(size): a JSON object is due" : nil
    } catch {
      return "\(size): \(error)"
    }
  }

  private func closed(_ end: WebSocketEnd) {
    exchange.isOpen.store(false, ordering: .releasing)
    let error = DialogError(end)
    let wasOpen = state.withLock { $0.openedAt > 0 }
    let decision: ReconnectPolicy.Decision = state.withLock { state in
      state.socket = nil
      if state.openedAt > 0 && clock.now - state.openedAt > Self.useful { state.policy.noteSuccess() }
      state.openedAt = 0
      if state.isClosing || exchange.isStopped.load(ordering: .acquiring) { return .stop(isFailure: false) }
      return state.policy.decide(error.reaction, at: clock.now)
    }
    if wasOpen { exchange.tell(SocketNote(event: .disconnected, number: end.code, text: end.reason)) }
    // A good-bye that says what went wrong is no good-bye. RFC 6455 section 7.4.1.
    let isFailure =
      end.problem != nil
      || wasOpen && !end.isOurs && (1_002...4_999).contains(end.code)
        && ![1_005, 1_006].contains(end.code)
    if isFailure {
      exchange.tell(SocketNote(event: .error, number: error.code ?? 0, error: error, text: error.text))
    }
    if case .server = side {
      // The next visitor may come.
      if state.withLock({ $0.isClosing }) { finish(nil) }
      return
    }
    switch decision {
    case .reconnect(let wait), .retry(let wait):
      exchange.tell(SocketNote(event: .reconnecting, number: Int(wait / 1_000_000)))
      let timer = NetLoop.shared.run(after: wait) { [self] in connect() }
      state.withLock { $0.timer = timer }
    case .goOn: connect()
    case .stop(let isFailure): finish(isFailure ? error : nil)
    }
  }

  private func finish(_ error: DialogError?) {
    state.withLock { state in
      guard !state.hasEnded else { return }
      state.hasEnded = true
      state.conclusion = Conclusion(failure: error.map { SessionEnd.Failure($0.fault, $0.text) })
    }
    // What waits goes before it.
    handOn()
  }

  // MARK: Carrying

  private func take(_ kind: UInt8, _ bytes: [UInt8]) {
    state.withLock { $0.waiting.append(kind, bytes) }
  }

  /// Carries what can be carried, both ways.
  private func look() {
    if exchange.isStopped.load(ordering: .sequentiallyConsistent) {
      stop()
      return
    }
    handOn()
    send()
  }

  /// To the node, and no more reading while it has no room. An end is told behind everything that came before it.
  private func handOn() {
    let change: (socket: WebSocket?, isPaused: Bool)? = state.withLock { state in
      if state.waiting.move(to: exchange.incoming) { exchange.waker.wake() }
      if state.waiting.isEmpty, let conclusion = state.conclusion.take() {
        exchange.end.tell(conclusion.failure)
      }
      guard state.isPaused == state.waiting.isEmpty else { return nil }
      state.isPaused = !state.waiting.isEmpty
      return (state.socket, state.isPaused)
    }
    // Not under the lock: a socket that goes on hands over at once what it held back.
    guard let change else { return }
    if change.isPaused { change.socket?.pause() } else { change.socket?.resume() }
  }

  private func send() {
    guard exchange.isOpen.load(ordering: .acquiring), let socket = state.withLock({ $0.socket }) else {
      // Nobody will come any more to whom anything could be said.
      if exchange.isEnding.load(ordering: .acquiring), state.withLock({ $0.hasTried && $0.socket == nil }) {
        sayGoodBye(nil)
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
    if exchange.isOver.load(ordering: .acquiring) && exchange.outgoing.peek() == nil { sayGoodBye(socket) }
  }

  private func sayGoodBye(_ socket: WebSocket?) {
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
      state.waiting.clear()
      return state.socket
    }
    // A good-bye is said, and nobody waits for the answer.
    socket?.close(code: 1001)
    server.withLock { $0 }?.stop()
    exchange.ringer.end()
  }
}
