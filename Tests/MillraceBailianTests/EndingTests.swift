import MillraceBailian
import MillraceBailianDouble
import MillraceCore
import Testing

/// What becomes of a reply when the dialogue is over before it was taken: nothing that came is lost, unless it is broken off.
@Suite("bailian.dialog ends", .serialized, .timeLimit(.minutes(30))) struct EndingTests {
  /// Replies of 100 ms a word, sent at once. Fifty are more than the link, the queue and what is on its way between them hold; twenty are more
  /// than the link does.
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
    "a reply that the graph has not taken when the service says good-bye comes out to its last byte, and then the node ends",
    arguments: [BailianScenario.Fault.Place.answered, .midway], [20, 50])
  func goodBye(place: BailianScenario.Fault.Place, words: Int) async throws {
    let talk = try await Talk(
      scenario(words: words) { $0.turns[0].fault = BailianScenario.Fault(.kick, at: place) })
    talk.isHeard = false
    talk.bench.hold("audio")
    talk.speak()
    #expect(try talk.wait { talk.states().last == "closed" })
    // Nobody has taken more than a packet: the node is still there.
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

  /// But for half a sample, where a frame is cut in two and the rest of it never comes.
  private func whole(_ bytes: [UInt8]) -> [UInt8] { Array(bytes.prefix(bytes.count & ~1)) }

  @Test("when the graph drains, what has come of a reply comes out, and the service is told good-bye")
  func drains() async throws {
    let talk = try await Talk(
      scenario { $0.turns[0].fault = BailianScenario.Fault(.hold, at: .midway) })
    talk.isHeard = false
    talk.speak()
    // What is still on its way from the service when the graph drains has not come: all of it is to have.
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

  @Test("who hangs up breaks the reply off: nothing more of it comes out, and that is told")
  func hangsUp() async throws {
    let talk = try await Talk(scenario { _ in })
    talk.isHeard = false
    talk.bench.hold("audio")
    talk.speak()
    #expect(try talk.wait { talk.has("replyEnded") })
    talk.command(#"{"command":"hangUp"}"#)
    #expect(try talk.wait { talk.bench.hasEnded })
    talk.bench.release("audio")
    #expect(try talk.wait { talk.states().last == "closed" })
    // What lay in the link, and none of what waited for room.
    #expect(talk.packets.reduce(0) { $0 + $1.bytes.count } < talk.double.seen.soundSent.count / 2)
    #expect(!talk.packets.contains { $0.flags.contains(.endOfUtterance) })
    #expect(talk.events.filter { $0.name == "interrupted" }.map { $0.string("by") } == ["local"])
    #expect(talk.double.seen.lines.contains("> Stop") && talk.double.seen.violations == [])
    talk.double.stop()
  }
}
