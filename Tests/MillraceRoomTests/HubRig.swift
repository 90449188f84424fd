import MillraceCore
import MillraceCrypto
import MillraceJSON
import MillraceRoomWire
import Synchronization
import Testing

@testable import MillraceRoom

/// A name that is known to be one.
func named(_ text: String) -> RoomName { RoomName(text)! }

/// A hub with a clock of its own, and members that keep what they are sent.
///
/// Ids are `peer1`, `peer2` …, `call1` …, `room1` …. Each request must get one answer and no more.
final class HubRig {
  static let key = SecretKey(utf8: "room-key")
  /// Unix time at the beginning, in seconds.
  static let start = 1_700_000_000

  private(set) var hub: RoomHub
  private var now: Nanoseconds = 5_000_000_000
  private(set) var unix = Int64(HubRig.start) * 1_000
  private var requests: [UInt64: Int] = [:]
  private var answers: [UInt64: [Int: RoomAnswer]] = [:]
  private var pushes: [UInt64: [RoomPush]] = [:]
  private var names: [UInt64: [String]] = [:]
  private var media: [RoomAction] = []
  private(set) var closed: [UInt64: UInt16] = [:]

  init(_ settings: RoomHubSettings = RoomHubSettings()) {
    let counter = Counter()
    hub = RoomHub(settings) { counter.next($0) }
  }

  private final class Counter: Sendable {
    private let ids = Mutex<[RoomIDKind: Int]>([:])

    func next(_ kind: RoomIDKind) -> RoomName {
      ids.withLock { ids in
        ids[kind, default: 0] += 1
        return named("\(kind)\(ids[kind, default: 0])")
      }
    }
  }

  static var keyed: RoomHubSettings { RoomHubSettings(key: key) }

  var time: RoomInstant { RoomInstant(now, unixMilliseconds: unix) }

  // MARK: What happens

  func connect(_ connections: UInt64..., address: String = "192.0.2.1") {
    for connection in connections {
      requests[connection] = nil
      answers[connection] = nil
      hub.connect(RoomConnectionID(connection), address: address, at: time)
      drain()
    }
  }

  func disconnect(_ connection: UInt64, _ reason: RoomLeaveReason = .dropped) {
    hub.disconnect(RoomConnectionID(connection), reason: reason, at: time)
    drain()
  }

  func send(_ connection: UInt64, _ bytes: [UInt8]) {
    hub.take(bytes, from: RoomConnectionID(connection), at: time)
    drain()
  }

  func send(_ connection: UInt64, _ text: String) { send(connection, Array(text.utf8)) }

  /// Lets time pass; the hub is only told at its deadlines, and at the end.
  func wait(milliseconds: Int) {
    let end = now + Nanoseconds(milliseconds) * 1_000_000
    var runs = 0
    while let deadline = hub.deadline, deadline < end, runs < 10_000 {
      run(at: max(now, deadline))
      runs += 1
    }
    #expect(runs < 10_000, "the hub has a deadline that it does not keep")
    run(at: end)
  }

  private func run(at time: Nanoseconds) {
    unix += time / 1_000_000 - now / 1_000_000
    now = time
    hub.run(at: self.time)
    drain()
  }

  /// Sets the wall clock; the clock that only rises goes on.
  func setClock(seconds: Int) { unix = Int64(seconds) * 1_000 }

  func change(_ body: (inout RoomHub) -> Void) {
    body(&hub)
    drain()
  }

  private func drain() {
    for action in hub.takeActions() {
      switch action {
      case .send(let connection, let bytes): receive(connection.number, bytes)
      case .close(let connection, let code, _): closed[connection.number] = code
      default: media.append(action)
      }
    }
  }

  private func receive(_ connection: UInt64, _ bytes: [UInt8]) {
    #expect(bytes.count <= RoomLimits.messageBytes)
    do throws(RoomReadProblem) {
      switch try RoomHubMessage(parsing: bytes) {
      case .push(let push):
        pushes[connection, default: []].append(push)
        names[connection, default: []].append(push.name)
      case .answer(let answer):
        names[connection, default: []].append("answer")
        #expect(answers[connection]?[answer.id] == nil, "a request was answered twice")
        answers[connection, default: [:]][answer.id] = answer
      }
    } catch { Issue.record("the hub has sent what is no message: \(error)") }
  }

  // MARK: What members do and see

  /// Makes a request, which may be answered later: see `answer`.
  @discardableResult
  func request(_ connection: UInt64, _ operation: RoomOperation) -> Int {
    requests[connection, default: 0] += 1
    let id = requests[connection, default: 0]
    send(connection, RoomRequest(id, operation).bytes)
    return id
  }

  func answer(_ connection: UInt64, _ request: Int) -> RoomAnswer? { answers[connection]?[request] }

  @discardableResult
  func ask(_ connection: UInt64, _ operation: RoomOperation) -> RoomAnswer? {
    answer(connection, request(connection, operation))
  }

  /// Whether a request was done.
  func isDone(_ connection: UInt64, _ operation: RoomOperation) -> Bool {
    if case .success? = ask(connection, operation)?.result { true } else { false }
  }

  /// Why a request was refused; nil: it was not.
  func refusal(_ connection: UInt64, _ operation: RoomOperation) -> RoomErrorName? {
    if case .failure(let error)? = ask(connection, operation)?.result { error.name } else { nil }
  }

  @discardableResult
  func logIn(_ connection: UInt64, _ user: String, token: String? = nil) -> Bool {
    isDone(connection, .login(RoomLogin(named(user), name: user.uppercased(), token: token)))
  }

  @discardableResult
  func join(_ connection: UInt64, _ room: String, _ role: RoomRole? = nil) -> RoomJoined? {
    let answer = ask(connection, .join(RoomJoin(named(room), role: role)))
    return try? answer?.payload(RoomJoined.self)
  }

  /// Connects a member, and takes it into a room; its id.
  @discardableResult
  func member(_ connection: UInt64, _ user: String, in room: String = "lobby", _ role: RoomRole? = nil)
    -> RoomName
  {
    connect(connection)
    logIn(connection, user)
    guard let joined = join(connection, room, role) else {
      Issue.record("\(user) has not joined")
      return named("nobody")
    }
    return joined.peer
  }

  /// What a member was told since the last call.
  func seen(_ connection: UInt64) -> [RoomPush] { pushes.removeValue(forKey: connection) ?? [] }

  /// All that a member was sent: the events of pushes, and `answer`.
  func order(_ connection: UInt64) -> [String] { names[connection] ?? [] }

  /// What the layer above was told since the last call.
  func actions() -> [RoomAction] {
    defer { media.removeAll() }
    return media
  }

  /// Forgets what was told so far.
  func clear() {
    pushes.removeAll()
    media.removeAll()
  }

  static func token(
    _ user: String, room: String? = nil, role: RoomRole? = nil, rights: Set<RoomRight>? = nil,
    lasts seconds: Int = 3_600, once: String? = nil
  ) -> String {
    RoomToken(
      named(user), room: room.map(named), role: role, rights: rights, expiry: start + seconds, once: once
    ).signed(with: key)
  }
}
