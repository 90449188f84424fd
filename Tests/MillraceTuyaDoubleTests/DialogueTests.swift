import MillraceDoubles
import MillraceJSON
import Testing

@testable import MillraceTuyaDouble

@Suite("dialogues with the double of the AI stream", .timeLimit(.minutes(30))) struct DialogueTests {
  static let dialects: [CloudDialect] = [
    .v21(level: 2), .v21(level: 1), .v21(level: 0), .v1(security: 4), .v1(security: 3), .v1(security: 2),
  ]

  @Test("a question as text is answered with a text and sound, in every dialect", arguments: dialects)
  func text(_ dialect: CloudDialect) async throws {
    var scenario = TuyaScenario.numbered
    scenario.isPlain = dialect.isV1
    scenario.turns[0].says = "one two three"
    let double = try await TuyaDouble.listen(scenario)
    defer { double.stop() }
    let client = try CloudClient(double, dialect)
    try await client.connect()
    #expect(client.status == 200)
    try await client.open(attributes: [
      "tts.order.supports": [["format": "pcm", "sampleRate": 16_000, "channels": 1, "bitDepth": "16"]]
    ])
    try await client.ask("what is it?", "event-1")
    try await wait("the end") { client.has(.end, "event-1") || client.isOver }
    #expect(client.order == ["start", "NLG 0", "NLG 1", "audio start", "audio end", "end"])
    #expect(client.documents.compactMap { $0["data"]?["content"]?.string }.joined() == "one two three")
    let sound = client.media(.audio).flatMap(\.data)
    #expect(sound.count == 3 * 1_600 * 2 && sound.enumerated().allSatisfy { $1 == ($0 % 2 == 0 ? 1 : 0) })
    #expect(try client.audioParameters() == [Sound.pcm])
    #expect(client.violations == [] && client.fault == nil)
    client.cancel()
  }

  @Test("what is said in a turn is recognised, its end is reported, and it is answered", arguments: dialects)
  func voice(_ dialect: CloudDialect) async throws {
    var scenario = TuyaScenario.numbered
    scenario.isPlain = dialect.isV1
    scenario.turns[0].hears = "what time is it"
    let double = try await TuyaDouble.listen(scenario)
    defer { double.stop() }
    let client = try CloudClient(double, dialect)
    try await client.connect()
    try await client.open()
    try await client.send(.start, "event-1", chat: ["asr.enableVad": true])
    try await client.send(.audio, 1, .start, [], Sound.pcm)
    for frame in Sound.utterance { try await client.send(.audio, 1, .streaming, frame) }
    try await wait("ServerVAD") { client.has(.serverVAD, "event-1") || client.isOver }
    try await client.send(.audio, 1, .end, [])
    try await client.send(.payloadsEnd, "event-1", channel: 1)
    try await client.send(.end, "event-1")
    try await wait("the end") { client.has(.end, "event-1") || client.isOver }
    #expect(
      client.order == [
        "start", "ASR 0", "serverVAD", "ASR 1", "NLG 0", "NLG 1", "audio start", "audio end", "end",
      ])
    #expect(client.documents[1]["data"]?["text"]?.string == "what time is it")
    #expect(client.violations == [] && client.fault == nil)
    #expect(double.seen.speechSamples == 25 * 320)
    client.cancel()
  }
}
