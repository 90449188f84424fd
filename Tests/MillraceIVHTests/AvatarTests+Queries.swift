import MillraceConformance
import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceIVH
import MillraceIVHDouble
import MillraceJSON
import Testing

extension AvatarTests {
  @Test(
    "the vendor's requests are answered with their payload, and what is not possible with the reason",
    arguments: IVHGeneration.allCases)
  func queries(generation: IVHGeneration) async throws {
    let avatar = try await Avatar(generation, scenario())
    defer { avatar.double.stop() }
    try #require(try avatar.wait { avatar.isListening }, "\(avatar.words)")
    let space = #""ImagePosition":0.1,"ImagePositionVertical":-0.1,"ImageZoom":0.5"#
    let isStream = generation == .stream
    let commands: [(String, String, Bool, String)] = [
      ("stat", #""command":"extra","name":"statSession""#, true, #""SessionStatus":1"#),
      ("list", #""command":"extra","name":"listSession""#, true, #""UserId":"tester""#),
      (
        "config", #""command":"extra","name":"queryConfig""#, isStream,
        isStream ? #""DriverTypes":[1,2,3]"# : "not part of"
      ),
      ("update", #""command":"update","values":{\#(space)}"#, true, ""),
      (
        "picture", #""command":"update","values":{\#(space),"BackgroundUrl":"https://h/missing.png"}"#, false,
        "110008"
      ),
      (
        "range",
        #""command":"update","values":{"ImagePosition":0.6,"ImagePositionVertical":0,"ImageZoom":1}"#, false,
        "ImagePosition"
      ),
      ("new", #""command":"extra","name":"newSession""#, false, "afterEnd"),
      ("other", #""command":"extra","name":"danceSession""#, false, "is not known"),
      ("room", #""command":"setRole","role":"viewer""#, false, "no room"),
    ]
    for (id, command, _, _) in commands { avatar.command(#"{\#(command),"id":"\#(id)"}"#) }
    try #require(
      try avatar.wait { commands.allSatisfy { !avatar.answers($0.0).isEmpty } }, "\(avatar.words)")
    for (id, _, isDone, text) in commands {
      let answer = try #require(avatar.named("answer").first { $0.string("id") == id })
      #expect(avatar.answers(id) == [isDone], "\(answer.json)")
      #expect(text.isEmpty || answer.json.contains(text), "\(answer.json)")
      #expect(!answer.json.contains("rtmp:"), "\(answer.json)")
    }
    try avatar.end()
    #expect(avatar.double.seen.violations == [], "\(avatar.words)")
    #expect(avatar.bench.close() == [])
  }

  @Test("every message of the channel is passed on as it came, if that is asked for")
  func raw() async throws {
    let avatar = try await Avatar(.stream, scenario(), ["raw": true])
    defer { avatar.double.stop() }
    avatar.say("words")
    try #require(try avatar.wait { avatar.has("replyEnded") }, "\(avatar.words)")
    let types = avatar.named("extra").filter { $0.string("name") == "commandChannel" }.map(\.json)
    for type in 1...3 { #expect(types.contains { $0.contains(#""Type":\#(type)"#) }, "\(types)") }
    try avatar.end()
    #expect(avatar.bench.close() == [])
  }

  @Test("a sentence closes its gates, and they open with its end", arguments: IVHGeneration.allCases)
  func gates(generation: IVHGeneration) async throws {
    let avatar = try await Avatar(
      generation,
      scenario { scenario in
        scenario.turns[0].isMuted = true
        scenario.turns[0].isUninterruptible = true
      })
    defer { avatar.double.stop() }
    avatar.say("words")
    try #require(try avatar.wait { avatar.has("replyEnded") && avatar.isListening }, "\(avatar.words)")
    for gate in ["muted", "uninterruptible"] {
      let events = avatar.named("gate").filter { $0.string("gate") == gate }
      #expect(events.compactMap { $0.bool("on") } == [true, false], "\(avatar.words)")
    }
    try avatar.end()
    #expect(avatar.double.seen.violations == [], "\(avatar.words)")
    #expect(avatar.bench.close() == [])
  }

  @Test(
    "requests that fail are made again where that helps, and otherwise end the node with the reason",
    arguments: [
      ("createsession", 100_000, true), ("statsession", 110_004, true), ("startsession", -101_000, true),
      ("createsession", 100_008, false), ("startsession", 110_007, false),
    ])
  func failing(operation: String, code: Int, isRepeated: Bool) async throws {
    var failure = IVHMembers.Failure()
    failure.operation = operation
    failure.code = code
    let avatar = try await Avatar(
      .session,
      scenario { scenario in
        scenario.preparing = 200
        scenario.failing = [failure]
      }, ["giveUp": 600_000])
    defer { avatar.double.stop() }
    if isRepeated {
      avatar.say("words")
      try #require(try avatar.wait { avatar.has("replyEnded") && avatar.isListening }, "\(avatar.words)")
      try avatar.end()
    } else {
      #expect(throws: (any Error).self) { _ = try avatar.wait { false } }
      #expect(avatar.errors.count == 1, "\(avatar.words)")
      #expect(avatar.named("error").first?.number("code") == Double(code), "\(avatar.words)")
    }
    #expect(avatar.double.seen.violations == [], "\(avatar.words)")
    _ = avatar.bench.close()
  }
}
