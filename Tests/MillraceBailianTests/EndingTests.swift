import MillraceBailian
import MillraceBailianDouble
import MillraceConformance
import MillraceCore
import MillraceDoubles
import Testing

/// Replies at the end of a dialogue: nothing that has arrived is lost, unless it is cut off.
@Suite("end of bailian.dialog", .serialized, .timeLimit(.minutes(30))) struct EndingTests {
  /// Replies of 100 ms per word, sent at once. Fifty words exceed what link, queue and connection hold; twenty exceed the link.
  private func scenario(words: Int = 50, _ change: (inout BailianScenario) -> Void) -> BailianScenario {
    var scenario = BailianScenario()
    scenario.isNumbered = true
    scenario.speed = 1_000
    scenario.turns[0].says = Array(repeating: "word", count: words).joined(separator: " ")
    scenario.turns[0].thinks = 10
    change(&scenario)
    return scenario
  }

  @Test(
    "an unread reply is delivered completely when the service ends the dialogue, and then the node ends",
    arguments: [ServiceFault.Place.answered, .midway], [20, 50])
  func serviceEnds(place: ServiceFault.Place, words: Int) async throws {
    let talk = try await Talk(
      scenario(words: words) { $0.turns[0].fault = ServiceFault(.kick, at: place) })
    talk.playsReplies = false
    talk.bench.hold("audio")
    talk.speak()
    #expect(try talk.wait { talk.states().last == "closed" })
    // At most one packet was read: the node has not ended.
    #expect(try talk.wait { true })
    #expect(!talk.bench.hasEnded)
    talk.bench.release("audio")
    #expect(try talk.wait { talk.bench.hasEnded })
    let seen = talk.double.seen
    #expect(talk.packets.flatMap(\.bytes) == whole(seen.soundSent) && seen.soundSent.count >= words * 2_000)
    #expect(talk.packets.count { $0.flags.contains(.endOfUtterance) } == 1)
    #expect(talk.packets.last?.flags.contains(.endOfUtterance) == true)
    #expect(talk.events.filter { $0.name == "replyEnded" }.map { $0.number("utterances") } == [1])
    #expect(!talk.has("interrupted") && !talk.has("error"))
    talk.double.stop()
  }

  /// Without half a sample, which remains when a message is split and its rest never arrives.
  private func whole(_ bytes: [UInt8]) -> [UInt8] { Array(bytes.prefix(bytes.count & ~1)) }

  @Test("when the graph drains, what has arrived of a reply is delivered, and the session is closed")
  func drains() async throws {
    let talk = try await Talk(
      scenario { $0.turns[0].fault = ServiceFault(.hold, at: .midway) })
    talk.playsReplies = false
    talk.speak()
    // What is still on its way when the graph drains would be lost: wait for all of it.
    #expect(
      try talk.wait {
        let seen = talk.double.seen
        return seen.lines.contains("# hold")
          && talk.packets.reduce(0) { $0 + $1.bytes.count } >= whole(seen.soundSent).count
      })
    try talk.end()
    #expect(talk.bench.hasEnded)
    #expect(talk.packets.flatMap(\.bytes) == whole(talk.double.seen.soundSent))
    #expect(talk.packets.last?.flags.contains(.endOfUtterance) == true)
    #expect(talk.double.seen.lines.contains("> Stop") && talk.double.seen.violations == [])
    #expect(!talk.has("interrupted"))
  }

  @Test("with afterEnd wait the node outlives its dialogue, begins another, and answers each command once")
  func beginsAgain() async throws {
    let talk = try await Talk(
      scenario(words: 2) { $0.turns.append($0.turns[0]) }, ["afterEnd": "wait"])
    #expect(try talk.wait { talk.states().last == "listening" })
    talk.command(#"{"command":"begin","id":"early"}"#)
    talk.command(#"{"command":"hangUp","id":"1"}"#)
    #expect(try talk.wait { talk.states().last == "closed" })
    talk.command(#"{"command":"ask","text":"who?","id":"2"}"#)
    talk.command(#"{"command":"begin","id":"3"}"#)
    #expect(try talk.wait { talk.states().last == "listening" })
    #expect(!talk.bench.hasEnded)
    talk.command(#"{"command":"ask","text":"who?","id":"4"}"#)
    #expect(try talk.wait { talk.has("replyEnded") })
    // Sent before the dialogue has ended.
    talk.command(#"{"command":"hangUp","id":"5"}"#)
    talk.command(#"{"command":"begin","id":"6"}"#)
    #expect(
      try talk.wait {
        talk.states().last == "listening" && talk.states().count { $0 == "connecting" } == 3
      })
    let answers = try talk.events.filter { $0.name == "answer" }.map {
      "\(try #require($0.string("id"))) \(try #require($0.bool("ok") as Bool?))"
    }
    #expect(answers == ["early false", "1 true", "2 false", "3 true", "4 true", "5 true", "6 true"])
    #expect(talk.states().count { $0 == "closed" } == 2)
    try talk.end()
    #expect(talk.bench.hasEnded)
    #expect(talk.double.seen.violations == [] && talk.double.seen.starts.count == 3)
  }

  @Test("hangUp cuts the reply off: nothing more of it is delivered, and the interruption is reported")
  func hangsUp() async throws {
    let talk = try await Talk(scenario { _ in })
    talk.playsReplies = false
    talk.bench.hold("audio")
    talk.speak()
    #expect(try talk.wait { talk.has("replyEnded") })
    talk.command(#"{"command":"hangUp"}"#)
    #expect(try talk.wait { talk.bench.hasEnded })
    talk.bench.release("audio")
    #expect(try talk.wait { talk.states().last == "closed" })
    // What was in the link, and nothing of what waited for room.
    #expect(talk.packets.reduce(0) { $0 + $1.bytes.count } < talk.double.seen.soundSent.count / 2)
    #expect(!talk.packets.contains { $0.flags.contains(.endOfUtterance) })
    #expect(talk.events.filter { $0.name == "interrupted" }.map { $0.string("by") } == ["local"])
    #expect(talk.double.seen.lines.contains("> Stop") && talk.double.seen.violations == [])
    talk.double.stop()
  }
}
