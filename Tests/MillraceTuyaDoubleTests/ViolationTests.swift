import MillraceDoubles
import MillraceJSON
import MillraceNet
import Testing

@testable import MillraceTuyaDouble

/// A mistake of a client.
struct Mistake: Sendable, CustomTestStringConvertible {
  let name: String
  let what: String
  let dialect: CloudDialect
  /// True: the connection and a session are opened first.
  let isOpen: Bool
  let make: @Sendable (CloudClient) async throws -> Void

  var testDescription: String { "\(name): \(what)" }

  init(
    _ name: String, _ what: String, _ dialect: CloudDialect = .v21(level: 2), isOpen: Bool = true,
    _ make: @escaping @Sendable (CloudClient) async throws -> Void
  ) {
    self.name = name
    self.what = what
    self.dialect = dialect
    self.isOpen = isOpen
    self.make = make
  }

  static let all = connections + sessions + events + data + sounds

  // MARK: The connection

  private static let connections: [Mistake] = [
    Mistake("noHello", "a ping comes first", isOpen: false) { client in
      try await client.send(CloudPacket(PacketType.ping))
    },
    Mistake("badVersion", "no frame of any dialect", isOpen: false) {
      try await $0.send(raw: [0x47, 0x45, 0x54])
    },
    Mistake("badVersion", "another dialect in a connection") { try await $0.send(raw: [1, 0, 3, 0, 0]) },
    Mistake("shortFrame", "a frame without a body") {
      try await $0.send(raw: [0x22, 0, 3, 0, 5, 1, 2, 3, 4, 5])
    },
    Mistake("largeFrame", "a frame longer than declared") { client in
      try await client.send(raw: [0x22, 0, 3, 0xFF, 0xFF])
    },
    Mistake("suite", "a suite of 20 bytes", isOpen: false) { client in
      try await client.hello { $0.attributes[2].value = [UInt8](repeating: 2, count: 20) }
    },
    Mistake("badSecurityLevel", "signature level 9", isOpen: false) { client in
      try await client.hello { $0.attributes[2].value[0] = 9 }
    },
    Mistake("wrongSignature", "a frame that was changed") { client in
      var frame = try client.state.withLock { try $0.writer.frames(of: CloudPacket(PacketType.ping)) }[0]
      frame[5] ^= 1
      try await client.send(raw: frame)
    },
    Mistake("wrongSignature", "a ClientHello of v1 that was changed", .v1(security: 4), isOpen: false) {
      client in
      try await client.hello { _ in client.state.withLock { $0.writer.spoilsSignature = true } }
    },
    Mistake("wrongSequence", "a frame number left out") { client in
      client.state.withLock { $0.writer.sequence += 1 }
      try await client.send(CloudPacket(PacketType.ping))
    },
    Mistake("fragmentOrder", "a packet within the fragments of another") { client in
      let frame = try client.state.withLock { state in
        try state.writer.frame([8 | 1, 0], flag: 1, isHello: false, iv: [])
      }
      try await client.send(raw: frame)
      try await client.send(CloudPacket(PacketType.ping))
    },
    Mistake("cutPacket", "the stream ends within a frame") { client in
      try await client.send(raw: [0x22, 0])
      client.finish()
    },
    Mistake("secondHello", "a ClientHello within a connection", .v21(level: 0)) { try await $0.hello() },
    Mistake("wrongAuth", "AuthReq in v21") { try await $0.auth() },
    Mistake("wrongHello", "client type 7", isOpen: false) { client in
      try await client.hello { $0.attributes[0].value = [7] }
    },
    Mistake("missingAttribute", "no ping interval", isOpen: false) { client in
      try await client.hello { $0.attributes.removeLast() }
    },
    Mistake("missingAttribute", "no client id", isOpen: false) { client in
      try await client.hello { $0.attributes.remove(at: 1) }
    },
    Mistake("missingAttribute", "a Ping without its time") {
      try await $0.send(CloudPacket(PacketType.ping))
    },
    Mistake("missingAttribute", "ConnClose without a code") {
      try await $0.send(CloudPacket(PacketType.connectionClose))
    },
    Mistake("beforeAuth", "a session before the connection was accepted", .v1(security: 4), isOpen: false) {
      client in
      try await client.hello()
      try await client.open()
    },
    Mistake("wrongDirection", "a Pong of the client") { try await $0.send(CloudPacket(PacketType.pong)) },
    Mistake("latePing", "no ping within one and a half intervals", isOpen: false) { client in
      try await client.hello {
        $0.attributes[$0.attributes.count - 1] = CloudAttribute(AttributeID.pingInterval, number: 200)
      }
      try await wait("the end") { client.isOver }
      #expect(client.closeCode == 604)
    },
    Mistake("wrongConnection", "RefreshReq of another connection") { client in
      try await client.send(
        CloudPacket(PacketType.refreshRequest, [CloudAttribute(AttributeID.connectionID, "another")]))
    },
  ]

  // MARK: Sessions

  private static let sessions: [Mistake] = [
    Mistake("missingAttribute", "a session without an id") { client in
      try await client.open { $0.attributes.removeAll { $0.id == AttributeID.sessionID } }
    },
    Mistake("sameSession", "a session twice") { try await $0.open("session-1", sends: [11], receives: [12]) },
    Mistake("wrongBizCode", "another business code") { client in
      try await client.open("session-2", sends: [11], receives: [12]) {
        $0.attributes[0] = CloudAttribute(AttributeID.bizCode, number: 1)
      }
    },
    Mistake("noToken", "no token") { client in
      try await client.open("session-2", sends: [11], receives: [12]) {
        $0.attributes.removeAll { $0.id == AttributeID.agentToken }
      }
    },
    Mistake("wrongBizTag", "another business tag than the token server's") { client in
      var request = HTTPClient.Request("POST", try WebAddress(client.double.provider))
      request.proxy = .direct
      let answer = try JSONValue(parsing: try await HTTPClient.shared.run(request).body)
      let whole = try JSONValue(parsing: try #require(Base64.decode(answer["result"]?.string ?? "")))
      let token = whole["session_conf"]?["agentToken"]?.string
      try await client.open("session-2", sends: [11], receives: [12], token: token, bizTag: 1)
    },
    Mistake("channelIDs", "an even id to send on") {
      try await $0.open("session-2", sends: [12], receives: [14])
    },
    Mistake("channelIDs", "an odd id to receive on") {
      try await $0.open("session-2", sends: [11], receives: [13])
    },
    Mistake("channelIDs", "an id twice") { try await $0.open("session-2", sends: [11, 11], receives: [12]) },
    Mistake("channelIDs", "none to receive on") { try await $0.open("session-2", sends: [11], receives: []) },
    Mistake("channelIDs", "more than the token names") {
      try await $0.open("session-2", sends: [11, 13, 15, 17, 19, 21], receives: [12])
    },
    Mistake("channelIDs", "an id reserved for another kind") {
      try await $0.open("session-2", sends: [105], receives: [12])
    },
    Mistake("channelTaken", "a receiving id of another session") {
      try await $0.open("session-2", sends: [11], receives: [2])
    },
    Mistake("channelTaken", "a sending id of another session") {
      try await $0.open("session-2", sends: [1], receives: [12])
    },
    Mistake("channelLists", "half a data id") { client in
      try await client.open("session-2") { $0.payload = [0, 1, 0, 0, 0] }
    },
    Mistake("replyFormats", "no format that the double has") {
      try await $0.open(
        "session-2", sends: [11], receives: [12],
        attributes: ["tts.order.supports": [["format": "speex", "sampleRate": 16_000]]])
    },
    Mistake("badUserData", "user data that is not JSON") { client in
      try await client.open("session-2") { $0.attributes.append(CloudAttribute(AttributeID.userData, "{")) }
    },
    Mistake("unknownSession", "the end of a session that does not exist") { client in
      try await client.send(
        CloudPacket(PacketType.sessionClose, [CloudAttribute(AttributeID.sessionID, "session-2")]))
    },
    Mistake("unknownSession", "an event of a session that does not exist") {
      try await $0.send(.start, "event-1", in: "session-2")
    },
  ]

  // MARK: Events

  private static let events: [Mistake] = [
    Mistake("noEventID", "an event without an id") { try await $0.send(.start, "") },
    Mistake("sameEvent", "an event twice") { client in
      for _ in 1...2 { try await client.send(.start, "event-1") }
    },
    Mistake("usedEvent", "the id of an event that is over") { client in
      try await client.send(.start, "event-1")
      try await client.send(.chatBreak, "event-1")
      try await client.send(.start, "event-1")
    },
    Mistake("secondEvent", "two events at a time") { client in
      for number in 1...2 { try await client.send(.start, "event-\(number)") }
    },
    Mistake("badAttributes", "a word where true or false is due") {
      try await $0.send(.start, "event-1", chat: ["asr.enableVad": "yes"])
    },
    Mistake("emptyEvent", "an event without data") { client in
      try await client.send(.start, "event-1")
      try await client.send(.end, "event-1")
    },
    Mistake("noEvent", "the end of an event that is not open") { try await $0.send(.end, "event-1") },
    Mistake("noEvent", "PayloadsEnd without its event") {
      try await $0.send(.payloadsEnd, "event-1", channel: 1)
    },
    Mistake("noEvent", "ChatBreak of what does not exist") { try await $0.send(.chatBreak, "event-1") },
    Mistake("noChannel", "PayloadsEnd without a data id") { client in
      try await client.send(.start, "event-1")
      try await client.send(.payloadsEnd, "event-1")
    },
    Mistake("unknownChannel", "PayloadsEnd of a data id that is not listed") { client in
      try await client.send(.start, "event-1")
      try await client.send(.payloadsEnd, "event-1", channel: 99)
    },
    Mistake("streamOpen", "PayloadsEnd within a stream") { client in
      try await speak(client)
      try await client.send(.payloadsEnd, "event-1", channel: 1)
    },
    Mistake("streamOpen", "the end of an event within a stream") { client in
      try await speak(client)
      try await client.send(.end, "event-1")
    },
    Mistake("wrongDirection", "ServerVAD of a client") { try await $0.send(.serverVAD, "event-1") },
    Mistake("badEventData", "a context that is not JSON") { try await $0.send(.updateContext, "event-1") },
    Mistake("badAnswer", "a tool's answer that is neither result nor error") {
      try await $0.send(.mcpCommand, "event-1", data: ["jsonrpc": "2.0", "id": 1])
    },
    Mistake("unaskedAnswer", "a tool's answer without a request") {
      try await $0.send(.mcpCommand, "event-1", data: ["jsonrpc": "2.0", "id": 1, "result": 1])
    },
    Mistake("eventHead", "an event without a type") { client in
      try await client.send(
        CloudPacket(PacketType.event, [CloudAttribute(AttributeID.sessionID, "session-1")], payload: [0]))
    },
  ]

  // MARK: Data

  /// An event with an open stream of sound.
  private static func speak(_ client: CloudClient, chat: JSONValue? = nil) async throws {
    try await client.send(.start, "event-1", chat: chat)
    try await client.send(.audio, 1, .start, [], Sound.pcm)
  }

  private static let jpeg = StreamParameters.image(payload: 0, format: 1, width: 16, height: 16)

  private static func inEvent(
    _ name: String, _ what: String, _ make: @escaping @Sendable (CloudClient) async throws -> Void
  ) -> Mistake {
    Mistake(name, what) { client in
      try await client.send(.start, "event-1")
      try await make(client)
    }
  }

  private static let data: [Mistake] = [
    Mistake("dataWithoutEvent", "a text outside of an event") { try await $0.send(.text, 3, .onlyOne, [65]) },
    inEvent("unknownChannel", "a text on an id that no session has") {
      try await $0.send(.text, 33, .onlyOne, [65])
    },
    inEvent("wrongKind", "a text on the id of sound") { try await $0.send(.text, 1, .onlyOne, [65]) },
    inEvent("emptyText", "an empty text") { try await $0.send(.text, 3, .onlyOne, []) },
    inEvent("badText", "a text that is not UTF-8") { try await $0.send(.text, 3, .onlyOne, [0xFF]) },
    inEvent("noStream", "a text continues that has not begun") {
      try await $0.send(.text, 3, .streaming, [65])
    },
    inEvent("noStream", "a text ends that has not begun") { try await $0.send(.text, 3, .end, [65]) },
    inEvent("streamOpen", "a text begins within a text") { client in
      for _ in 1...2 { try await client.send(.text, 3, .start, [65]) }
    },
    inEvent("afterPayloadsEnd", "a text behind the end of its data") { client in
      try await client.send(.text, 3, .onlyOne, [65])
      try await client.send(.payloadsEnd, "event-1", channel: 3)
      try await client.send(.text, 3, .onlyOne, [65])
    },
    inEvent("noParameters", "an image without its format") {
      try await $0.send(.image, 5, .onlyOne, SmallPicture.jpeg)
    },
    inEvent("notAnImage", "bytes that are no JPEG") {
      try await $0.send(.image, 5, .onlyOne, [1, 2, 3], jpeg)
    },
    inEvent("largeImage", "an image of more than a megabyte") {
      try await $0.send(
        .image, 5, .onlyOne, SmallPicture.jpeg + [UInt8](repeating: 0, count: 1_000_000), jpeg)
    },
    inEvent("strayParameters", "parameters within a stream") { client in
      try await client.send(.audio, 1, .start, [], Sound.pcm)
      var packet = CloudMedia(.audio, 1, .streaming, Sound.frame(loud: false)).packet(isV1: false)
      packet.attributes = Sound.pcm.attributes(isV1: false)
      try await client.send(packet)
    },
    inEvent("badParameters", "parameters that are no numbers") { client in
      var packet = CloudMedia(.audio, 1, .start, []).packet(isV1: false)
      packet.attributes = [CloudAttribute(AttributeID.audioParameters, "pcm mono 16 16000")]
      try await client.send(packet)
    },
    inEvent("mediaHead", "a head that is cut") {
      try await $0.send(CloudPacket(PacketType.audio, payload: [0, 1, 2]))
    },
  ]

  private static func opus(frame: Int = 40, bytes: Int = 80, bitRate: Int = 16_000) -> StreamParameters {
    .audio(.init(codec: 111, rate: 16_000, bitRate: bitRate, frame: frame, frameBytes: bytes))
  }

  private static let sounds: [Mistake] = [
    inEvent("wrongFormat", "sound at 8 kHz") {
      try await $0.send(.audio, 1, .start, [], .audio(.init(codec: 101, rate: 8_000)))
    },
    inEvent("wrongFormat", "sound as MP3") {
      try await $0.send(.audio, 1, .start, [], .audio(.init(codec: 109, rate: 16_000)))
    },
    inEvent("frameBytes", "Opus without the size of its frames") {
      try await $0.send(.audio, 1, .start, [], opus(bytes: 0))
    },
    inEvent("frameBytes", "Opus with another size of frames than its bit rate has") {
      try await $0.send(.audio, 1, .start, [], opus(bytes: 81))
    },
    inEvent("opusFrames", "Opus that is not whole frames") { client in
      try await client.send(.audio, 1, .start, [], opus())
      try await client.send(.audio, 1, .streaming, [UInt8](repeating: 1, count: 81))
    },
    inEvent("opusFrames", "frames of another duration") { client in
      try await client.send(.audio, 1, .start, [], opus())
      try await client.send(.audio, 1, .streaming, [1 << 3] + [UInt8](repeating: 1, count: 79))
    },
    inEvent("waveHeader", "sound that begins with the header of a file") { client in
      try await client.send(.audio, 1, .start, [], Sound.pcm)
      try await client.send(.audio, 1, .streaming, Array("RIFF....".utf8))
    },
    inEvent("oddFrame", "half a sample") { client in
      try await client.send(.audio, 1, .start, [], Sound.pcm)
      try await client.send(.audio, 1, .streaming, [1, 2, 3])
    },
    inEvent("soundBehindPicture", "sound that waited behind a picture") { client in
      try await client.send(.audio, 1, .start, [], Sound.pcm)
      let now = UnixClock.milliseconds
      try await client.send(.image, 5, .onlyOne, SmallPicture.jpeg, jpeg, time: now)
      try await client.send(.audio, 1, .streaming, Sound.frame(loud: false), time: now - 500)
    },
    Mistake("soundAfterVAD", "a minute of sound behind the ServerVAD") { client in
      try await speak(client, chat: ["asr.enableVad": true])
      for frame in Sound.utterance { try await client.send(.audio, 1, .streaming, frame) }
      try await wait("ServerVAD") { client.has(.serverVAD) || client.isOver }
      let second = [UInt8](repeating: 0, count: 32_000)
      for _ in 1...61 { try await client.send(.audio, 1, .streaming, second) }
    },
  ]
}

@Suite("what a client does wrong", .timeLimit(.minutes(30))) struct ViolationTests {
  @Test("each mistake is a violation of its name, and the only one", arguments: Mistake.all)
  func mistakes(_ mistake: Mistake) async throws {
    var scenario = TuyaScenario.numbered
    scenario.isPlain = mistake.dialect.isV1
    let double = try await TuyaDouble.listen(scenario)
    defer { double.stop() }
    let client = try CloudClient(double, mistake.dialect)
    if mistake.isOpen {
      try await client.connect()
      try await client.open()
    }
    try await mistake.make(client)
    try await wait(mistake.name) { !double.seen.violations.isEmpty }
    #expect(client.violations == [mistake.name])
    client.cancel()
  }

  @Test("a session in v21 before the answer to the ClientHello is a violation")
  func early() async throws {
    var scenario = TuyaScenario.numbered
    scenario.delay = 60_000
    let double = try await TuyaDouble.listen(scenario)
    defer { double.stop() }
    let client = try CloudClient(double)
    try await client.hello()
    try await client.open()
    try await wait("beforeAuth") { client.violations == ["beforeAuth"] }
    client.cancel()
  }

  @Test("the token server takes POST at its own path")
  func tokens() async throws {
    let double = try await TuyaDouble.listen(.numbered)
    defer { double.stop() }
    for (method, address) in [("GET", double.provider), ("POST", double.provider + "/more")] {
      var request = HTTPClient.Request(method, try WebAddress(address))
      request.proxy = .direct
      _ = try await HTTPClient.shared.run(request)
    }
    #expect(double.seen.violations.map(\.name) == ["noPost", "noEndpoint"])
  }

  @Test("sound that is on its way when the double hears its end is no mistake")
  func crossing() async throws {
    let double = try await TuyaDouble.listen(.numbered)
    defer { double.stop() }
    let client = try CloudClient(double)
    try await client.connect()
    try await client.open()
    try await client.send(.start, "event-1", chat: ["asr.enableVad": true])
    try await client.send(.audio, 1, .start, [], Sound.pcm)
    for frame in Sound.utterance + Sound.utterance { try await client.send(.audio, 1, .streaming, frame) }
    try await client.send(.audio, 1, .end, [])
    try await client.send(.end, "event-1")
    try await wait("the end") { client.has(.end) || client.isOver }
    #expect(client.violations == [] && client.events.count { $0.known == .serverVAD } == 1)
    client.cancel()
  }

  @Test(
    "Opus of a constant size is heard, and its silence is silence; in v1 the size need not be said",
    arguments: [(.v21(level: 2), true), (.v1(security: 4), true), (.v1(security: 4), false)]
      as [(CloudDialect, Bool)])
  func opus(_ dialect: CloudDialect, _ saysSize: Bool) async throws {
    var scenario = TuyaScenario.numbered
    scenario.isPlain = dialect.isV1
    let double = try await TuyaDouble.listen(scenario)
    defer { double.stop() }
    let client = try CloudClient(double, dialect)
    try await client.connect()
    try await client.open()
    try await client.send(.start, "event-1", chat: ["asr.enableVad": true])
    var format = StreamParameters.AudioParameters(codec: 111, rate: 16_000)
    if saysSize { (format.bitRate, format.frame, format.frameBytes) = (16_000, 40, 80) }
    try await client.send(.audio, 1, .start, [], .audio(format))
    // Code 0, 40 ms: with sound, and with padding.
    let loud = [UInt8(2 << 3)] + [UInt8](repeating: 0x55, count: 79)
    let quiet =
      [UInt8(2 << 3 | 3), 0x41, 70] + [UInt8](repeating: 0x55, count: 7) + [UInt8](repeating: 0, count: 70)
    for frame in Array(repeating: loud, count: 10) + Array(repeating: quiet, count: 20) {
      try await client.send(.audio, 1, .streaming, frame + frame)
    }
    try await wait("ServerVAD") { client.has(.serverVAD) || client.isOver }
    #expect(client.violations == [])
    client.cancel()
  }
}
