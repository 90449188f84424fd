internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet

/// A link to Janus over a WebSocket with the subprotocol `janus-protocol`: one message a frame, with the ids of session and handle.
/// Janus destroys the session when the socket closes.
final class JanusSocket: JanusLink {
  private struct State {
    var socket: WebSocket?
    var receive: (@Sendable (JanusLinkEvent) -> Void)?
  }

  private let settings: JanusSettings
  private let loop: NetLoop
  private let state = Locked(State())

  init(_ settings: JanusSettings, on loop: NetLoop) {
    self.settings = settings
    self.loop = loop
  }

  func open(_ receive: @escaping @Sendable (JanusLinkEvent) -> Void) {
    var request = WebSocketRequest(settings.url)
    request.protocols = ["janus-protocol"]
    request.limits.open = settings.timeout
    request.limits.message = JanusMessage.mostBytes
    // Well within the time in which a session is ended.
    request.limits.close = 500
    request.proxy = settings.proxy
    request.trust = settings.trust
    request.allowsPlainCredentials = settings.plain
    request.loop = loop
    state.withLock { $0.receive = receive }
    let socket = WebSocket.open(request) { [self] event in handle(event) }
    state.withLock { $0.socket = socket }
  }

  func send(_ request: JanusRequest) {
    var members = request.json.members ?? []
    if let session = request.session { members.append(JSONValue.Member("session_id", .integer(session))) }
    if let handle = request.handle { members.append(JSONValue.Member("handle_id", .integer(handle))) }
    guard let socket = state.withLock({ $0.socket }) else { return }
    guard socket.send(JSONValue.object(members).bytes, isText: true) else {
      fail(RTCError.network.error("Janus reads nothing any more: too much waits to be sent to it"))
      return
    }
  }

  func listen(to session: Int) {}

  func close() {
    let socket = state.withLock { state in
      state.receive = nil
      return state.socket.take()
    }
    socket?.close()
  }

  private func handle(_ event: WebSocketEvent) {
    switch event {
    case .opened: report(.opened)
    case .text(let bytes), .binary(let bytes): report(.bytes(bytes))
    case .drained: break
    case .closed(let end): fail(JanusErrors.error(end))
    }
  }

  private func report(_ event: JanusLinkEvent) {
    state.withLock { $0.receive }?(event)
  }

  private func fail(_ error: DialogError) {
    let (receive, socket) = state.withLock { ($0.receive.take(), $0.socket.take()) }
    socket?.cancel()
    // Not within a call to `send`.
    if let receive { loop.run { receive(.failed(error)) } }
  }
}
