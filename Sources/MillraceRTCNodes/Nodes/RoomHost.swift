internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import MillraceRTCSignal
internal import MillraceRoom

/// The hub of a node: it listens for as long as the node lives, whatever becomes of the node's own part in the room. Any thread.
final class RoomHost: Sendable {
  private struct State {
    var result: Result<RoomHubServer, DialogError>?
    var waiters: [@Sendable (Result<RoomHubServer, DialogError>) -> Void] = []
    var isStopped = false
  }

  private let state = Locked(State())
  private let settings: RoomServerSettings

  init(_ settings: RoomServerSettings) { self.settings = settings }

  deinit { stop() }

  /// The room that the page joins where its address names none.
  private static let usualRoom = "lobby"

  /// What browsers open to be in a room, once it listens; nil: there is no page.
  /// - Parameter room: a valid name, which has nothing to escape.
  func address(_ port: Int, room: String) -> String? {
    guard settings.hasPage else { return nil }
    let host = settings.host == "0.0.0.0" || settings.host == "::" ? "localhost" : settings.host
    let scheme = settings.identity == nil ? "http" : "https"
    let query = room == Self.usualRoom ? "" : "?room=\(room)"
    return "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)/\(query)"
  }

  /// Whether people are let in by token only.
  var needsToken: Bool { settings.hub.key != nil }

  /// Starts listening.
  func start() {
    // The hub says goodbye to its members.
    LastRequests.begin()
    RoomHubServer.listen(settings) { [weak self] result in
      guard let self else {
        if case .success(let server) = result { Self.stop(server) } else { LastRequests.end() }
        return
      }
      self.finish(result.mapError { Self.error($0) })
    }
  }

  private static func error(_ problem: NetError) -> DialogError {
    // Trying again does not free a port.
    let cure = problem.obstacle.map { "; \($0.cure)" } ?? ""
    return RTCError.failed.error(problem.text + cure, reaction: .refuse)
  }

  private func finish(_ result: Result<RoomHubServer, DialogError>) {
    let (waiters, isStopped) = state.withLock { state in
      state.result = result
      defer { state.waiters = [] }
      return (state.waiters, state.isStopped)
    }
    if case .failure = result { LastRequests.end() }
    for waiter in waiters { waiter(isStopped ? Self.stopped : result) }
    if isStopped, case .success(let server) = result { Self.stop(server) }
  }

  private static var stopped: Result<RoomHubServer, DialogError> {
    .failure(RTCError.ended.error("the hub of this node has been stopped"))
  }

  /// Calls back once it listens, or when it cannot, or no longer does: on a network thread, never within this call.
  func whenReady(_ body: @escaping @Sendable (Result<RoomHubServer, DialogError>) -> Void) {
    let result: Result<RoomHubServer, DialogError>? = state.withLock { state in
      if state.isStopped { return Self.stopped }
      if state.result == nil { state.waiters.append(body) }
      return state.result
    }
    if let result { NetLoop.shared.run { body(result) } }
  }

  /// Ends the hub in the background.
  func stop() {
    let server: RoomHubServer? = state.withLock { state in
      guard !state.isStopped else { return nil }
      state.isStopped = true
      if case .success(let server)? = state.result { return server }
      return nil
    }
    if let server { Self.stop(server) }
  }

  private static func stop(_ server: RoomHubServer) {
    server.stop { LastRequests.end() }
  }
}

/// The part of a node in a room of its own hub: begins once that listens, and tells where. When somebody closes the room, it joins the room
/// again, at most once a second. Otherwise a `RoomClient`.
final class HostedRoomClient: Signalling {
  private struct State {
    /// The present one; after the end of the room the last one, until the next joins.
    var client: RoomClient?
    var joinedAt: Nanoseconds = 0
    var hasTold = false
    var isEnded = false
  }

  /// From one attempt to join the room to the next.
  private static let pause: Nanoseconds = .milliseconds(1_000)

  private let host: RoomHost
  private let make: @Sendable (_ port: Int) -> Result<RoomClientSettings, DialogError>
  private let tells: Bool
  private let earlier: RoomWishes?
  private let clock = Clock(.realtime)
  private let state = Locked(State())

  /// - Parameters:
  ///   - tells: says where the hub listens.
  ///   - earlier: what an attempt before this one had come to.
  ///   - make: the settings for the hub's port.
  init(
    _ host: RoomHost, tells: Bool, earlier: RoomWishes?,
    make: @escaping @Sendable (_ port: Int) -> Result<RoomClientSettings, DialogError>
  ) {
    self.host = host
    self.tells = tells
    self.earlier = earlier
    self.make = make
  }

  private var client: RoomClient? { state.withLock { $0.client } }

  /// As those of `RoomClient`.
  var traits: SignalTraits { SignalTraits(isTrickle: true, canRestart: true, carriesMessages: true) }

  /// What another attempt should begin with; nil: none has begun.
  var wishes: RoomWishes? { client?.wishes ?? earlier }

  func begin(_ report: @escaping @Sendable (SignalEvent) -> Void) {
    host.whenReady { [self] result in
      guard !state.withLock({ $0.isEnded }) else { return }
      switch result {
      case .failure(let error): report(.closed(error))
      case .success(let server): join(server, report)
      }
    }
  }

  private func join(_ server: RoomHubServer, _ report: @escaping @Sendable (SignalEvent) -> Void) {
    let isFirst = state.withLock { state in
      defer { state.hasTold = true }
      return !state.hasTold
    }
    switch make(server.port) {
    case .failure(let error): report(.closed(error))
    case .success(var settings):
      settings.wishes = wishes
      if tells, isFirst {
        report(
          .event(
            .extra(
              name: "listening",
              payload: .object([
                "port": .integer(server.port),
                "url": host.address(server.port, room: settings.room).map { .string($0) },
                "needsToken": host.needsToken ? .bool(true) : nil,
              ]))))
      }
      let client = RoomClient(settings)
      let now = clock.now
      let begins = state.withLock { state in
        guard !state.isEnded else { return false }
        (state.client, state.joinedAt) = (client, now)
        return true
      }
      guard begins else { return }
      client.begin { [weak self] event in
        guard case .closed(let error) = event, error.reaction == .ended, let self else {
          return report(event)
        }
        self.joinAgain(report)
      }
    }
  }

  /// Somebody has closed the room, and the hub is still there. On the thread of the reports.
  private func joinAgain(_ report: @escaping @Sendable (SignalEvent) -> Void) {
    // The session has ended with the room.
    report(.sessionEnded(SignalSessionID(0)))
    let next = state.withLock { $0.joinedAt } + Self.pause
    _ = NetLoop.shared.run(after: max(0, next - clock.now)) { [weak self] in self?.begin(report) }
  }

  func describe(_ session: SignalSessionID, sdp: String) { client?.describe(session, sdp: sdp) }
  func add(_ candidate: String?, to session: SignalSessionID) { client?.add(candidate, to: session) }
  func restart(_ session: SignalSessionID, sdp: String) { client?.restart(session, sdp: sdp) }
  func refuse(_ session: SignalSessionID, _ error: RTCError, _ text: String) {
    client?.refuse(session, error, text)
  }
  func connected(_ session: SignalSessionID) { client?.connected(session) }
  func end(_ session: SignalSessionID) { client?.end(session) }

  func perform(_ command: DialogCommand, _ done: @escaping @Sendable (DialogError?) -> Void) -> Bool {
    client?.perform(command, done) ?? false
  }

  func send(_ bytes: [UInt8], isText: Bool, label: String, to peer: String?) -> SignalSending {
    client?.send(bytes, isText: isText, label: label, to: peer) ?? .full
  }

  func end(_ done: @escaping @Sendable () -> Void) {
    let client = state.withLock { state in
      state.isEnded = true
      return state.client
    }
    if let client { client.end(done) } else { done() }
  }
}
