internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceRoomWire

/// What the connection to a hub reports, on its loop. Nothing follows `failed` and `closed`.
enum RoomSocketEvent: Sendable {
  case opened
  case text([UInt8])
  /// A frame that is no text.
  case binary
  /// It is of no use; it has ended.
  case failed(DialogError), closed(WebSocketEnd)
}

/// The connection of a member to its hub: a WebSocket with the sub-protocol of the wire. All calls on its loop, but for `hasRoom`.
final class RoomSocket: Sendable {
  /// The share of the backlog that messages may take, so that descriptions and commands always have room.
  private static let messageShare = 2
  /// Well within the time in which a room is left, in milliseconds.
  private static let closing = 500

  private struct State {
    var socket: WebSocket?
    var receive: (@Sendable (RoomSocketEvent) -> Void)?
  }

  private let request: WebSocketRequest
  private let loop: NetLoop
  private let state = Locked(State())

  init(_ settings: RoomClientSettings, on loop: NetLoop) {
    var request = WebSocketRequest(settings.address)
    request.protocols = [RoomWire.subprotocol]
    request.limits.open = settings.timeout
    request.limits.message = RoomLimits.messageBytes
    request.limits.ping = RoomLimits.pingSeconds * 1_000
    request.limits.pong = (RoomLimits.silenceSeconds - RoomLimits.pingSeconds) * 1_000
    request.limits.close = Self.closing
    request.proxy = settings.proxy
    request.trust = settings.trust
    request.isOwnServer = settings.isOwnHub
    request.allowsPlainCredentials = settings.plain
    request.loop = loop
    self.request = request
    self.loop = loop
  }

  /// Begins; nothing is reported within the call.
  func open(_ receive: @escaping @Sendable (RoomSocketEvent) -> Void) {
    state.withLock { $0.receive = receive }
    let socket = WebSocket.open(request) { [self] event in handle(event) }
    state.withLock { $0.socket = socket }
  }

  func send(_ bytes: [UInt8]) {
    guard let socket = state.withLock({ $0.socket }) else { return }
    guard socket.send(bytes, isText: true) else {
      return fail(RTCError.network.error("the hub reads nothing any more: too much waits to be sent to it"))
    }
  }

  /// Whether a message of so many bytes can be sent beside what waits. Any thread.
  func hasRoom(_ count: Int) -> Bool {
    guard let socket = state.withLock({ $0.socket }) else { return false }
    return socket.backlog + count <= request.limits.backlog / Self.messageShare
  }

  /// Ends it; nothing is reported any more.
  func close() {
    let socket = state.withLock { state in
      state.receive = nil
      return state.socket.take()
    }
    socket?.close()
  }

  private func handle(_ event: WebSocketEvent) {
    switch event {
    case .opened(RoomWire.subprotocol?): report(.opened)
    case .opened:
      fail(
        RTCError.signalRefused.error(
          "the server does not speak \(RoomWire.subprotocol); check the URL"))
    case .text(let bytes): report(.text(bytes))
    case .binary: report(.binary)
    case .drained: break
    case .closed(let end):
      let receive = state.withLock { state in
        state.socket = nil
        return state.receive.take()
      }
      receive?(.closed(end))
    }
  }

  private func report(_ event: RoomSocketEvent) {
    state.withLock { $0.receive }?(event)
  }

  private func fail(_ error: DialogError) {
    let (receive, socket) = state.withLock { ($0.receive.take(), $0.socket.take()) }
    socket?.cancel()
    // Not within a call to `send`.
    if let receive { loop.run { receive(.failed(error)) } }
  }
}
