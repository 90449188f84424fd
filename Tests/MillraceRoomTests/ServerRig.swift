import MillraceCore
import MillraceNet
import MillraceRoomWire
import TestNet
import Testing

@testable import MillraceRoom

/// A hub on this machine, and what it has reported.
final class ServerRig: Sendable {
  let server: RoomHubServer
  private let log: Locked<[RoomServerEvent]>

  private init(_ server: RoomHubServer, _ log: Locked<[RoomServerEvent]>) {
    self.server = server
    self.log = log
  }

  /// Settings for a machine that runs all tests at once: nobody is gone because it was slow.
  static func settings(_ change: (inout RoomServerSettings) -> Void = { _ in }) -> RoomServerSettings {
    var settings = RoomServerSettings(port: 0)
    settings.admission = .loadTest
    settings.socket.ping = 0
    settings.socket.open = 600_000
    settings.socket.close = 600_000
    change(&settings)
    return settings
  }

  static func begin(_ change: (inout RoomServerSettings) -> Void = { _ in }) async throws -> ServerRig {
    let log = Locked<[RoomServerEvent]>([])
    let server = try await RoomHubServer.listen(
      settings(change),
      events: { event in
        log.withLock { $0.append(event) }
      })
    return ServerRig(server, log)
  }

  /// What was reported so far.
  var events: [RoomServerEvent] { log.withLock { $0 } }

  /// A client that has opened its WebSocket.
  func connect() async throws -> ServerMember {
    let member = try ServerMember(server.port)
    try await member.opened()
    return member
  }

  /// A client in a room.
  func member(
    _ user: String, in room: String = "lobby", name: String? = nil
  ) async throws -> (member: ServerMember, joined: RoomJoined) {
    let member = try await connect()
    _ = try await member.ask(.login(RoomLogin(named(user), name: name))).result.get()
    let joined = try await member.ask(.join(RoomJoin(named(room)))).payload(RoomJoined.self)
    return (member, joined)
  }

  /// Why a server does not start; nil: it does.
  static func refusal(_ change: (inout RoomServerSettings) -> Void) async -> NetError? {
    do throws(NetError) {
      let server = try await RoomHubServer.listen(settings(change))
      await server.stop()
      return nil
    } catch {
      return error
    }
  }
}

/// What did not happen within ten minutes.
struct ServerSilence: Error, CustomStringConvertible {
  let description: String
}

/// Waits until something is so: it depends on other threads.
func serverWaits<Value: Sendable>(
  for what: String, _ find: @Sendable () throws -> Value?
) async throws -> Value {
  let end = ContinuousClock.now + .seconds(600)
  while ContinuousClock.now < end {
    if let value = try find() { return value }
    try await Task.sleep(for: .milliseconds(1))
  }
  throw ServerSilence(description: "never came: \(what)")
}

func serverWaits(until what: String, _ isSo: @Sendable () -> Bool) async throws {
  _ = try await serverWaits(for: what) { isSo() ? true : nil }
}

/// A client of a hub, which keeps what it is sent.
final class ServerMember: Sendable {
  private struct Inbox: Sendable {
    var isOpen = false
    var subprotocol: String?
    var answers: [Int: RoomAnswer] = [:]
    var pushes: [RoomPush] = []
    var problems: [String] = []
    var end: WebSocketEnd?
  }

  let socket: WebSocket
  private let inbox: Locked<Inbox>
  private let ids = Locked(RoomSequence())

  init(
    _ port: Int, _ change: (inout WebSocketRequest) -> Void = { $0.protocols = [RoomWire.subprotocol] },
    scheme: String = "ws", host: String = "127.0.0.1", path: String = RoomWire.path
  ) throws {
    let inbox = Locked(Inbox())
    self.inbox = inbox
    var request = WebSocketRequest(try WebAddress("\(scheme)://\(host):\(port)\(path)"))
    request.limits = .patient
    request.limits.message = RoomLimits.messageBytes
    request.proxy = .direct
    change(&request)
    socket = WebSocket.open(request) { event in inbox.withLock { ServerMember.take(event, &$0) } }
  }

  private static func take(_ event: WebSocketEvent, _ inbox: inout Inbox) {
    switch event {
    case .opened(let subprotocol): (inbox.isOpen, inbox.subprotocol) = (true, subprotocol)
    case .text(let bytes): take(bytes, &inbox)
    case .binary: inbox.problems.append("a binary message")
    case .drained: break
    case .closed(let end): inbox.end = end
    }
  }

  private static func take(_ bytes: [UInt8], _ inbox: inout Inbox) {
    do throws(RoomReadProblem) {
      switch try RoomHubMessage(parsing: bytes) {
      case .push(let push): inbox.pushes.append(push)
      case .answer(let answer):
        if inbox.answers[answer.id] != nil { inbox.problems.append("\(answer.id) is answered twice") }
        inbox.answers[answer.id] = answer
      }
    } catch { inbox.problems.append("\(error)") }
  }

  // MARK: What it does

  func send(_ text: String) { _ = socket.send(text: text) }

  /// Makes a request; its id.
  @discardableResult
  func request(_ operation: RoomOperation) -> Int {
    let id = ids.withLock { $0.next() }
    _ = socket.send(RoomRequest(id, operation).bytes, isText: true)
    return id
  }

  func answer(_ id: Int) async throws -> RoomAnswer {
    try await value("the answer to request \(id)") { $0.answers[id] }
  }

  @discardableResult
  func ask(_ operation: RoomOperation) async throws -> RoomAnswer { try await answer(request(operation)) }

  /// Why a request is refused; nil: it is not.
  func refusal(_ operation: RoomOperation) async throws -> RoomErrorName? {
    if case .failure(let error) = try await ask(operation).result { error.name } else { nil }
  }

  /// Whether the hub still answers it: a request that nobody else notices.
  func isAlive() async throws -> Bool { try await refusal(.hangUp(call: named("none"))) != nil }

  // MARK: What it has received

  var pushes: [RoomPush] { inbox.withLock { $0.pushes } }
  var answers: [Int: RoomAnswer] { inbox.withLock { $0.answers } }
  /// What no hub may send.
  var problems: [String] { inbox.withLock { $0.problems } }
  var subprotocol: String? { inbox.withLock { $0.subprotocol } }

  /// The first push of which `find` makes something.
  func push<Value: Sendable>(
    _ what: String, _ find: @Sendable (RoomPush) -> Value?
  ) async throws -> Value {
    try await value("the push \(what)") { inbox in
      for push in inbox.pushes { if let value = find(push) { return value } }
      return nil
    }
  }

  func opened() async throws {
    let end = try await value("the opening") { inbox -> WebSocketEnd?? in
      if let end = inbox.end { return .some(end) }
      return inbox.isOpen ? .some(nil) : nil
    }
    if let end { throw end }
  }

  func closed() async throws -> WebSocketEnd { try await value("the end") { $0.end } }

  /// How another has left.
  func left(_ user: String) async throws -> RoomLeaveReason {
    try await push("that \(user) has left") { push in
      guard case .peer(let change) = push, case .left(let reason) = change.kind,
        change.member.user.rawValue == user
      else { return nil }
      return reason
    }
  }

  private func value<Value: Sendable>(
    _ what: String, _ find: @Sendable (Inbox) -> Value?
  ) async throws -> Value {
    try await serverWaits(for: what) { [inbox] in inbox.withLock { find($0) } }
  }
}
