import MillraceConformance
import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceIVH
import MillraceIVHDouble
import MillraceJSON
import MillraceTesting
import Testing

@Suite("ivh.avatar", .serialized, .timeLimit(.minutes(30))) struct AvatarTests {
  func scenario(_ change: (inout IVHScenario) -> Void = { _ in }) -> IVHScenario {
    var scenario = IVHScenario()
    scenario.speed = 100
    scenario.turns[0].says = "It is nine."
    scenario.turns[0].thinks = 10
    change(&scenario)
    return scenario
  }

  @Test(
    "texts are spoken one after the other, over the channel and over HTTP, and the session is closed at the end",
    arguments: [IVHGeneration.stream, .session], ["channel", "http"])
  func texts(generation: IVHGeneration, way: String) async throws {
    let avatar = try await Avatar(generation, scenario(), ["textsBy": .string(way)])
    defer { avatar.double.stop() }
    // What is said before the session stands is kept.
    for number in 1...3 { avatar.say("text \(number)") }
    try #require(
      try avatar.wait { avatar.named("replyEnded").count == 3 && avatar.isListening }, "\(avatar.words)")
    try avatar.end()
    #expect(avatar.double.seen.violations == [], "\(avatar.words)")
    #expect(avatar.errors == [], "\(avatar.words)")
    // A text that waits follows the one before as soon as the service has finished that, whether it was heard or not.
    let expected = "connecting thinking responding thinking responding thinking responding closed"
    #expect(avatar.states.filter { $0 != "listening" }.joined(separator: " ") == expected)
    #expect(avatar.states.suffix(2) == ["listening", "closed"])
    #expect((1...3).allSatisfy { avatar.answers("text \($0)") == [true] }, "\(avatar.words)")
    #expect(avatar.texts == Array(repeating: "It is nine.", count: 3))
    #expect(avatar.streams.count == 2 && avatar.streams[0].hasPrefix("rtmp://127.0.0.1:1935/live/double-1-"))
    #expect(avatar.streams.last == "")
    #expect(avatar.double.seen.stops == 1 && avatar.double.seen.connections == 1)
    #expect(avatar.bench.close() == [])
  }

  @Test(
    "a bot's voice that came at once drives the avatar in packets on schedule, and its end ends the utterance",
    arguments: [IVHGeneration.stream, .session])
  func reply(generation: IVHGeneration) async throws {
    let avatar = try await Avatar(
      generation, scenario(), ["audioFrom": "reply", "driver": "originalVoice"])
    defer { avatar.double.stop() }
    let samples = (0..<48_000).map { Int16(truncatingIfNeeded: $0 * 7) }
    for reply in 1...2 {
      avatar.bench.setGeneration(UInt32(reply))
      avatar.bench.push(samples, to: "audio")
      avatar.bench.push(bytes: [], to: "audio", flags: .endOfUtterance)
      try #require(
        try avatar.wait { avatar.named("replyEnded").count == reply && avatar.isListening }, "\(avatar.words)"
      )
    }
    try avatar.end()
    let seen = avatar.double.seen
    #expect(seen.violations == [], "\(avatar.words)")
    #expect(avatar.errors == [], "\(avatar.words)")
    #expect(seen.bytesHeard == 2 * 96_000)
    #expect(seen.stops == 1)
    #expect(avatar.bench.close() == [])
  }

  @Test(
    "a microphone is sent as it comes, a text ends it, and the voice continues afterwards",
    arguments: [IVHGeneration.stream, .session])
  func microphone(generation: IVHGeneration) async throws {
    let avatar = try await Avatar(generation, scenario(), ["driver": "originalVoice"])
    defer { avatar.double.stop() }
    let start = avatar.bench.now
    var sent: Int64 = 0
    func speak(until condition: () -> Bool) throws -> Bool {
      try avatar.wait {
        while start + .milliseconds(sent) <= avatar.bench.now {
          avatar.bench.push(
            [Int16](repeating: 4_000, count: 320), to: "audio", timestamp: start + .milliseconds(sent))
          sent += 20
        }
        return condition()
      }
    }
    try #require(try speak { avatar.has("replyStarted") }, "\(avatar.words)")
    avatar.say("words")
    try #require(
      try speak { avatar.named("replyEnded").count >= 2 && avatar.answers("words") == [true] },
      "\(avatar.words)")
    let heard = avatar.double.seen.bytesHeard
    try #require(try speak { avatar.double.seen.bytesHeard > heard + 32_000 }, "\(avatar.words)")
    try avatar.end()
    #expect(avatar.double.seen.violations == [], "\(avatar.words)")
    #expect(avatar.errors == [], "\(avatar.words)")
    #expect(avatar.bench.close() == [])
  }

  @Test(
    "streamed text is spoken as one text, whatever its parts are", arguments: [false, true])
  func streamedText(inSentences: Bool) async throws {
    let avatar = try await Avatar(
      .session,
      scenario {
        $0.isNumbered = false
        $0.turns = [IVHScenario.Turn()]
      })
    defer { avatar.double.stop() }
    for (index, part) in ["It ", "is ", "nine."].enumerated() {
      avatar.command(
        #"{"command":"extra","name":"streamText","payload":{"text":"\#(part)","final":\#(index == 2),"IsSentence":\#(inSentences)},"id":"\#(index)"}"#
      )
      // As the vendor asks of a client that sends sentences.
      guard inSentences && index < 2 else { continue }
      try #require(
        try avatar.wait { avatar.words.components(separatedBy: "SentenceNext").count == index + 2 },
        "\(avatar.words)")
    }
    try #require(try avatar.wait { avatar.has("replyEnded") && avatar.isListening }, "\(avatar.words)")
    try avatar.end()
    #expect(avatar.double.seen.violations == [], "\(avatar.words)")
    #expect(
      avatar.double.seen.lines.filter { $0.hasPrefix("> part") } == ["> part 1", "> part 2", "> part 3"])
    #expect(avatar.named("replyStarted").count == 1 && avatar.double.seen.turns == 1, "\(avatar.words)")
    #expect(avatar.named("reply").count == 3, "\(avatar.words)")
    #expect(avatar.bench.close() == [])
  }

  @Test(
    "an interruption is on the wire at once, and the next text is spoken whole",
    arguments: [IVHGeneration.stream, .session])
  func interruption(generation: IVHGeneration) async throws {
    let avatar = try await Avatar(
      generation,
      scenario {
        $0.speed = 1; $0.turns[0].says = Array(repeating: "word", count: 100).joined(separator: " ")
      })
    defer { avatar.double.stop() }
    avatar.say("long")
    try #require(try avatar.wait { avatar.has("replyStarted") }, "\(avatar.words)")
    avatar.command(#"{"command":"interrupt","id":"stop"}"#)
    avatar.say("next")
    try #require(try avatar.wait { avatar.named("replyStarted").count == 2 }, "\(avatar.words)")
    #expect(avatar.named("interrupted").count == 1)
    avatar.command(#"{"command":"hangUp"}"#)
    try #require(try avatar.wait { avatar.states.last == "closed" }, "\(avatar.words)")
    try avatar.end()
    #expect(avatar.double.seen.violations == [], "\(avatar.words)")
    #expect(avatar.double.seen.stops == 1)
    #expect(avatar.bench.close() == [])
  }

  @Test(
    "a session that another of the same user replaces is kicked, and a session closed under the node is followed by a new one",
    arguments: [IVHGeneration.stream, .session], [KickReason.replaced, nil])
  func kicked(generation: IVHGeneration, reason: KickReason?) async throws {
    let avatar = try await Avatar(
      generation,
      scenario { scenario in
        scenario.turns[0].fault = ServiceFault(.kick, at: .midway)
        scenario.turns[0].fault?.reason = reason
        scenario.turns.append(scenario.turns[0])
        scenario.turns[1].fault = nil
      })
    defer { avatar.double.stop() }
    avatar.say("first")
    if reason == .replaced {
      try #require(try avatar.wait { avatar.bench.hasEnded }, "\(avatar.words)")
      #expect(avatar.named("kicked").compactMap { $0.string("reason") } == ["replaced"])
    } else {
      avatar.say("second")
      try #require(
        try avatar.wait { avatar.answers("second") == [true] && avatar.has("replyEnded") }, "\(avatar.words)")
      #expect(avatar.double.seen.connections == 2)
      // Nothing is repeated.
      #expect(avatar.double.seen.lines.count { $0 == "> text" } == 2, "\(avatar.words)")
    }
    try avatar.end()
    #expect(avatar.double.seen.violations == [], "\(avatar.words)")
    #expect(avatar.bench.close() == [])
  }

  @Test(
    "what is wrong with an account ends the node with the reason and the cure, and shows no key",
    arguments: [IVHGeneration.stream, .session])
  func accounts(generation: IVHGeneration) async throws {
    for (parameters, change, text) in [
      (
        ["token": "secret-and-wrong"], { _ in },
        "the signature is wrong; check \"key\" and \"token\", which the example graphs take from IVH_APPKEY"
      ),
      ([:], { $0.clock = 301 }, "the clock of this machine is 301 s behind the service's"),
    ] as [([String: ParameterValue], (inout IVHScenario) -> Void, String)] {
      let avatar = try await Avatar(generation, scenario(change), parameters)
      defer { avatar.double.stop() }
      #expect(throws: (any Error).self) { _ = try avatar.wait { false } }
      #expect(avatar.errors.contains { $0.contains(text) }, "\(avatar.words)")
      #expect(!avatar.words.contains("secret-and-wrong") && !avatar.words.contains("token-of-the-double"))
      _ = avatar.bench.close()
    }
  }

  @Test(
    "a channel that is refused is opened again, after the session was asked for",
    arguments: [403, 404, 409])
  func refusedChannel(status: Int) async throws {
    let avatar = try await Avatar(
      .session,
      scenario {
        var failure = IVHMembers.Failure()
        failure.operation = "commandchannel"
        failure.status = status
        $0.failing = [failure]
      })
    defer { avatar.double.stop() }
    try #require(try avatar.wait { avatar.isListening }, "\(avatar.words)")
    try avatar.end()
    #expect(avatar.double.seen.violations == [] && avatar.double.seen.connections == 1, "\(avatar.words)")
    #expect(avatar.errors.count == 1 && avatar.errors[0].contains("\(status)"), "\(avatar.words)")
    #expect(avatar.bench.close() == [])
  }

  @Test(
    "after an utterance that failed, or that was lost, the next one of the microphone is spoken",
    arguments: [ServiceFault.Kind.error, .drop])
  func failedUtterance(kind: ServiceFault.Kind) async throws {
    let avatar = try await Avatar(
      .session,
      scenario {
        $0.turns[0].fault = ServiceFault(kind, at: .thinking)
        $0.turns.append($0.turns[0])
        $0.turns[1].fault = nil
      }, ["driver": "originalVoice"])
    defer { avatar.double.stop() }
    let start = avatar.bench.now
    var sent: Int64 = 0
    let isSpoken = try avatar.wait {
      while start + .milliseconds(sent) <= avatar.bench.now {
        avatar.bench.push(
          [Int16](repeating: 4_000, count: 320), to: "audio", timestamp: start + .milliseconds(sent))
        sent += 20
      }
      return avatar.errors.count == 1 && avatar.has("replyStarted")
    }
    try #require(isSpoken, "\(avatar.words)")
    try avatar.end()
    #expect(avatar.double.seen.violations == [], "\(avatar.words)")
    #expect(avatar.bench.close() == [])
  }

  @Test("a text that comes in parts is emitted as a whole, and what the model considered is an event")
  func parts() async throws {
    let avatar = try await Avatar(
      .session,
      scenario {
        $0.turns[0].own.comesInParts = true
        $0.turns[0].own.reasons = "It is late."
      })
    defer { avatar.double.stop() }
    avatar.say("time")
    try #require(try avatar.wait { avatar.named("replyEnded").count == 1 }, "\(avatar.words)")
    try avatar.end()
    #expect(avatar.texts == ["It is nine."])
    #expect(avatar.named("reply").compactMap { $0.string("text") } == ["It ", "is ", "nine."])
    #expect(avatar.named("extra").contains { $0.string("name") == "reasoning" }, "\(avatar.words)")
    #expect(avatar.double.seen.violations == [], "\(avatar.words)")
  }

  @Test(
    "a forced interruption that the service refuses is answered no, and the sentence is spoken to its end")
  func refusedForce() async throws {
    let avatar = try await Avatar(
      .stream,
      scenario {
        $0.speed = 0.5
        $0.turns[0].own.isUninterruptible = true
        $0.turns[0].own.refusesForce = true
      })
    defer { avatar.double.stop() }
    avatar.say("time")
    try #require(try avatar.wait { avatar.has("replyStarted") }, "\(avatar.words)")
    avatar.command(#"{"command":"interrupt","id":"soft"}"#)
    avatar.command(#"{"command":"interrupt","force":true,"id":"hard"}"#)
    try #require(try avatar.wait { avatar.named("replyEnded").count == 1 }, "\(avatar.words)")
    #expect(avatar.answers("soft") == [false] && avatar.answers("hard") == [false], "\(avatar.words)")
    #expect(!avatar.has("interrupted"), "\(avatar.words)")
    try avatar.end()
  }

  @Test("what is heard while texts drive the avatar comes back as a transcript")
  func recognition() async throws {
    let avatar = try await Avatar(.stream, scenario { $0.turns[0].hears = "what time is it" })
    defer { avatar.double.stop() }
    try #require(try avatar.wait { avatar.isListening }, "\(avatar.words)")
    let start = avatar.bench.now
    var sent: Int64 = 0
    let isHeard = try avatar.wait {
      while start + .milliseconds(sent) <= avatar.bench.now {
        avatar.bench.push(
          [Int16](repeating: 4_000, count: 320), to: "audio", timestamp: start + .milliseconds(sent))
        sent += 20
      }
      return avatar.named("transcript").contains { $0.string("text") == "what ti" }
    }
    try #require(isHeard, "\(avatar.words)")
    try avatar.end()
    #expect(avatar.double.seen.violations == [], "\(avatar.words)")
  }

  @Test("a channel stays open by its heartbeat")
  func heartbeat() async throws {
    let avatar = try await Avatar(.session, scenario { $0.idle = 60_000 }, ["heartBeat": 100])
    defer { avatar.double.stop() }
    try #require(
      try avatar.wait { avatar.double.seen.lines.count { $0 == "> PING" } >= 3 }, "\(avatar.words)")
    try avatar.end()
    #expect(avatar.double.seen.violations == [], "\(avatar.words)")
  }
}
