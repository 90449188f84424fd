import MillraceCore
import MillraceNet
import MillraceRoomWire
import TestNet
import Testing

@testable import MillraceRoom

@Suite("Room server: clients that misbehave", .timeLimit(.minutes(30))) struct ServerHostileTests {
  @Test(
    "a client that does not offer the sub-protocol is refused with 400",
    arguments: [[], ["millrace-room.2"], ["chat", "Millrace-Room.1"]])
  func otherProtocol(protocols: [String]) async throws {
    let rig = try await ServerRig.begin()
    let client = try ServerMember(rig.server.port) { $0.protocols = protocols }
    let end = try await client.closed()
    #expect(end.problem?.kind == .refused && end.problem?.status == 400)
    let (ann, _) = try await rig.member("ann")
    #expect(try await ann.isAlive())
    #expect(rig.server.counts.refused == 1 && rig.server.counts.connections == 1)
    await rig.server.stop()
  }

  @Test("the sub-protocol may be one of several")
  func severalProtocols() async throws {
    let rig = try await ServerRig.begin()
    let client = try ServerMember(rig.server.port) { $0.protocols = ["chat", RoomWire.subprotocol] }
    try await client.opened()
    #expect(client.subprotocol == RoomWire.subprotocol)
    await rig.server.stop()
  }

  @Test("a binary message ends its connection with 1003, and its member has been dropped")
  func binary() async throws {
    let rig = try await ServerRig.begin()
    let (ann, _) = try await rig.member("ann")
    let (bob, _) = try await rig.member("bob")
    _ = bob.socket.send([1, 2, 3], isText: false)
    #expect(try await bob.closed().code == 1003)
    #expect(try await ann.left("bob") == .dropped)
    #expect(try await ann.isAlive())
    await rig.server.stop()
  }

  @Test("a message of 131,072 bytes is read, one of more ends its connection with 1009")
  func tooLong() async throws {
    let rig = try await ServerRig.begin()
    let (ann, _) = try await rig.member("ann")
    for count in [RoomLimits.messageBytes + 1, 1_000_000] {
      let client = try await rig.connect()
      let request = RoomRequest(1, .hangUp(call: named("none"))).text
      let longest = request + String(repeating: " ", count: RoomLimits.messageBytes - request.utf8.count)
      client.send(longest)
      #expect(try await client.answer(1).id == 1)
      client.send(String(repeating: "x", count: count))
      #expect(try await client.closed().code == 1009)
    }
    #expect(try await ann.isAlive())
    await rig.server.stop()
  }

  @Test("ids that do not rise and messages that are cut get the push error, and 16 of them the code 1008")
  func noRequests() async throws {
    let rig = try await ServerRig.begin()
    let (ann, _) = try await rig.member("ann")
    let client = try await rig.connect()
    client.send(#"{"id":5,"op":"login","payload":{"version":1,"user":"bob"}}"#)
    client.send(#"{"id":3,"op":"logout"}"#)
    client.send(#"{"id":6,"op":"lo"#)
    client.send(#"{"id":7,"op":"leave"}"#)
    guard case .failure(let refusal) = try await client.answer(7).result else {
      Issue.record("it has left no room")
      return
    }
    #expect(refusal.name == .notInRoom, "bob is still logged in")
    let errors = client.pushes.compactMap { push -> RoomErrorName? in
      if case .error(let error) = push { error.name } else { nil }
    }
    #expect(errors == [.repeatedID, .badMessage])
    #expect(client.answers.keys.sorted() == [5, 7])
    for _ in 0..<14 { client.send("[]") }
    #expect(try await client.closed().code == 1008)
    #expect(try await ann.isAlive())
    await rig.server.stop()
  }

  @Test("1,000 joins in a row are refused with a time to wait, and the room is alive")
  func joins() async throws {
    let rig = try await ServerRig.begin { $0.hub.requestsPerSecond = 100_000 }
    let (ann, _) = try await rig.member("ann")
    let eve = try await rig.connect()
    try await eve.ask(.login(RoomLogin(named("eve"))))
    var joins: [Int] = []
    for _ in 0..<1_000 {
      joins.append(eve.request(.join(RoomJoin(named("lobby")))))
      eve.request(.leave)
    }
    _ = try await eve.answer(try #require(joins.last))
    let refusals = joins.compactMap { id -> RoomError? in
      if case .failure(let error)? = eve.answers[id]?.result { error } else { nil }
    }
    #expect(!refusals.isEmpty && refusals.count < joins.count)
    #expect(refusals.allSatisfy { $0.name == .tooManyRequests && ($0.afterMilliseconds ?? 0) > 0 })
    #expect(try await ann.isAlive())
    #expect(ann.problems == [] && eve.problems == [])
    await rig.server.stop()
  }

  @Test("a flood is read slowly, and answered to its end; others are answered meanwhile")
  func flood() async throws {
    let rig = try await ServerRig.begin()
    let (ann, _) = try await rig.member("ann")
    let (eve, _) = try await rig.member("eve")
    let start = ContinuousClock.now
    let requests = (0..<1_200).map { _ in eve.request(.hangUp(call: named("none"))) }
    #expect(try await ann.isAlive())
    _ = try await eve.answer(try #require(requests.last))
    // 400 at once, and 400 a second.
    #expect(ContinuousClock.now - start >= .milliseconds(1_900))
    #expect(requests.allSatisfy { eve.answers[$0] != nil } && eve.problems == [])
    await rig.server.stop()
  }

  /// Keeps which connections have ended.
  private final class Ends: RoomServerWatch {
    private let ended = Locked<[RoomConnectionID]>([])
    var count: Int { ended.withLock { $0.count } }

    func refusal() -> (status: Int, text: String)? { nil }
    func opened(_ connection: RoomConnectionID, _ socket: WebSocket) {}
    func receives(_ bytes: [UInt8], from connection: RoomConnectionID) -> Bool { true }
    func sends(_ bytes: [UInt8], to connection: RoomConnectionID) -> Bool { true }
    func joined(on connection: RoomConnectionID) -> Bool { false }
    func closed(_ connection: RoomConnectionID) { ended.withLock { $0.append(connection) } }
  }

  @Test("a connection too many that does not answer the close frame is cut off at once")
  func tooManyUnanswered() async throws {
    let ends = Ends()
    let rig = try await ServerRig.begin {
      $0.hub.connectionsPerAddress = 1
      // Longer than the test waits.
      $0.socket.close = 3_600_000
      $0.watch = ends
    }
    let (ann, _) = try await rig.member("ann")
    let raw = try RawConnection(port: rig.server.port)
    raw.send(
      """
      GET /room HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
      Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
      Sec-WebSocket-Protocol: millrace-room.1\r\n\r\n
      """)
    #expect(raw.readHead().hasPrefix("HTTP/1.1 101 "))
    let frame = raw.readFrame()
    #expect(frame?.opcode == 8 && frame?.payload.prefix(2) == [0x03, 0xF5])
    try await serverWaits(until: "the end of the connection") { ends.count == 1 }
    raw.close()
    #expect(try await ann.isAlive())
    await rig.server.stop()
  }

  @Test("connections of an address that are too many are closed with 1013")
  func tooMany() async throws {
    let rig = try await ServerRig.begin { $0.hub.connectionsPerAddress = 2 }
    let (ann, _) = try await rig.member("ann")
    let (bob, _) = try await rig.member("bob")
    let third = try ServerMember(rig.server.port)
    #expect(try await third.closed().code == 1013)
    bob.socket.close()
    _ = try await bob.closed()
    #expect(try await ann.left("bob") == .quit)
    #expect(try await rig.connect().isAlive())
    await rig.server.stop()
  }

  @Test("a page of another origin is refused, one of this hub is not")
  func origins() async throws {
    let rig = try await ServerRig.begin()
    let foreign = try ServerMember(rig.server.port) {
      $0.protocols = [RoomWire.subprotocol]
      $0.headers = [("Origin", "https://evil.example")]
    }
    #expect(try await foreign.closed().problem?.status == 403)
    let own = try ServerMember(rig.server.port) { [port = rig.server.port] in
      $0.protocols = [RoomWire.subprotocol]
      $0.headers = [("Origin", "http://127.0.0.1:\(port)")]
    }
    try await own.opened()
    // Another program's page on the same machine could end everybody's room.
    for origin in ["http://127.0.0.1:1", "http://127.0.0.1", "http://localhost:3000", "https://127.0.0.1"] {
      let other = try ServerMember(rig.server.port) {
        $0.protocols = [RoomWire.subprotocol]
        $0.headers = [("Origin", origin)]
      }
      #expect(try await other.closed().problem?.status == 403, "\(origin)")
    }
    try await serverWaits(until: "the report") {
      rig.events.contains { event in
        if case .refused(let refusals) = event { refusals.latest.kind == .origin } else { false }
      }
    }
    await rig.server.stop()
  }
}
