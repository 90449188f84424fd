import MillraceConformance
import MillraceDoubles
import MillraceJSON
import MillraceNet
import Testing

@testable import MillraceTuyaDouble

@Suite("connections, sessions and tokens of the double", .timeLimit(.minutes(30))) struct ConnectionTests {
  private func connected(
    _ scenario: TuyaScenario, _ dialect: CloudDialect = .v21(level: 2)
  ) async throws -> CloudClient {
    let double = try await TuyaDouble.listen(scenario)
    let client = try CloudClient(double, dialect)
    try await client.connect()
    return client
  }

  /// A pong has come back: everything before it was handled.
  private func settle(_ client: CloudClient) async throws {
    let before = client.packets.count { $0.type == PacketType.pong }
    try await client.send(CloudPacket(PacketType.ping, [CloudAttribute(AttributeID.clientTime, number: 7)]))
    try await wait("Pong") { client.packets.count { $0.type == PacketType.pong } > before || client.isOver }
  }

  @Test("what it prints for a graph leads to it")
  func settings() async throws {
    let double = try await TuyaDouble.listen(.numbered)
    defer { double.stop() }
    let settings = Dictionary(uniqueKeysWithValues: double.settings.map { ($0.name, $0.value) })
    #expect(settings["url"] == "tls://127.0.0.1:\(double.port)" && settings["roots"] == double.roots)
    #expect(settings["client"] == TuyaMembers().client && settings["localKey"] == TuyaMembers().localKey)
    #expect(settings["user"] == TuyaMembers().user && settings["password"] == TuyaMembers().password)
    #expect(settings["token"] == TuyaDouble.token && settings["provider"]?.hasSuffix("/d.json") == true)
    var plain = TuyaScenario.numbered
    plain.isPlain = true
    let other = try await TuyaDouble.listen(plain)
    defer { other.stop() }
    #expect(other.address == "tcp://127.0.0.1:\(other.port)" && other.roots == nil)
  }

  @Test("a refused identity gets AuthResp 401, and a refused name or password in v1, too")
  func identity() async throws {
    let double = try await TuyaDouble.listen(.numbered)
    defer { double.stop() }
    let client = try CloudClient(double)
    try await client.hello { $0.attributes[1] = CloudAttribute(AttributeID.clientID, "somebody") }
    try await wait("AuthResp") { client.status != nil }
    #expect(client.status == 401)
    let old = try CloudClient(double, .v1(security: 4))
    try await old.hello()
    try await old.auth(password: "wrong")
    try await wait("AuthResp") { old.status != nil }
    #expect(old.status == 401)
    try await wait("the end") { client.isOver && old.isOver }
    #expect(double.seen.violations == [])
  }

  @Test("the first connections are refused with the statuses and codes of the scenario")
  func refusals() async throws {
    var scenario = TuyaScenario.numbered
    scenario.answers = [504, 602]
    scenario.closes = [605]
    let double = try await TuyaDouble.listen(scenario)
    defer { double.stop() }
    var answers: [Int?] = []
    var closes: [Int?] = []
    for _ in 1...4 {
      let client = try CloudClient(double)
      try await client.hello()
      try await wait("an answer") { client.status != nil || client.closeCode != nil }
      answers.append(client.status)
      closes.append(client.closeCode)
      client.cancel()
    }
    #expect(answers == [504, 602, nil, 200] && closes == [nil, nil, 605, nil])
  }

  @Test(
    "a busy double refuses with the status that the stream has for that of HTTP",
    arguments: [503: 500, 401: 401, 504: 504])
  func busy(_ status: Int, _ code: Int) async throws {
    var scenario = TuyaScenario.numbered
    scenario.refusals = 1
    scenario.refusalStatus = status
    let client = try await connected(scenario)
    defer { client.double.stop() }
    #expect(client.status == code)
  }

  @Test("another local key shows in the first signed frame")
  func localKey() async throws {
    let double = try await TuyaDouble.listen(.numbered)
    defer { double.stop() }
    let client = try CloudClient(double, localKey: "another key")
    try await client.hello()
    try await client.open()
    try await wait("the end") { client.isOver }
    #expect(client.fault?.kind == .wrongSignature && client.violations == ["wrongSignature"])
  }

  @Test("a ping is answered with its own time and that of the double")
  func ping() async throws {
    let client = try await connected(.numbered)
    defer { client.double.stop() }
    try await settle(client)
    let pong = try #require(client.packets.last)
    #expect(pong.number(AttributeID.clientTime) == 7)
    #expect((pong.number(AttributeID.serverTime) ?? 0) > 1_700_000_000_000)
    client.cancel()
  }

  @Test("a connection can be refreshed")
  func refresh() async throws {
    let client = try await connected(.numbered)
    defer { client.double.stop() }
    let id = client.packets.first?.text(AttributeID.connectionID) ?? ""
    try await client.send(
      CloudPacket(PacketType.refreshRequest, [CloudAttribute(AttributeID.connectionID, id)]))
    try await wait("RefreshResp") {
      client.packets.contains { $0.type == PacketType.refreshResponse } || client.isOver
    }
    let answer = client.packets.first { $0.type == PacketType.refreshResponse }
    #expect(answer?.number(AttributeID.connectionStatus) == 200)
    #expect((answer?.number(AttributeID.expiry) ?? 0) > 1_700_000_000)
    #expect(client.double.seen.renewals == 1 && client.violations == [])
    client.cancel()
  }

  @Test("a connection that is not refreshed expires with 605")
  func expiry() async throws {
    var scenario = TuyaScenario.numbered
    scenario.expire = 1
    let client = try await connected(scenario)
    defer { client.double.stop() }
    try await wait("the end") { client.isOver }
    #expect(client.closeCode == 605 && client.violations == [])
  }

  @Test("the end of the connection is announced")
  func delayed() async throws {
    var scenario = TuyaScenario.numbered
    scenario.willDisconnect = true
    let client = try await connected(scenario)
    defer { client.double.stop() }
    try await wait("DelayDisconnect") { client.packets.contains { $0.type == PacketType.delayDisconnect } }
    client.cancel()
  }

  @Test("a session and the connection are closed in order")
  func closing() async throws {
    let client = try await connected(.numbered)
    defer { client.double.stop() }
    try await client.open()
    try await client.send(
      CloudPacket(
        PacketType.sessionClose,
        [
          CloudAttribute(AttributeID.sessionID, "session-1"),
          CloudAttribute(AttributeID.sessionCloseCode, number: 200),
        ]))
    try await client.send(
      CloudPacket(PacketType.connectionClose, [CloudAttribute(AttributeID.connectionCloseCode, number: 601)]))
    try await wait("the end") { client.isOver }
    #expect(client.double.seen.stops == 1 && client.violations == [])
    #expect(client.double.seen.lines.contains("> close 601"))
  }

  // MARK: Several sessions

  @Test("twenty sessions share a connection, each with its own dialogue, and the next is refused with 607")
  func many() async throws {
    var scenario = TuyaScenario.numbered
    scenario.sendData = ["text"]
    scenario.revData = ["text"]
    let client = try await connected(scenario)
    defer { client.double.stop() }
    for number: UInt16 in 1...21 {
      try await client.open("session-\(number)", sends: [2 * number - 1], receives: [2 * number])
    }
    try await wait("SessionClose") { client.sessionCode != nil || client.isOver }
    #expect(client.sessionCode == 607)
    for number: UInt16 in [1, 20] {
      try await client.ask("what?", "event-\(number)", in: "session-\(number)", channel: 2 * number - 1)
      try await wait("the end") { client.has(.end, "event-\(number)") || client.isOver }
    }
    #expect(Set(client.media(.text).map(\.channel)) == [2, 40])
    #expect(client.violations == [] && client.double.seen.starts.count == 20)
    client.cancel()
  }

  @Test("sound on a reserved id reaches every session that listed it")
  func shared() async throws {
    let client = try await connected(.numbered)
    defer { client.double.stop() }
    try await client.open("session-1", sends: [103, 109], receives: [2, 4])
    try await client.open("session-2", sends: [103, 109], receives: [6, 8])
    for number in 1...2 {
      try await client.send(.start, "event-\(number)", in: "session-\(number)", chat: ["asr.enableVad": true])
    }
    try await client.send(.audio, 103, .start, [], Sound.pcm)
    for frame in Sound.utterance { try await client.send(.audio, 103, .streaming, frame) }
    try await wait("both ends of speech") {
      client.has(.serverVAD, "event-1") && client.has(.serverVAD, "event-2") || client.isOver
    }
    try await client.send(.audio, 103, .end, [])
    for number in 1...2 { try await client.send(.end, "event-\(number)", in: "session-\(number)") }
    try await wait("both ends") {
      client.has(.end, "event-1") && client.has(.end, "event-2") || client.isOver
    }
    #expect(client.violations == [])
    #expect(Set(client.media(.audio).map(\.channel)) == [2, 6])
    client.cancel()
  }

  @Test("what crosses the end of a session is no mistake, as long as the double remembers the session")
  func manyClosed() async throws {
    let client = try await connected(.numbered)
    defer { client.double.stop() }
    let last = DoubleConnection.mostClosedSessions
    for number in 0...last {
      try await client.open("session-\(number)")
      let id = CloudAttribute(AttributeID.sessionID, "session-\(number)")
      try await client.send(CloudPacket(PacketType.sessionClose, [id]))
    }
    try await client.send(.chatBreak, "event-1", in: "session-\(last)")
    try await settle(client)
    #expect(client.violations == [] && client.double.seen.stops == last + 1)
    try await client.send(.chatBreak, "event-2", in: "session-0")
    try await wait("unknownSession") { !client.violations.isEmpty || client.isOver }
    #expect(client.violations == ["unknownSession"])
    client.cancel()
  }

  @Test("a session that is closed by the cloud leaves the others alone")
  func oneFails() async throws {
    var scenario = TuyaScenario.numbered
    scenario.turns[0].own.sessionClose = 500
    scenario.turns.append(TuyaScenario.numbered.turns[0])
    let client = try await connected(scenario)
    defer { client.double.stop() }
    try await client.open("session-1")
    try await client.open("session-2", sends: [11, 13], receives: [12, 14])
    try await client.ask("what?", "event-1", in: "session-1")
    try await wait("SessionClose") { client.sessionCode != nil || client.isOver }
    // What crosses the end of a session is no mistake.
    try await client.send(.chatBreak, "event-1", in: "session-1")
    try await client.ask("what?", "event-2", in: "session-2", channel: 13)
    try await wait("the end") { client.has(.end, "event-2") || client.isOver }
    #expect(client.sessionCode == 500 && client.violations == [])
    client.cancel()
  }

  // MARK: Tokens

  private func token(_ double: TuyaDouble) async throws -> JSONValue {
    var request = HTTPClient.Request("POST", try WebAddress(double.provider))
    request.body = .bytes(Array(#"{"agentCode":"agent"}"#.utf8))
    request.proxy = .direct
    let response = try await HTTPClient.shared.run(request)
    return try JSONValue(parsing: response.body)
  }

  private func decoded(_ answer: JSONValue) throws -> JSONValue {
    try JSONValue(parsing: try #require(Base64.decode(answer["result"]?.string ?? "")))
  }

  @Test("the token server says where to connect and how a session is created")
  func provider() async throws {
    let double = try await TuyaDouble.listen(.numbered)
    defer { double.stop() }
    let answer = try decoded(try await token(double))
    #expect(answer["connect_conf"]?["ecc_tls_port"]?.integer == double.port)
    #expect(answer["connect_conf"]?["derived_client_id"]?.string == double.client)
    let business = answer["session_conf"]?["bizConfig"]
    #expect(business?["bizCode"]?.integer == 65_537 && business?["bizTag"]?.integer == 119)
    #expect(business?["sendData"] == ["audio", "text", "image", "file", "video"])
    let issued = try #require(answer["session_conf"]?["agentToken"]?.string)
    let client = try CloudClient(double)
    try await client.connect()
    try await client.open(token: issued)
    try await client.ask("what?", "event-1")
    try await wait("the end") { client.has(.end) || client.isOver }
    #expect(client.violations == [])
    client.cancel()
  }

  @Test("tokens may be missing, expired, or another agent's, and then good")
  func tokens() async throws {
    var scenario = TuyaScenario.numbered
    scenario.tokens = [.missing, .expired, .foreign, .good]
    let double = try await TuyaDouble.listen(scenario)
    defer { double.stop() }
    #expect(try await token(double)["success"] == false)
    let client = try CloudClient(double)
    try await client.connect()
    try await client.open(
      "expired", token: try decoded(try await token(double))["session_conf"]?["agentToken"]?.string)
    try await wait("SessionState") { client.stateCode != nil || client.isOver }
    #expect(client.stateCode == 1_001)
    try await client.open(
      "foreign", token: try decoded(try await token(double))["session_conf"]?["agentToken"]?.string)
    try await wait("SessionClose") { client.sessionCode != nil || client.isOver }
    #expect(client.sessionCode == 401)
    try await client.open(token: try decoded(try await token(double))["session_conf"]?["agentToken"]?.string)
    try await client.ask("what?", "event-1")
    try await wait("the end") { client.has(.end) || client.isOver }
    #expect(client.violations == [])
    client.cancel()
  }

  @Test("a token that expires in a session is refused when it is used again")
  func expiredToken() async throws {
    var scenario = TuyaScenario.numbered
    scenario.turns[0].own.sessionState = 1_001
    let double = try await TuyaDouble.listen(scenario)
    defer { double.stop() }
    let issued = try decoded(try await token(double))["session_conf"]?["agentToken"]?.string
    let client = try CloudClient(double)
    try await client.connect()
    try await client.open(token: issued)
    try await client.ask("what?", "event-1")
    for count in 1...2 {
      try await wait("SessionState") {
        client.packets.count { $0.type == PacketType.sessionState } == count || client.isOver
      }
      if count == 1 { try await client.open("session-2", sends: [11], receives: [12], token: issued) }
    }
    #expect(!client.isOver)
    client.cancel()
  }

  // MARK: Formats

  @Test(
    "the reply has the first format that the session asks for and the double has",
    arguments: [
      ("mp3", 16_000, "", StreamParameters.AudioParameters.mp3), ("pcm", 24_000, "", 101),
      ("opus", 16_000, "", 111),
      ("opus", 16_000, "ogg", 111),
    ])
  func formats(_ format: String, _ rate: Int, _ container: String, _ codec: Int) async throws {
    var scenario = TuyaScenario.numbered
    scenario.isNumbered = false
    scenario.turns[0].says = "yes"
    let client = try await connected(scenario)
    defer { client.double.stop() }
    try await client.open(attributes: [
      "tts.order.supports": [
        ["format": "speex", "sampleRate": 16_000],
        [
          "format": .string(format), "sampleRate": .integer(rate), "container": .string(container),
          "bitDepth": "16",
        ],
      ]
    ])
    try await client.ask("what?", "event-1")
    try await wait("the end") { client.has(.end) || client.isOver }
    guard case .audio(let parameters)? = try client.audioParameters().first else {
      throw WaitFailure(description: "no sound")
    }
    #expect(parameters.codec == codec && parameters.rate == rate)
    let packets = client.media(.audio).filter { $0.flag == .streaming }.map(\.data)
    #expect(!packets.isEmpty && client.violations == [])
    if format == "opus", container.isEmpty {
      #expect(parameters.frameBytes == parameters.bitRate * parameters.frame / 8_000)
      let frames = packets.flatMap { packet in
        stride(from: 0, to: packet.count, by: parameters.frameBytes).map {
          Array(packet[$0..<$0 + parameters.frameBytes])
        }
      }
      #expect(packets.allSatisfy { $0.count % parameters.frameBytes == 0 })
      #expect(frames.allSatisfy { OpusFrames.milliseconds($0) == 20 })
      // The decoder of the suite's ear agrees.
      var ear = DoubleEar(.opus, rate: 16_000)
      #expect(frames.allSatisfy { ear.hear($0).violations == [] })
    }
    client.cancel()
  }
}
