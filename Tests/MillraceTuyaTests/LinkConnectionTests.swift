import MillraceCore
import MillraceCrypto
import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceService
import TestSystem
import Testing

@testable import MillraceTuya

private let audio = TuyaChannelName(.audio)

/// Parts of 8 ms.
@Sendable private func slowPictures(_ target: inout TuyaTarget) {
  target.pictureParts = 1_000
  target.pictureRate = 1_000
}

@Suite("Tuya: a connection", .timeLimit(.minutes(10))) struct LinkConnectionTests {
  @Test("a whole turn goes to the cloud and back", arguments: [TuyaDialect.v21, .v1])
  func turn(_ dialect: TuyaDialect) async throws {
    let cloud = try await LinkCloud.listen(dialect) { packet, peer in
      guard packet.type == .event, case .event(.end, _) = packet.content else { return false }
      peer.send(.event(.start, "s", "e"))
      peer.send(.sound(2, .start, [1, 2, 3], dialect))
      peer.send(.sound(2, .streaming, [4, 5]))
      peer.send(.sound(2, .end, []))
      peer.send(.event(.end, "s", "e"))
      return true
    }
    let session = LinkSession(over: TuyaConnection(cloud.target(), on: .shared))
    try await session.begin("s")
    session.call(
      .startEvent("e", userData: ["chatAttributes": ["asr.enableVad": true]]), .beginVoice(event: "e"))
    session.speak([[1, 1], [2, 2], [3, 3]])
    session.call(
      .endVoice(isCut: false), .endPayloads(event: "e", audio, userData: nil), .endEvent("e", userData: nil))
    try await session.expect { session.words.contains("event 2 e") }
    #expect(
      session.words == [
        "opened", "connected connection-1", "event 0 e", "audio began 109", "audio 3", "audio 2",
        "audio ended",
        "event 2 e",
      ])
    #expect(session.audio == [1, 2, 3, 4, 5])
    session.close()
    try await eventually { cloud.peers[0].isEnded }
    let words = cloud.received.map(\.word)
    #expect(
      words == (dialect == .v1 ? ["hello", "login"] : ["hello"]) + [
        "new s", "event 0 e", "audio 1 start 2", "audio 1 streaming 2", "audio 1 streaming 2",
        "audio 1 end 0",
        "event 1 e", "event 2 e", "end s 200", "close 601",
      ])
  }

  @Test("a new session has the terms of its token, its channels and its user data")
  func creation() async throws {
    let cloud = try await LinkCloud.listen()
    let terms = TuyaTerms(bizCode: 7, bizTag: 8, sends: [.text, .audio], receives: [.text])
    let session = LinkSession(over: TuyaConnection(cloud.target(), on: .shared), terms: terms)
    try await session.expect { session.words.count == 2 }
    guard case .message(.connected(_, terms)) = session.events[1] else {
      Issue.record("the terms are others")
      return
    }
    let data: JSONValue = ["sessionAttributes": ["a": 1]]
    session.call(.createSession(TuyaCreation(id: "s", isShared: false, userData: data)))
    try await eventually { cloud.received.count == 2 }
    let packet = cloud.received[1]
    #expect(packet.content == .sessionIDs(send: [1, 3], receive: [2]))
    #expect(packet.attributes.integer(.bizCode) == 7)
    #expect(packet.attributes.integer(.bizTag) == 8)
    #expect(packet.attributes.text(.agentToken) == "agent-token")
    #expect(try TuyaUserData.read(packet.attributes.bytes(.userData) ?? [], .v21) == data)
    session.close()
  }

  @Test("several sessions on other loops share a connection, and each has its own packets")
  func several() async throws {
    // The channel of the answer, by that of the text.
    let channels = Locked<[UInt16: UInt16]>([:])
    let cloud = try await LinkCloud.listen { packet, peer in
      if case .sessionIDs(let send, let receive) = packet.content {
        channels.withLock { $0[send[1]] = receive[0] }
      }
      guard packet.type == .text, case .media(let head, let bytes) = packet.content else { return false }
      peer.send(.sound(channels.withLock { $0[head.dataID] } ?? 0, .onlyOne, bytes))
      return true
    }
    let connection = TuyaConnection(cloud.target(), on: .shared)
    var sessions: [LinkSession] = []
    // Those after the first have other loops.
    let leases = try (0..<NetLoop.sessionsPerLoop + TuyaTarget.mostSessions).map { _ in try NetLoop.assign() }
    defer { withExtendedLifetime(leases) {} }
    #expect(leases.suffix(TuyaTarget.mostSessions).allSatisfy { $0.loop !== NetLoop.shared })
    for index in 0..<TuyaTarget.mostSessions {
      let session = LinkSession(over: connection, on: leases[NetLoop.sessionsPerLoop + index].loop)
      try await session.begin("s\(index)")
      sessions.append(session)
    }
    for (index, session) in sessions.enumerated() {
      session.call(.text("answer \(index)", TuyaChannelName(.text), userData: nil))
    }
    for (index, session) in sessions.enumerated() {
      try await session.expect { session.words.contains("audio ended") }
      #expect(session.audio == Array("answer \(index)".utf8))
    }
    #expect(cloud.peers.count == 1)
    let late = LinkSession(over: connection)
    try await late.expect { late.words == ["closed 39012 607 refuse"] }
    // One fewer: there is room for another.
    sessions[0].close()
    try await eventually { cloud.received.contains { $0.word == "end s0 200" } }
    let next = LinkSession(over: connection)
    try await next.expect { next.words.contains("connected connection-1") }
    for session in sessions.dropFirst() + [next] { session.close() }
    try await eventually { cloud.peers[0].isEnded }
    #expect(cloud.received.last?.word == "close 601")
    #expect(cloud.received.count { $0.type == .sessionClose } == TuyaTarget.mostSessions)
  }

  @Test("the sound of one microphone goes over a shared channel once, and continues when its session ends")
  func sharedSound() async throws {
    let cloud = try await LinkCloud.listen()
    let connection = TuyaConnection(cloud.target(), on: .shared)
    let first = LinkSession(over: connection)
    try await first.begin("s1", isShared: true)
    let second = LinkSession(over: connection)
    try await second.begin("s2", isShared: true)
    for session in [first, second] { session.call(.startEvent("e", userData: nil), .beginVoice(event: "e")) }
    for number in 0..<5 as Range<UInt8> {
      first.speak([[number, 1]])
      second.speak([[number, 1]])
    }
    first.close()
    second.speak([[4, 1], [5, 1], [6, 1]])
    second.call(.endVoice(isCut: false))
    try await eventually { cloud.received.filter { $0.word == "audio 103 end 0" }.count == 2 }
    let sound = cloud.received.filter { $0.type == .audio }.map(\.word)
    #expect(
      sound == [
        "audio 103 start 2", "audio 103 streaming 2", "audio 103 streaming 2", "audio 103 streaming 2",
        "audio 103 streaming 2", "audio 103 end 0", "audio 103 start 2", "audio 103 streaming 2",
        "audio 103 end 0",
      ])
    second.close()
  }

  @Test("a picture goes before the end of its event, and sound before the picture")
  func picture() async throws {
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(over: TuyaConnection(cloud.target(slowPictures), on: .shared))
    try await session.begin("s")
    session.call(.startEvent("e", userData: nil), .beginVoice(event: "e"))
    session.use { wire in
      let picture = [0xFF, 0xD8, 0xFF] + [UInt8](repeating: 0, count: 2_497)
      _ = wire.call(.image(picture, format: .jpeg, TuyaChannelName(.image), userData: nil, call: 9))
      _ = wire.send(voice: [1, 2])
      _ = wire.call(.endEvent("e", userData: nil))
    }
    try await session.expect { session.words.contains("sent 9") }
    try await eventually { cloud.received.contains { $0.word == "event 2 e" } }
    let words = cloud.received.map(\.word)
    let pictures = words.filter { $0.hasPrefix("image") }
    #expect(pictures == ["image 5 start 1000", "image 5 streaming 1000", "image 5 end 500"])
    let end = try #require(words.firstIndex(of: "image 5 end 500"))
    #expect(try #require(words.firstIndex(of: "audio 1 start 2")) < end)
    #expect(try #require(words.firstIndex(of: "event 2 e")) > end)
    session.close()
  }

  @Test("a file is sent in parts, with its progress; one that is missing fails alone")
  func files() async throws {
    let folder = TemporaryFolder()
    put([UInt8](repeating: 7, count: 200_000), at: folder.file("a.json"))
    let cloud = try await LinkCloud.listen()
    let terms = TuyaTerms(sends: [.audio, .file])
    let session = LinkSession(over: TuyaConnection(cloud.target(), on: .shared), terms: terms)
    try await session.begin("s")
    let channel = TuyaChannelName(.file)
    session.call(
      .file(path: folder.file("missing"), name: nil, channel, userData: nil, call: 1),
      .file(path: folder.file("a.json"), name: nil, channel, userData: nil, call: 2))
    try await session.expect { session.words.contains("sent 2") }
    #expect(session.words.contains("failed 1 39009"))
    #expect(session.words.filter { $0.hasPrefix("upload 2") }.last == "upload 2 200000")
    func files() -> [TuyaPacket] { cloud.received.filter { $0.type == .file } }
    func bytes() -> Int {
      files().reduce(0) { count, packet in
        guard case .media(_, let bytes) = packet.content else { return count }
        return count + bytes.count
      }
    }
    try await eventually { bytes() >= 200_000 }
    #expect(bytes() == 200_000)
    #expect(try TuyaFileParameters(files()[0].attributes)?.name == "a.json")
    session.close()
  }

  @Test("a call that cannot be carried out fails with the vendor's code")
  func refusals() async throws {
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(over: TuyaConnection(cloud.target(), on: .shared))
    try await session.expect { session.words.count == 2 }
    session.call(.text("a", TuyaChannelName(.text), userData: nil))
    try await session.begin("s")
    session.call(
      .text("", TuyaChannelName(.text), userData: nil), .text("a", TuyaChannelName(.video), userData: nil),
      .endPayloads(event: "e", TuyaChannelName(.audio, 3), userData: nil),
      .image([], format: .jpeg, TuyaChannelName(.image), userData: nil, call: 4))
    try await session.expect { session.words.count { $0.hasPrefix("failed") } == 5 }
    #expect(
      session.words.filter { $0.hasPrefix("failed") } == [
        "failed 0 39005", "failed 0 39008", "failed 0 39007", "failed 0 39007", "failed 4 39008",
      ])
    session.close()
  }

  @Test(
    "a refused login ends every session with the cloud's code",
    arguments: [(400, "refuse"), (401, "refuse"), (404, "refuse"), (500, "reconnect"), (602, "ended")])
  func refusedLogin(_ status: UInt16, _ reaction: String) async throws {
    let cloud = try await LinkCloud.listen { packet, peer in
      peer.accept(TuyaStatus(rawValue: status))
      return true
    }
    let connection = TuyaConnection(cloud.target(), on: .shared)
    let sessions = (0..<3).map { _ in LinkSession(over: connection) }
    for session in sessions {
      try await session.expect { !session.words.isEmpty }
      #expect(session.words == ["closed 39012 \(status) \(reaction)"])
    }
    for session in sessions { session.close() }
  }

  @Test("a lost connection ends every session, and the next attempt opens another, with fresh sequences")
  func again() async throws {
    let cloud = try await LinkCloud.listen()
    let connection = TuyaConnection(cloud.target(), on: .shared)
    let first = LinkSession(over: connection)
    try await first.begin("s1")
    let second = LinkSession(over: connection)
    try await second.begin("s2")
    try await eventually { cloud.received.count == 3 }
    cloud.peers[0].close()
    for session in [first, second] {
      try await session.expect { session.words.last == "closed 39001 - reconnect" }
    }
    let third = LinkSession(over: connection)
    try await third.begin("s1")
    try await eventually { cloud.peers.count == 2 && cloud.peers[1].received.count == 2 }
    #expect(third.words == ["opened", "connected connection-2"])
    third.close()
  }

  @Test("bytes that are no frame end the connection with the vendor's code, and other connections continue")
  func corrupt() async throws {
    let cloud = try await LinkCloud.listen()
    let (bad, good) = (
      TuyaConnection(cloud.target(), on: .shared), TuyaConnection(cloud.target(), on: .shared)
    )
    let first = LinkSession(over: bad)
    try await first.begin("s1")
    let second = LinkSession(over: good)
    try await second.begin("s2")
    cloud.peers[0].send(raw: [0x99, 0, 1, 0, 0])
    try await first.expect { first.words.last == "closed 39001 - reconnect" }
    cloud.peers[1].send(.sound(2, .onlyOne, [1]))
    try await second.expect { second.words.last == "audio ended" }
    second.close()
  }

  @Test("the end of one session by the cloud leaves the others alone")
  func sessionClosed() async throws {
    let cloud = try await LinkCloud.listen()
    let connection = TuyaConnection(cloud.target(), on: .shared)
    let sessions = (0..<2).map { _ in LinkSession(over: connection) }
    try await sessions[0].begin("s0")
    try await sessions[1].begin("s1")
    try await eventually { cloud.received.count == 3 }
    var attributes = TuyaAttributes()
    attributes.add(.sessionID, "s0")
    attributes.add(.sessionCloseCode, 607)
    cloud.peers[0].send(TuyaPacket(.sessionClose, attributes))
    cloud.peers[0].send(.sound(2, .onlyOne, [1]))
    cloud.peers[0].send(.sound(6, .onlyOne, [2]))
    try await sessions[1].expect { sessions[1].words.last == "audio ended" }
    #expect(sessions[0].words.last == "sessionClosed 607")
    for session in sessions { session.close() }
    try await eventually { cloud.peers[0].isEnded }
    // The cloud has closed the first one already.
    #expect(cloud.received.filter { $0.type == .sessionClose }.map(\.word) == ["end s1 200"])
  }

  @Test("a session that pauses holds nobody up until its inbox is full, and loses nothing")
  func pause() async throws {
    let cloud = try await LinkCloud.listen()
    let connection = TuyaConnection(cloud.target { $0.inbox = 20_000 }, on: .shared)
    let (slow, fast) = (LinkSession(over: connection), LinkSession(over: connection))
    try await slow.begin("s0")
    try await fast.begin("s1")
    try await eventually { cloud.received.count == 3 }
    slow.use { $0.pause() }
    let before = slow.words.count
    cloud.peers[0].send(.sound(2, .start, [UInt8](repeating: 1, count: 4_000)))
    cloud.peers[0].send(.sound(6, .onlyOne, [2]))
    try await fast.expect { fast.words.last == "audio ended" }
    #expect(slow.words.count == before)
    for _ in 0..<200 { cloud.peers[0].send(.sound(2, .streaming, [UInt8](repeating: 1, count: 4_000))) }
    cloud.peers[0].send(.sound(6, .onlyOne, [3]))
    slow.use { $0.resume() }
    try await slow.expect { slow.audio.count == 201 * 4_000 }
    try await fast.expect { fast.audio == [2, 3] }
    for session in [slow, fast] { session.close() }
  }

  @Test("nothing is reported after a wire was closed, also from within an event")
  func closedWithin() async throws {
    let cloud = try await LinkCloud.listen()
    let connection = TuyaConnection(cloud.target(), on: .shared)
    let session = LinkSession(over: connection) { event, wire in
      if case .message(.connected) = event { wire.close() }
    }
    try await eventually { cloud.peers.first?.isEnded ?? false }
    #expect(session.words == ["opened", "connected connection-1"])
    #expect(cloud.received.map(\.word) == ["hello", "close 601"])
  }

  @Test("a connection of one name is shared, and closed when the last node has let go")
  func named() async throws {
    let cloud = try await LinkCloud.listen()
    let name = "link-\(UInt64.random(in: 0...(.max)))"
    let target = cloud.target()
    func lease() throws -> NamedConnections<TuyaConnection, TuyaTarget>.Lease {
      try TuyaConnection.shared.lease(name, target) { (target) throws(NodeProblem) in
        do throws(NetError) { return try TuyaConnection(target) } catch { throw NodeProblem(error.text) }
      }
    }
    var leases = [try lease(), try lease()]
    #expect(leases[0].connection === leases[1].connection)
    #expect(throws: NodeProblem.self) {
      try TuyaConnection.shared.lease(name, cloud.target { $0.ping = 7 }) { (_) throws(NodeProblem) in
        throw NodeProblem("made again")
      }
    }
    let session = LinkSession(over: leases[0].connection)
    try await session.begin("s")
    leases = []
    try await session.expect { session.words.last?.hasPrefix("closed 39012 601") ?? false }
    try await eventually { cloud.peers[0].isEnded }
  }

  @Test("a session for another client is refused by a connection that is in use")
  func otherClient() async throws {
    let cloud = try await LinkCloud.listen()
    var target = cloud.target()
    let access = target.access
    target.access = TuyaAccess()
    let connection = TuyaConnection(target, on: .shared)
    func session(_ client: String) -> LinkSession {
      var access = access
      access.client = client
      return LinkSession(
        over: connection, tokens: TuyaTokens(given: TuyaGrant(access: access, token: TuyaSecret("t"))))
    }
    let first = session("a")
    try await first.begin("s")
    let second = session("b")
    try await second.expect { second.words == ["closed 39002 - refuse"] }
    let third = session("a")
    try await third.expect { third.words.contains("connected connection-1") }
    for session in [first, third] { session.close() }
  }

  @Test("without an address, a client or a key nothing is opened", arguments: 0..<3)
  func missing(_ index: Int) async throws {
    let cloud = try await LinkCloud.listen()
    let connection = TuyaConnection(
      cloud.target {
        switch index {
        case 0: $0.access.address = nil
        case 1: $0.access.client = nil
        default: $0.access.localKey = nil
        }
      }, on: .shared)
    let session = LinkSession(over: connection)
    try await session.expect { session.words == ["closed 39002 - refuse"] }
    #expect(cloud.peers.isEmpty)
  }

  @Test(
    "the token never goes over the network in plain text, also where the token server says so",
    arguments: [
      #"{"hosts": ["192.0.2.1"], "tcpport": 1883, "agentToken": "t"}"#,
      #"{"host": "192.0.2.1", "port": 1883, "scheme": "tcp", "agentToken": "t"}"#,
    ])
  func plainText(_ answer: String) async throws {
    var target = TuyaTarget(TuyaAccess())
    target.proxy = .direct
    target.open = 600_000
    target.access.client = "client"
    target.access.localKey = SecretKey(utf8: LinkCloud.key)
    let grant = try TuyaGrant(parsing: answer, given: TuyaGrant(token: TuyaSecret("")))
    let session = LinkSession(
      over: TuyaConnection(target, on: .shared), tokens: TuyaTokens(given: grant))
    try await session.expect { session.words == ["closed 39002 - refuse"] }
    guard case .closed(let error)? = session.events.last else { return }
    #expect(
      error.text
        == "the token would go to 192.0.2.1:1883 in plain text; the token server must give an address with TLS (\"domains\", \"ecc_tls_port\"), or, for an older installation, set \"dialect\" to v1"
    )
  }

  @Test(
    "what is sent is protected by TLS, by v1, or because it stays on this machine",
    arguments: [
      ("tls://192.0.2.1:1", TuyaDialect.v21, true), ("tcp://127.0.0.1:1", .v21, true),
      ("tcp://192.0.2.1:1", .v1, true), ("tcp://192.0.2.1:1", .v21, false),
      ("tcp://192.0.2.1:1", .v22, false),
    ])
  func protected(_ address: String, _ dialect: TuyaDialect, _ isProtected: Bool) throws {
    #expect(try WebAddress(address).isProtected(dialect) == isProtected)
  }

  @Test("a connection that cannot be opened is 39004, with the reason of the byte stream")
  func unopened() async throws {
    var target = try await LinkCloud.listen().target()
    // Nobody listens there.
    target.access.address = try WebAddress("tcp://127.0.0.1:1")
    let session = LinkSession(over: TuyaConnection(target, on: .shared))
    try await session.expect { session.words == ["closed 39004 - reconnect"] }
    guard case .closed(let error)? = session.events.last else { return }
    #expect(error.category == .network && error.text.contains("refused"), "\(error.text)")
  }

  @Test("a connection that breaks is 39010, with the reason of the byte stream")
  func broken() async throws {
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(over: TuyaConnection(cloud.target(), on: .shared))
    try await session.begin("s")
    try await eventually { cloud.received.count == 2 }
    cloud.peers[0].pause()
    let (text, isFull) = (String(repeating: "x", count: 30_000), Locked(false))
    // More than the systems' buffers take: then some of it was not read by the cloud.
    for _ in 0..<4_000 where !isFull.withLock({ $0 }) {
      await withCheckedContinuation { continuation in
        session.use { wire in
          let isTaken = wire.call(.text(text, TuyaChannelName(.text), userData: nil))
          if !isTaken { isFull.withLock { $0 = true } }
          NetLoop.shared.run { continuation.resume() }
        }
      }
    }
    #expect(isFull.withLock { $0 })
    cloud.peers[0].abort()
    try await session.expect { session.words.last == "closed 39010 - reconnect" }
    guard case .closed(let error)? = session.events.last else { return }
    #expect(error.category == .network && error.name == "lost", "\(error)")
  }

  @Test(
    "an event whose user data are not valid, and sound whose parameters are not, end the connection",
    arguments: [TuyaDialect.v21, .v1], [true, false])
  func invalidContent(_ dialect: TuyaDialect, _ isEvent: Bool) async throws {
    let cloud = try await LinkCloud.listen(dialect)
    let session = LinkSession(over: TuyaConnection(cloud.target(), on: .shared))
    try await session.begin("s")
    try await eventually { cloud.received.last?.type == .sessionNew }
    var packet = isEvent ? TuyaPacket.event(.start, "s", "e") : .sound(2, .start, [1], dialect)
    if isEvent {
      packet.attributes.add(.userData, bytes: Array("[]".utf8))
    } else {
      packet.attributes = TuyaAttributes()
      packet.attributes.add(.audioParameters, "101 1 16")
    }
    cloud.peers[0].send(packet)
    try await session.expect { session.words.last == "closed 39001 - reconnect" }
    #expect(session.words == ["opened", "connected connection-1", "closed 39001 - reconnect"])
  }

  @Test("an exiting program waits until a session that was closed has told the cloud")
  func lastRequests() async throws {
    let cloud = try await LinkCloud.listen()
    let session = LinkSession(over: TuyaConnection(cloud.target(), on: .shared))
    try await session.begin("s")
    session.use { wire in
      wire.close()
      #expect(LastRequests.pending > 0)
    }
    try await eventually { cloud.received.last?.word == "close 601" }
  }
}
