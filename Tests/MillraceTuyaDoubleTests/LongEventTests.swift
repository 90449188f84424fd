import MillraceDoubles
import MillraceJSON
import Testing

@testable import MillraceTuyaDouble

@Suite("long events, and what a reply can have", .timeLimit(.minutes(30))) struct LongEventTests {
  private static let live: JSONValue = ["asr.enableVad": true, "processing.interrupt": true]

  private func connected(
    _ scenario: TuyaScenario, attributes: JSONValue? = nil, _ dialect: CloudDialect = .v21(level: 2)
  ) async throws -> CloudClient {
    let double = try await TuyaDouble.listen(scenario)
    let client = try CloudClient(double, dialect)
    try await client.connect()
    try await client.open(attributes: attributes)
    return client
  }

  private func speak(_ client: CloudClient) async throws {
    for frame in Sound.utterance { try await client.send(.audio, 1, .streaming, frame) }
  }

  @Test("one event without an end is divided into rounds with suffixed ids, and its sound continues")
  func rounds() async throws {
    let client = try await connected(.numbered)
    defer { client.double.stop() }
    try await client.send(.start, "live", chat: Self.live)
    try await client.send(.audio, 1, .start, [], Sound.pcm)
    for number in 1...3 {
      try await speak(client)
      try await wait("the end of round \(number)") { client.has(.end, "live-\(number)") || client.isOver }
    }
    #expect(client.events.filter { $0.known == .serverVAD }.map(\.id) == ["live-1", "live-2", "live-3"])
    #expect(client.documents.allSatisfy { $0["bizId"]?.string?.hasPrefix("live-") == true })
    #expect(client.violations == [] && double(client).begun == 3)
    client.cancel()
  }

  private func double(_ client: CloudClient) -> DoubleReport { client.double.seen }

  @Test("a voice over a reply breaks it off, and is answered")
  func bargeIn() async throws {
    var scenario = TuyaScenario.numbered
    var held = TuyaScenario.Turn()
    held.thinks = 0
    held.fault = .init(.hold, at: .midway)
    scenario.turns.insert(held, at: 0)
    let client = try await connected(scenario)
    defer { client.double.stop() }
    try await client.send(.start, "live", chat: Self.live)
    try await client.send(.audio, 1, .start, [], Sound.pcm)
    try await speak(client)
    try await wait("sound") { client.media(.audio).contains { $0.flag == .streaming } || client.isOver }
    try await speak(client)
    try await wait("the end") { client.has(.end, "live-2") || client.isOver }
    #expect(client.events.filter { $0.known == .chatBreak }.map(\.id) == ["live-1"])
    #expect(!client.has(.end, "live-1") && client.violations == [])
    client.cancel()
  }

  @Test("a question as text within a long event is a round of its own")
  func text() async throws {
    let client = try await connected(.numbered)
    defer { client.double.stop() }
    try await client.send(.start, "live", chat: Self.live)
    try await client.send(.text, 3, .onlyOne, Array("what?".utf8))
    try await wait("the end") { client.has(.end, "live-1") || client.isOver }
    #expect(client.violations == [])
    client.cancel()
  }

  @Test("the client's ChatBreak stops a reply, and nothing more comes of it")
  func chatBreak() async throws {
    var scenario = TuyaScenario.numbered
    scenario.turns[0].thinks = 60_000
    let client = try await connected(scenario)
    defer { client.double.stop() }
    try await client.ask("what?", "event-1")
    try await wait("the start") { client.has(.start, "event-1") || client.isOver }
    try await client.send(.chatBreak, "event-1")
    try await client.send(
      CloudPacket(PacketType.ping, [CloudAttribute(AttributeID.clientTime, number: 7)]))
    try await wait("Pong") { client.packets.contains { $0.type == PacketType.pong } || client.isOver }
    #expect(client.order == ["start"] && client.violations == [])
    client.cancel()
  }

  @Test("the cloud's ChatBreak stops a reply halfway")
  func cloudBreak() async throws {
    var scenario = TuyaScenario.numbered
    scenario.turns[0].breaks = true
    let client = try await connected(scenario)
    defer { client.double.stop() }
    try await client.ask("what?", "event-1")
    try await wait("ChatBreak") { client.has(.chatBreak, "event-1") || client.isOver }
    #expect(!client.has(.end))
    client.cancel()
  }

  @Test("silence in a long event lets the cloud sleep, once")
  func sleep() async throws {
    var scenario = TuyaScenario.numbered
    scenario.sleep = 1_000
    let client = try await connected(scenario)
    defer { client.double.stop() }
    try await client.send(.start, "live", chat: Self.live)
    try await client.send(.audio, 1, .start, [], Sound.pcm)
    for _ in 1...200 { try await client.send(.audio, 1, .streaming, Sound.frame(loud: false)) }
    try await speak(client)
    try await wait("the end") { client.has(.end) || client.isOver }
    #expect(client.events.filter { $0.known == .eventSleep }.map(\.id) == ["live"])
    client.cancel()
  }

  @Test(
    "reasons, images, emotions, skills and documents come with the reply, whole or divided",
    arguments: [false, true])
  func documents(_ isSplit: Bool) async throws {
    var scenario = TuyaScenario.numbered
    scenario.turns[0].own.reasons = "because"
    scenario.turns[0].own.images = ["https://pictures.example/a.jpg"]
    scenario.turns[0].own.emotions = ["😀", "😢"]
    scenario.turns[0].own.skills = [["code": "speechControl", "general": ["action": "exit"]]]
    scenario.turns[0].own.texts = [["bizType": "CloudEvent", "data": ["x": 1]]]
    scenario.turns[0].own.isSplit = isSplit
    let client = try await connected(scenario)
    defer { client.double.stop() }
    try await client.ask("what?", "event-1")
    try await wait("the end") { client.has(.end) || client.isOver }
    var documents = client.documents
    if isSplit {
      #expect(documents.isEmpty)
      var text: [UInt8] = []
      for media in client.media(.text) {
        if media.flag == .start { text = [] }
        text += media.data
        if media.flag == .end { documents.append(try JSONValue(parsing: text)) }
      }
    }
    #expect(documents[0]["data"]?["reasoningContent"]?.string == "because")
    #expect(documents[0]["data"]?["images"]?.array?.first?["url"]?.string == "https://pictures.example/a.jpg")
    let skills = documents.filter { $0["bizType"] == "SKILL" }
    #expect(skills.compactMap { $0["data"]?["skillContent"]?["sequence"]?.integer } == [1, 2])
    #expect(skills.map { $0["eof"]?.integer } == [0, 1, 1])
    #expect(documents.last == ["bizType": "CloudEvent", "data": ["x": 1]])
    client.cancel()
  }

  @Test("images, files and videos come as data", arguments: [CloudDialect.v21(level: 2), .v1(security: 4)])
  func attachments(_ dialect: CloudDialect) async throws {
    var scenario = TuyaScenario.numbered
    scenario.isPlain = dialect.isV1
    scenario.turns[0].own.pictures = 2
    scenario.turns[0].own.files = 1
    scenario.turns[0].own.videos = 1
    let client = try await connected(scenario, dialect)
    defer { client.double.stop() }
    try await client.ask("what?", "event-1")
    try await wait("the end") { client.has(.end) || client.isOver }
    #expect(client.media(.image).map(\.flag) == [.onlyOne, .onlyOne])
    #expect(client.media(.image)[0].data.starts(with: [0xFF, 0xD8]) && client.media(.image)[0].channel == 6)
    #expect(String(decoding: client.media(.file).flatMap(\.data), as: UTF8.self) == #"{"file":1}"#)
    #expect(client.media(.video).map(\.flag) == [.start, .streaming, .streaming, .streaming, .end])
    let file = try #require(client.packets.first { $0.type == PacketType.file })
    #expect(
      try StreamParameters(.file, of: file, isV1: dialect.isV1)
        == .file(payload: 0, format: 4, name: "file-1.json"))
    client.cancel()
  }

  @Test("the client's tools are asked, and its answers are checked")
  func tools() async throws {
    var scenario = TuyaScenario.numbered
    scenario.turns[0].own.mcp = [["id": 7, "method": "tools/list"]]
    let client = try await connected(scenario, attributes: ["deviceMcp": ["supportCustomMCP": true]])
    defer { client.double.stop() }
    try await client.ask("what?", "event-1")
    try await wait("the end") { client.has(.end) || client.isOver }
    let request = try #require(client.events.first { $0.known == .mcpCommand })
    #expect(try JSONValue(parsing: request.data) == ["jsonrpc": "2.0", "id": 7, "method": "tools/list"])
    try await client.send(.mcpCommand, "event-2", data: ["jsonrpc": "2.0", "id": 7, "result": ["tools": []]])
    try await client.send(.updateContext, "event-3", data: ["lights": "on"])
    try await client.send(.eventTrigger, "event-4", data: ["code": "door"])
    try await wait("the answer to the trigger") { client.has(.end, "event-4") || client.isOver }
    #expect(client.violations == [])
    client.cancel()
  }

  @Test("what was not understood has an empty final text, and no reply")
  func nothing() async throws {
    var scenario = TuyaScenario.numbered
    scenario.turns[0].hears = ""
    let client = try await connected(scenario)
    defer { client.double.stop() }
    try await client.send(.start, "event-1")
    try await client.send(.audio, 1, .start, [], Sound.pcm)
    try await speak(client)
    try await client.send(.audio, 1, .end, [])
    try await client.send(.end, "event-1")
    try await wait("the end") { client.has(.end) || client.isOver }
    #expect(client.order == ["start", "ASR 1", "end"])
    #expect(client.documents.first?["data"]?["text"]?.string == "")
    client.cancel()
  }

  @Test("a picture, a text and sound go into one event")
  func mixed() async throws {
    let client = try await connected(.numbered)
    defer { client.double.stop() }
    try await client.send(.start, "event-1")
    try await client.send(
      .image, 5, .onlyOne, SmallPicture.jpeg, .image(payload: 0, format: 1, width: 16, height: 16))
    try await client.send(.text, 3, .onlyOne, Array("what is this?".utf8))
    try await client.send(.audio, 1, .start, [], Sound.pcm)
    try await speak(client)
    try await client.send(.audio, 1, .end, [])
    for channel: UInt16 in [5, 3, 1] { try await client.send(.payloadsEnd, "event-1", channel: channel) }
    try await client.send(.end, "event-1")
    try await wait("the end") { client.has(.end) || client.isOver }
    #expect(client.violations == [] && double(client).pictures == 1 && double(client).begun == 1)
    #expect(double(client).largestPicture == SmallPicture.jpeg.count)
    client.cancel()
  }
}
