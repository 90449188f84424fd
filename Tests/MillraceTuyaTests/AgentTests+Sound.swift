import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceTesting
import MillraceTuya
import MillraceTuyaDouble
import Testing

/// Formats of sound, pictures and files, and the dialect v1.
extension AgentTests {
  @Test("replies are emitted as they were sent, in every format", arguments: ["mp3", "pcm", "opus"])
  func replies(format: String) async throws {
    let agent = try await Agent(Agent.scenario(), ["reply": .string(format)])
    agent.speak()
    #expect(try agent.wait { agent.turns == 2 })
    try agent.end()
    #expect(agent.heard == agent.double.seen.soundSent && !agent.heard.isEmpty)
    #expect(agent.packets.last?.flags.contains(.endOfUtterance) == true)
    if format == "opus" {
      // Each packet is one frame of Opus, and not what one packet of the wire holds.
      let sizes = Set(agent.packets.dropLast().map(\.bytes.count))
      #expect(sizes.count == 1 && sizes.allSatisfy { (1...1_275).contains($0) }, "\(sizes)")
    }
  }

  @Test(
    "Opus of a constant bit rate is sent in the vendor's packets",
    arguments: [(16, 40, 1), (16, 60, 2), (48, 40, 5)])
  func opusUp(bitRate: Int, frame: Int, frames: Int) async throws {
    let duration = Nanoseconds.milliseconds(Int64(frame))
    let agent = try await Agent(
      Agent.scenario(),
      [
        "mode": "pushToTalk", "bitrate": .integer(bitRate), "frame": .integer(frame),
        "frames": .integer(frames),
      ],
      inputs: [
        "audio": OutputShape(.opus(rate: 16_000, channels: 1), packetDuration: duration, packetBytes: 1_275),
        "control": Agent.reports,
      ])
    #expect(try agent.wait { agent.isListening })
    agent.command(#"{"command":"startSpeech"}"#)
    let size = bitRate * frame / 8
    let before = agent.double.seen.bytesHeard
    for _ in 0..<20 {
      // SILK, wide band, 40 or 60 ms in one frame: RFC 6716, table 2.
      let bytes = [frame == 40 ? 0x50 : 0x58] + [UInt8](repeating: 7, count: size - 1)
      agent.bench.push(bytes: bytes, to: "audio", duration: 16 * frame)
    }
    #expect(try agent.wait { agent.double.seen.bytesHeard >= before + size * (20 / frames * frames) })
    agent.command(#"{"command":"stopSpeech"}"#)
    #expect(try agent.wait { agent.turns == 2 })
    #expect(agent.double.seen.bytesHeard == before + size * 20)
    try agent.end()
  }

  @Test("in v1 Opus is sent without the size of its frames, like the vendor's clients do, and is heard")
  func opusUpV1() async throws {
    let agent = try await Agent(
      Agent.scenario { $0.own.isPlain = true },
      [
        "dialect": "v1", "user": "user-of-the-double", "password": "password-of-the-double",
        "mode": "pushToTalk", "bitrate": 16, "frame": 40, "frames": 5,
      ],
      inputs: [
        "audio": OutputShape(
          .opus(rate: 16_000, channels: 1), packetDuration: .milliseconds(40), packetBytes: 1_275),
        "control": Agent.reports,
      ])
    #expect(try agent.wait { agent.isListening })
    agent.command(#"{"command":"startSpeech"}"#)
    for _ in 0..<20 {
      // SILK, wide band, 40 ms in one frame: RFC 6716, table 2.
      agent.bench.push(bytes: [0x50] + [UInt8](repeating: 7, count: 79), to: "audio", duration: 640)
    }
    #expect(try agent.wait { agent.double.seen.bytesHeard == 20 * 80 })
    agent.command(#"{"command":"stopSpeech"}"#)
    #expect(try agent.wait { agent.turns == 2 })
    #expect(agent.double.seen.violations == [])
    try agent.end()
  }

  @Test("a stream in another format than the output's is discarded with an error, and the text is there")
  func otherFormat() async throws {
    // The session asks for PCM, whatever the output is.
    let agent = try await Agent(
      Agent.scenario(),
      ["reply": "mp3", "sessionAttributes": #"{"tts.order.supports":[{"format":"pcm","sampleRate":16000}]}"#])
    #expect(try agent.wait { agent.isListening })
    agent.ask("what time is it")
    #expect(try agent.wait { agent.texts.last == "It is nine." })
    #expect(
      try agent.wait { agent.errors.contains { $0.string("text")?.contains("\"reply\" is mp3") == true } })
    #expect(agent.heard.isEmpty)
    agent.command(#"{"command":"hangUp"}"#)
    #expect(try agent.wait { agent.bench.hasEnded })
    agent.double.stop()
  }

  @Test(
    "the dialect v1 holds the same dialogue, with each of its ciphers", arguments: ["sl4", "sl3", "sl2"])
  func v1(security: String) async throws {
    let agent = try await Agent(
      Agent.scenario { $0.own.isPlain = true },
      [
        "dialect": "v1", "security": .string(security), "user": "user-of-the-double",
        "password": "password-of-the-double",
      ])
    #expect(agent.double.address.hasPrefix("tcp://"))
    agent.speak()
    #expect(try agent.wait { agent.turns == 2 })
    #expect(agent.texts == ["It is nine."])
    try agent.end()
    #expect(agent.heard == agent.double.seen.soundSent && !agent.heard.isEmpty)
  }

  @Test("frames may be signed less, or not at all", arguments: [0, 1, 2])
  func signed(level: Int) async throws {
    let agent = try await Agent(Agent.scenario(), ["signLevel": .integer(level)])
    #expect(try agent.wait { agent.isListening })
    agent.ask("what time is it")
    #expect(try agent.wait { agent.turns == 2 })
    try agent.end()
  }

  @Test("bytes may come one by one, or all at once", arguments: [TuyaDelivery.dribble, .coalesce])
  func delivery(kind: TuyaDelivery) async throws {
    let agent = try await Agent(Agent.scenario { $0.own.delivery = kind })
    #expect(try agent.wait { agent.isListening })
    agent.ask("what time is it")
    #expect(try agent.wait { agent.turns == 2 })
    try agent.end()
    #expect(agent.heard == agent.double.seen.soundSent && !agent.heard.isEmpty)
  }

  // MARK: Pictures and files

  /// Bytes that begin and end as a JPEG does.
  private static func picture(_ count: Int) -> [UInt8] {
    [0xFF, 0xD8, 0xFF, 0xE0] + [UInt8](repeating: 0x55, count: count - 6) + [0xFF, 0xD9]
  }

  private static let seeing = ["audio": Agent.sound, "control": Agent.reports, "image": Agent.pictures]

  @Test(
    "the latest picture goes with the next question, whole or in parts, and is spoken about",
    arguments: [0, 2_048])
  func pictureUp(parts: Int) async throws {
    let agent = try await Agent(
      Agent.scenario(), ["pictureParts": .integer(parts), "speech": "single"], inputs: Self.seeing)
    #expect(try agent.wait { agent.isListening })
    agent.bench.push(bytes: Self.picture(20_000), to: "image")
    agent.bench.push(bytes: Self.picture(60_000), to: "image")
    #expect(try agent.wait { true })
    agent.ask("what is this?")
    #expect(try agent.wait { agent.turns == 2 })
    #expect(agent.double.seen.pictures == 1 && agent.double.seen.largestPicture == 60_000, "\(agent.words)")
    // It goes with one question.
    agent.ask("and what was that?", id: "second")
    #expect(try agent.wait { agent.turns == 3 })
    #expect(agent.double.seen.pictures == 1)
    try agent.end()
  }

  @Test("in a live call pictures are sent as a video, as they come")
  func video() async throws {
    let agent = try await Agent(
      Agent.scenario(), ["pictures": "video", "speech": "long"], inputs: Self.seeing)
    #expect(try agent.wait { agent.isListening })
    for index in 1...3 {
      agent.bench.push(bytes: Self.picture(5_000 + index), to: "image")
      #expect(try agent.wait { agent.double.seen.pictures >= index })
    }
    try agent.end()
  }

  @Test("what is no JPEG is refused, with the reason")
  func noPicture() async throws {
    let agent = try await Agent(Agent.scenario(), inputs: Self.seeing)
    #expect(try agent.wait { agent.isListening })
    agent.bench.push(bytes: [1, 2, 3, 4], to: "image")
    #expect(try agent.wait { agent.errors.contains { $0.string("text")?.contains("not a JPEG") == true } })
    try agent.end()
  }

  @Test("pictures and files of a reply are emitted; files lie below the cache")
  func mediaDown() async throws {
    let scratch = AgentScratch()
    let agent = try await Agent(
      Agent.scenario {
        $0.turns[0].own.pictures = 2
        $0.turns[0].own.files = 1
      }, ["cache": .string(scratch.path), "receives": .list(["audio", "text", "image", "file"])])
    #expect(try agent.wait { agent.isListening })
    agent.ask("show me")
    #expect(try agent.wait { agent.turns == 2 })
    #expect(try agent.wait { agent.images.count == 2 && agent.files.count == 1 })
    #expect(agent.images.allSatisfy { $0.starts(with: [0xFF, 0xD8]) })
    #expect(agent.files.allSatisfy { $0.hasPrefix(scratch.path) && scratch.has($0) }, "\(agent.files)")
    try agent.end()
  }

  @Test("a file is sent with progress, and one that is missing is 39009")
  func filesUp() async throws {
    let scratch = AgentScratch()
    let path = scratch.write([UInt8](repeating: 9, count: 100_000), to: "a.pdf")
    let agent = try await Agent(
      Agent.scenario(), ["mode": "pushToTalk", "sends": .list(["audio", "text", "image", "file"])],
      inputs: ["audio": Agent.sound, "control": Agent.reports, "file": Agent.lines])
    #expect(try agent.wait { agent.isListening })
    agent.bench.push(text: path, to: "file")
    #expect(try agent.wait { agent.has("progress") && agent.turns >= 2 })
    agent.extra("sendFile", #"{"path":"\#(scratch.path)/none"}"#, id: "none")
    #expect(try agent.wait { agent.answer("none") != nil })
    #expect(agent.answer("none")?.bool("ok") == false)
    #expect(agent.answer("none")?.number("code") == 39_009, "\(agent.words)")
    agent.command(#"{"command":"hangUp"}"#)
    #expect(try agent.wait { agent.bench.hasEnded })
    agent.double.stop()
  }
}
