import MillraceConformance
import MillraceDialog
import MillraceDoubles
import MillraceJSON
import Testing

@testable import MillraceTuyaDouble

@Suite("faults of the double, in the kit's words and its own", .timeLimit(.minutes(30))) struct FaultTests {
  static let places: [ServiceFault.Place] = [.thinking, .responding, .midway, .answered]
  private static let dialects: [CloudDialect] = [.v21(level: 2), .v1(security: 4)]

  /// A double whose first turn has a fault, and a client that has asked.
  private func asked(
    _ fault: ServiceFault, _ dialect: CloudDialect = .v21(level: 2)
  ) async throws -> CloudClient {
    var scenario = TuyaScenario.numbered
    scenario.isPlain = dialect.isV1
    scenario.turns[0].fault = fault
    scenario.turns.append(TuyaScenario.numbered.turns[0])
    let client = try await opened(scenario, dialect)
    try await client.ask("what?", "event-1")
    return client
  }

  private func opened(
    _ scenario: TuyaScenario, _ dialect: CloudDialect = .v21(level: 2)
  ) async throws -> CloudClient {
    let double = try await TuyaDouble.listen(scenario)
    let client = try CloudClient(double, dialect)
    try await client.connect()
    try await client.open()
    return client
  }

  private func ping(_ client: CloudClient) async throws {
    try await client.send(CloudPacket(PacketType.ping, [CloudAttribute(AttributeID.clientTime, number: 7)]))
    try await wait("Pong") { client.packets.contains { $0.type == PacketType.pong } || client.isOver }
  }

  /// What had been sent when the place was reached.
  private func begins(_ place: ServiceFault.Place) -> [String] {
    let reply = ["start", "NLG 0", "NLG 1", "audio start"]
    return place == .thinking ? ["start"] : reply
  }

  @Test("hold: nothing more of the reply comes, and pings are answered", arguments: places)
  func hold(_ place: ServiceFault.Place) async throws {
    let client = try await asked(ServiceFault(.hold, at: place))
    defer { client.double.stop() }
    try await wait("the fault") { client.double.seen.lines.contains("# hold") }
    try await ping(client)
    #expect(client.order == begins(place))
    try await client.send(.chatBreak, "event-1")
    try await client.ask("what?", "event-2")
    try await wait("the end") { client.has(.end, "event-2") || client.isOver }
    #expect(client.violations == [])
    client.cancel()
  }

  @Test("drop: the connection is over", arguments: places)
  func drop(_ place: ServiceFault.Place) async throws {
    let client = try await asked(ServiceFault(.drop, at: place))
    defer { client.double.stop() }
    try await wait("the end") { client.isOver }
    #expect(!client.has(.end) && client.closeCode == nil)
  }

  @Test("stall: nothing is read or answered any more", arguments: places)
  func stall(_ place: ServiceFault.Place) async throws {
    let client = try await asked(ServiceFault(.stall, at: place))
    defer { client.double.stop() }
    try await wait("the fault") { client.double.seen.lines.contains("# stall") }
    let lines = client.double.seen.lines.count
    try await client.ask("what?", "event-2")
    // Another client is served meanwhile, which takes longer than what would have been read.
    let other = try CloudClient(client.double)
    try await other.connect()
    try await other.open()
    try await other.ask("what?", "event-1")
    try await wait("the end") { other.has(.end) || other.isOver }
    #expect(!client.has(.end) && !client.isOver)
    #expect(client.double.seen.lines[lines...].count { $0 == "> start" } == 1)
    client.cancel()
    other.cancel()
  }

  @Test("malformed: a text that is no JSON, and the reply continues", arguments: places, dialects)
  func malformed(_ place: ServiceFault.Place, _ dialect: CloudDialect) async throws {
    let client = try await asked(ServiceFault(.malformed, at: place), dialect)
    defer { client.double.stop() }
    try await wait("the end") { client.has(.end) || client.isOver }
    let texts = client.media(.text).map { String(decoding: $0.data, as: UTF8.self) }
    #expect(
      texts.count { $0.contains(ServiceFault.userText) } == 1 && texts.count == client.documents.count + 1)
    client.cancel()
  }

  @Test("unknown: a document of no kind, which the report has", arguments: places)
  func unknown(_ place: ServiceFault.Place) async throws {
    let client = try await asked(ServiceFault(.unknown, at: place))
    defer { client.double.stop() }
    try await wait("the end") { client.has(.end) || client.isOver }
    let unknown = client.documents.filter { $0["bizType"] == "ASTONISHMENT" }
    #expect(unknown.count == 1 && unknown == client.double.seen.unknownMessages)
    client.cancel()
  }

  @Test("oversized: a frame larger than any that the client takes", arguments: dialects)
  func oversized(_ dialect: CloudDialect) async throws {
    let client = try await asked(ServiceFault(.oversized), dialect)
    defer { client.double.stop() }
    try await wait("the frame") { client.fault != nil || client.isOver }
    #expect(client.fault?.kind == .largeFrame)
    client.cancel()
  }

  @Test("error: the round ends with ServerTimeover, and the next one works", arguments: places)
  func error(_ place: ServiceFault.Place) async throws {
    let client = try await asked(ServiceFault(.error, at: place))
    defer { client.double.stop() }
    try await wait("the end") { client.has(.end, "event-1") || client.isOver }
    #expect(client.order == begins(place) + ["serverTimeover", "end"])
    try await client.ask("what?", "event-2")
    try await wait("the end") { client.has(.end, "event-2") || client.isOver }
    client.cancel()
  }

  @Test("fail: the connection is closed with the fault's code", arguments: [nil, 408, 504, 603])
  func fail(_ code: Int?) async throws {
    var fault = ServiceFault(.fail, at: .midway)
    fault.code = code
    let client = try await asked(fault)
    defer { client.double.stop() }
    try await wait("the end") { client.isOver }
    #expect(client.closeCode == code ?? 500)
  }

  @Test("repeated: events and documents come twice, sound once")
  func repeated() async throws {
    let client = try await asked(ServiceFault(.repeated, at: .thinking))
    defer { client.double.stop() }
    try await wait("the end") { client.events.count { $0.known == .end } == 2 || client.isOver }
    #expect(
      client.order == [
        "start", "start", "NLG 0", "NLG 0", "NLG 1", "NLG 1", "audio start", "audio end", "end", "end",
      ])
    let counts = client.media(.text).map(\.count)
    #expect(counts == [1, 1, 2, 2])
    client.cancel()
  }

  @Test("out of order: the reply comes before its start")
  func outOfOrder() async throws {
    let client = try await asked(ServiceFault(.outOfOrder, at: .thinking))
    defer { client.double.stop() }
    try await wait("the end") { client.has(.end) || client.isOver }
    #expect(client.order == ["NLG 0", "NLG 1", "audio start", "start", "ASR 1", "audio end", "end"])
    client.cancel()
  }

  @Test(
    "kick: the session is closed with 200, or the connection with 602 where the identity is used elsewhere")
  func kick() async throws {
    let client = try await asked(ServiceFault(.kick, at: .midway))
    defer { client.double.stop() }
    try await wait("SessionClose") { client.sessionCode != nil || client.isOver }
    #expect(client.sessionCode == 200)
    client.cancel()
    var fault = ServiceFault(.kick, at: .listening)
    fault.reason = .replaced
    var scenario = TuyaScenario.numbered
    scenario.fault = fault
    let other = try await opened(scenario)
    defer { other.double.stop() }
    try await wait("the end") { other.isOver }
    #expect(other.closeCode == 602 && other.double.seen.events.map(\.name) == ["kicked"])
  }

  @Test("expire: the connection is lost, and the identity is refused from then on", arguments: places)
  func expire(_ place: ServiceFault.Place) async throws {
    let client = try await asked(ServiceFault(.expire, at: place))
    defer { client.double.stop() }
    try await wait("the end") { client.isOver }
    let next = try CloudClient(client.double)
    try await next.connect()
    #expect(next.status == 401)
  }

  @Test("a fault before the first turn happens once", arguments: [ServiceFault.Place.connecting, .listening])
  func early(_ place: ServiceFault.Place) async throws {
    var scenario = TuyaScenario.numbered
    scenario.fault = ServiceFault(.drop, at: place)
    let double = try await TuyaDouble.listen(scenario)
    defer { double.stop() }
    let client = try CloudClient(double)
    try await client.connect()
    try await client.open()
    try await wait("the end") { client.isOver }
    let next = try CloudClient(double)
    try await next.connect()
    try await next.open()
    try await next.ask("what?", "event-1")
    try await wait("the end") { next.has(.end) || next.isOver }
    #expect(!next.isOver)
    next.cancel()
  }

  @Test(
    "a session or the connection is closed with every code of the cloud",
    arguments: [200, 400, 401, 404, 408, 500, 504, 601, 602, 603, 604, 605, 607])
  func codes(_ code: Int) async throws {
    var scenario = TuyaScenario.numbered
    scenario.turns[0].own.close = code
    let client = try await opened(scenario)
    defer { client.double.stop() }
    try await client.ask("what?", "event-1")
    try await wait("the end") { client.isOver }
    #expect(client.closeCode == code)
    scenario.turns[0].own.close = 0
    scenario.turns[0].own.sessionClose = code
    let other = try await opened(scenario)
    defer { other.double.stop() }
    try await other.ask("what?", "event-1")
    try await wait("SessionClose") { other.sessionCode != nil || other.isOver }
    #expect(other.sessionCode == code && !other.isOver)
    other.cancel()
  }

  @Test("what is broken on the wire is noticed", arguments: TuyaWireFault.allCases, dialects)
  func wire(_ fault: TuyaWireFault, _ dialect: CloudDialect) async throws {
    let kinds: [TuyaWireFault: WireFault.Kind] = [
      .corrupt: .wrongSignature, .signature: .wrongSignature, .sequence: .wrongSequence,
      .fragment: .fragmentOrder,
      .orphan: .fragmentOrder, .version: .badVersion,
    ]
    var scenario = TuyaScenario.numbered
    scenario.isPlain = dialect.isV1
    scenario.turns[0].own.wire = fault
    let client = try await opened(scenario, dialect)
    defer { client.double.stop() }
    try await client.ask("what?", "event-1")
    try await wait("the reply") { client.double.seen.lines.contains("< NLG") }
    try await client.send(CloudPacket(PacketType.ping, [CloudAttribute(AttributeID.clientTime, number: 7)]))
    try await wait("the fault") { client.fault != nil || client.isOver }
    #expect(client.fault?.kind == kinds[fault])
    client.cancel()
  }

  @Test(
    "bytes one by one, in one piece, and packets in small fragments are the same dialogue",
    arguments: DialogueTests.dialects.map { ($0, TuyaDelivery.coalesce) } + dialects.map { ($0, .dribble) })
  func delivery(_ dialect: CloudDialect, _ delivery: TuyaDelivery) async throws {
    var scenario = TuyaScenario.numbered
    scenario.isPlain = dialect.isV1
    scenario.delivery = delivery
    scenario.fragment = delivery == .coalesce ? 100 : 0
    scenario.turns[0].says = "word"
    let client = try await opened(scenario, dialect)
    defer { client.double.stop() }
    try await client.ask("what?", "event-1")
    try await wait("the end") { client.has(.end) || client.isOver }
    #expect(client.order == ["start", "NLG 1", "audio start", "audio end", "end"])
    #expect(client.media(.audio).flatMap(\.data).count == 3_200 && client.violations == [])
    client.cancel()
  }

  @Test("a scenario is read from a file, and what is wrong in it is said with its place")
  func scenario() async throws {
    let text = #"""
      { "plain": true, "client": "c", "localKey": "k", "answers": [504], "tokens": ["expired", "good"], "delivery": "dribble",
        "sendData": ["text"], "expire": 60, "sessions": 2, "sleep": 10,
        "turns": [{ "says": "x", "emotions": ["😀"], "mcp": [{ "id": 1 }], "wire": "corrupt", "sessionClose": 404,
                    "pictures": 1, "split": true, "fault": { "kind": "kick", "at": "midway" } }] }
      """#
    let read = try TuyaScenario(parsing: text, faults: TuyaConformance.traits.faults)
    #expect(read.isPlain && read.client == "c" && read.answers == [504] && read.delivery == .dribble)
    #expect(
      read.tokens == [.expired, .good] && read.sendData == ["text"] && read.sleep == 10 && read.sessions == 2)
    #expect(read.turns[0].wire == .corrupt && read.turns[0].sessionClose == 404 && read.turns[0].isSplit)
    for (wrong, message) in [
      (#"{ "tokens": ["bad"] }"#, "good, expired, foreign, missing"),
      (#"{ "sendData": ["smell"] }"#, "audio, text"),
      (#"{ "answers": [-1] }"#, "from 0 to 65535"), (#"{ "deliver": "whole" }"#, "did you mean \"delivery\""),
      (#"{ "turns": [{ "wires": "x" }] }"#, "did you mean \"wire\""),
    ] {
      let problem = #expect(throws: ScenarioProblem.self) { _ = try TuyaScenario(parsing: wrong) }
      #expect(problem?.description.contains(message) == true, "\(problem?.description ?? "")")
    }
  }

  @Test("a kick for a reason that the cloud does not state is refused with those that it states")
  func kickReasons() async throws {
    var options = DoubleOptions()
    options.scenario = .text(
      #"{ "turns": [{ "fault": { "kind": "kick", "reason": "removed" } }] }"#, name: "file.json")
    let problem = await #expect(throws: DoubleProblem.self) { _ = try await TuyaProgram.start(options) }
    #expect(
      problem?.description
        == "file.json:1:52: error: this double does not state the reason \"removed\"; it states replaced, or none without a \"reason\""
    )
  }

  @Test("a voice that does not exist is refused when the double starts, not during the first reply")
  func voice() async throws {
    var options = DoubleOptions()
    options.scenario = .text(#"{ "voice": "klingonx" }"#, name: "file.json")
    let problem = await #expect(throws: DoubleProblem.self) { _ = try await TuyaProgram.start(options) }
    let text = problem?.description ?? ""
    #expect(text.hasPrefix("file.json: ") && text.contains("espeak-ng"), "\(text)")
  }

  @Test("the program starts the double of a file, and says which members it does not have")
  func program() async throws {
    var options = DoubleOptions()
    options.scenario = .text(#"{ "numbered": true, "plain": true }"#, name: "file.json")
    let double = try await TuyaProgram.start(options)
    #expect(double.address.hasPrefix("tcp://") && double.settings.count == 7)
    double.stop()
    options.scenario = .text(#"{ "checksPlayback": true }"#, name: "file.json")
    await #expect(throws: DoubleProblem.self) { _ = try await TuyaProgram.start(options) }
    #expect(
      TuyaProgram.nodeMembers(port: 1, trusting: "a.pem", for: .voice)?.contains { $0.name == "roots" }
        == true)
    #expect(TuyaProgram.nodeMembers(port: 1, trusting: "a.pem", for: .avatar) == nil)
  }
}
