import MillraceConformance
import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceTesting
import MillraceTuya
import MillraceTuyaDouble
import Testing

/// Several sessions over one connection.
extension AgentTests {
  private static func name() -> String { "test-\(UInt64.random(in: 0...(.max)))" }

  /// Agents that share a connection, each ready for the user.
  private func agents(
    _ count: Int, _ double: TuyaDouble, _ more: [String: ParameterValue] = [:]
  ) throws -> [Agent] {
    let name = Self.name()
    var agents: [Agent] = []
    for _ in 0..<count {
      var parameters: [String: ParameterValue?] = ["connection": .string(name)]
      for (name, value) in more { parameters[name] = value }
      let agent = try Agent(double, parameters)
      #expect(try agent.wait { agent.isListening })
      agents.append(agent)
    }
    return agents
  }

  @Test("three nodes share one connection, and each has its own answers")
  func shared() async throws {
    let double = try await TuyaDouble.listen(Agent.scenario())
    let agents = try agents(3, double)
    #expect(double.seen.connections == 1)
    for (index, agent) in agents.enumerated() {
      agent.ask("question \(index)")
      #expect(try agent.wait { agent.texts == ["It is nine."] && agent.isListening })
    }
    #expect(Set(agents.flatMap { $0.named("conversationStarted").compactMap { $0.string("id") } }).count == 3)
    // The end of one leaves the others alone.
    try agents[0].end(stopsDouble: false)
    for agent in agents.dropFirst() {
      agent.ask("still there?", id: "second")
      #expect(try agent.wait { agent.texts.count == 2 && agent.isListening })
    }
    for agent in agents.dropFirst() { try agent.end(stopsDouble: false) }
    #expect(double.seen.connections == 1)
    double.stop()
  }

  @Test("one session that fails leaves the others alone")
  func oneFails() async throws {
    let double = try await TuyaDouble.listen(
      Agent.scenario {
        $0.turns[0].own.sessionClose = 404
        $0.turns.append(TuyaScenario.Turn())
        $0.turns[1].says = "Yes."
      })
    let agents = try agents(2, double)
    agents[0].ask("what time is it")
    #expect(throws: BenchFault.self) { _ = try agents[0].wait { agents[0].bench.hasEnded } }
    agents[1].ask("and you?")
    #expect(try agents[1].wait { !agents[1].texts.isEmpty && agents[1].isListening })
    #expect(double.seen.connections == 1)
    try agents[1].end()
  }

  @Test("sessions that hear one microphone send it once")
  func oneMicrophone() async throws {
    let double = try await TuyaDouble.listen(Agent.scenario())
    let agents = try agents(2, double, ["shares": true, "speech": "long"])
    for agent in agents { agent.speak() }
    for agent in agents {
      #expect(try agent.wait { agent.texts.last == "It is nine." && agent.isListening })
    }
    // Two seconds, once.
    #expect(double.seen.bytesHeard == 2 * 16_000 * 2)
    for agent in agents { try agent.end(stopsDouble: false) }
    double.stop()
  }

  @Test("a session that joins in the middle hears the microphone, too, and so does one after its question")
  func joins() async throws {
    let double = try await TuyaDouble.listen(Agent.scenario())
    let shared: [String: ParameterValue?] = [
      "connection": .string(Self.name()), "shares": true, "speech": "long",
    ]
    let first = try Agent(double, shared)
    #expect(try first.wait { first.isListening })
    first.hush(1)
    #expect(try first.wait { double.seen.bytesHeard > 0 })
    let second = try Agent(double, shared)
    #expect(try second.wait { second.isListening })
    for agent in [first, second] { agent.speak() }
    for agent in [first, second] { #expect(try agent.wait { agent.texts.count == 1 && agent.isListening }) }
    // The text goes over a shared channel, too.
    first.ask("and now?")
    for agent in [first, second] {
      #expect(try agent.wait { agent.texts.count == 2 && agent.isListening })
    }
    for agent in [first, second] { agent.speak() }
    for agent in [first, second] {
      #expect(try agent.wait { agent.texts.count == 3 && agent.isListening })
    }
    for agent in [first, second] { try agent.end(stopsDouble: false) }
    double.stop()
  }

  @Test("the session beyond the limit of a connection is refused with 607, and the others continue")
  func full() async throws {
    let double = try await TuyaDouble.listen(Agent.scenario { $0.own.sessions = 2 })
    let name = ParameterValue.string(Self.name())
    var agents: [Agent] = []
    for _ in 0..<2 {
      let agent = try Agent(double, ["connection": name])
      #expect(try agent.wait { agent.isListening })
      agents.append(agent)
    }
    let late = try Agent(double, ["connection": name])
    do {
      _ = try late.wait { late.bench.hasEnded }
      Issue.record("it did not fail")
    } catch {
      #expect("\(error)".contains("607") && "\(error)".contains("another \"connection\""), "\(error)")
    }
    for agent in agents {
      agent.ask("still there?")
      #expect(try agent.wait { agent.texts == ["It is nine."] && agent.isListening })
    }
    for agent in agents { try agent.end(stopsDouble: false) }
    double.stop()
  }

  @Test("a second node with the same session on one connection fails with the cure, and the first continues")
  func sameSession() async throws {
    let double = try await TuyaDouble.listen(Agent.scenario())
    let shared: [String: ParameterValue?] = ["connection": .string(Self.name()), "session": "my-session"]
    let first = try Agent(double, shared)
    #expect(try first.wait { first.isListening })
    let second = try Agent(double, shared)
    do {
      _ = try second.wait { second.bench.hasEnded }
      Issue.record("it did not fail")
    } catch { #expect("\(error)".contains("give each node another \"session\""), "\(error)") }
    first.ask("still there?")
    #expect(try first.wait { first.texts == ["It is nine."] && first.isListening })
    try first.end()
  }

  @Test("a lost connection is lost for all, and all come back over one")
  func lostForAll() async throws {
    let double = try await TuyaDouble.listen(
      Agent.scenario {
        $0.turns[0].fault = ServiceFault(.drop, at: .thinking)
        $0.turns.append(TuyaScenario.Turn())
        $0.turns[1].says = "Yes."
      })
    let agents = try agents(2, double)
    agents[0].ask("what time is it")
    for agent in agents {
      #expect(try agent.wait { agent.states.contains("reconnecting") && agent.isListening })
    }
    for agent in agents {
      agent.ask("and now?", id: "second")
      #expect(try agent.wait { agent.texts.last == "Yes." && agent.isListening })
    }
    #expect(double.seen.connections == 2)
    for agent in agents { try agent.end(stopsDouble: false) }
    double.stop()
  }

  @Test("a node with other settings does not get a share")
  func otherSettings() async throws {
    let double = try await TuyaDouble.listen(Agent.scenario())
    let name = ParameterValue.string(Self.name())
    let first = try Agent(double, ["connection": name])
    do {
      _ = try Agent(double, ["connection": name, "ping": 5_000])
      Issue.record("it was made")
    } catch { #expect("\(error)".contains("is in use with other settings"), "\(error)") }
    #expect(try first.wait { first.isListening })
    try first.end()
  }
}
