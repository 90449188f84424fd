import MillraceConformance
import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceTesting
import MillraceTuya
import MillraceTuyaDouble
import TestNet
import Testing

/// Losses, refusals, tokens, and what is wrong on the wire.
extension AgentTests {
  /// Waits for a node to fail, and returns the message.
  private func failure(of agent: Agent) -> String {
    do {
      _ = try agent.wait { agent.bench.hasEnded }
      return "it did not fail: \(agent.words)"
    } catch { return "\(error)" }
  }

  @Test(
    "refusals that will not change fail the node with code and detail, and nothing secret",
    arguments: [(400, "request"), (404, "request"), (401, "auth")])
  func refused(status: Int, category: String) async throws {
    let agent = try await Agent(Agent.scenario { $0.own.answers = [status, status, status] })
    let message = failure(of: agent)
    #expect(
      message.contains("39012") && message.contains("\(status)") && message.contains(category), "\(message)")
    for secret in [agent.double.localKey, agent.double.agentToken] { #expect(!message.contains(secret)) }
    #expect(agent.double.seen.connections == 1, "a token of the parameters has no successor")
    agent.double.stop()
  }

  @Test(
    "refusals that may pass are tried again, and then the dialogue is there",
    arguments: [408, 500, 504, 603, 604])
  func retried(status: Int) async throws {
    let agent = try await Agent(
      Agent.scenario {
        $0.own.answers = [status]
        $0.own.closes = [status]
      })
    #expect(try agent.wait { agent.isListening })
    #expect(agent.double.seen.connections >= 2)
    #expect(agent.errors.contains { $0.number("code") == 39_012 && $0.string("detail") == "\(status)" })
    agent.ask("what time is it")
    #expect(try agent.wait { agent.texts.last == "It is nine." })
    try agent.end()
  }

  @Test("where the same identity connects elsewhere the node ends, and does not come back")
  func replaced() async throws {
    let agent = try await Agent(Agent.scenario { $0.turns[0].own.close = 602 })
    #expect(try agent.wait { agent.isListening })
    agent.ask("hello")
    #expect(try agent.wait { agent.bench.hasEnded })
    #expect(agent.named("kicked").last?.string("reason") == "replaced", "\(agent.words)")
    #expect(agent.double.seen.connections == 1)
    agent.double.stop()
  }

  @Test("a certificate of another authority, or of another host, is not trusted")
  func certificates() async throws {
    let double = try await TuyaDouble.listen(Agent.scenario())
    let distrustful = try Agent(double, ["roots": .string(Certificates.other.certificate)])
    let message = failure(of: distrustful)
    #expect(message.contains("certificate") && message.contains("set \"roots\""), "\(message)")
    #expect(double.seen.starts.isEmpty)
    double.stop()
    var options = DoubleOptions()
    options.identity = Certificates.other
    let other = try await TuyaDouble.listen(Agent.scenario(), options)
    let careful = try Agent(other, ["roots": .string(Certificates.authority)])
    let refusal = failure(of: careful)
    #expect(refusal.contains("host name mismatch"), "\(refusal)")
    #expect(other.seen.starts.isEmpty)
    other.stop()
  }

  @Test("a wrong local key fails the node at once, and names the key")
  func wrongKey() async throws {
    let double = try await TuyaDouble.listen(Agent.scenario())
    let message = failure(of: try Agent(double, ["localKey": "another-key-0123"]))
    #expect(message.contains("\"localKey\"") && message.contains("auth"), "\(message)")
    #expect(!message.contains("another-key"))
    #expect(double.seen.connections == 1)
    double.stop()
  }

  @Test("a provider without a local key is a failure that names the parameter")
  func noLocalKey() async throws {
    let double = try await TuyaDouble.listen(Agent.scenario())
    let agent = try Agent(double, ["token": nil, "localKey": nil, "provider": .string(double.provider)])
    let message = failure(of: agent)
    #expect(message.contains("set \"localKey\""), "\(message)")
    double.stop()
  }

  @Test(
    "what is broken on the wire closes the connection with 39001, and the dialogue continues over another",
    arguments: [
      TuyaWireFault.corrupt, .signature, .sequence, .fragment, .orphan, .version,
    ])
  func broken(fault: TuyaWireFault) async throws {
    let agent = try await Agent(
      Agent.scenario {
        $0.turns[0].own.wire = fault
        $0.turns.append(TuyaScenario.Turn())
        $0.turns[1].says = "Yes."
      }, ["ping": 1_000])
    #expect(try agent.wait { agent.isListening })
    agent.ask("what time is it")
    // A packet without an end is noticed when another comes, at the latest the answer to a ping.
    #expect(try agent.wait { agent.errors.contains { $0.number("code") == 39_001 } })
    #expect(try agent.wait { agent.double.seen.connections == 2 && agent.isListening })
    agent.ask("and now?", id: "second")
    #expect(try agent.wait { agent.texts.last == "Yes." })
    try agent.end()
  }

  @Test("a lost connection is opened again, with a new session; nothing that was sent is sent again")
  func lost() async throws {
    let agent = try await Agent(
      Agent.scenario {
        $0.turns[0].fault = ServiceFault(.drop, at: .midway)
        $0.turns.append(TuyaScenario.Turn())
        $0.turns[1].says = "Yes."
      })
    #expect(try agent.wait { agent.isListening })
    agent.ask("what time is it")
    #expect(try agent.wait { agent.states.contains("reconnecting") && agent.isListening })
    #expect(agent.named("interrupted").last?.string("by") == "service", "\(agent.words)")
    let sessions = Set(agent.named("conversationStarted").compactMap { $0.string("id") })
    #expect(sessions.count == 2)
    agent.ask("still there?", id: "second")
    #expect(try agent.wait { agent.texts.last == "Yes." })
    try agent.end()
  }

  // MARK: Tokens

  @Test("a provider gives out everything but the local key, in the cloud's shape")
  func provider() async throws {
    let double = try await TuyaDouble.listen(Agent.scenario())
    let agent = try Agent(
      double, ["token": nil, "url": nil, "client": nil, "provider": .string(double.provider), "agent": "a1"])
    #expect(try agent.wait { agent.isListening })
    agent.ask("what time is it")
    #expect(try agent.wait { agent.turns == 2 })
    #expect(!agent.words.contains(double.localKey))
    try agent.end()
  }

  @Test(
    "a token that has expired in the middle of a dialogue is followed by another, over the same connection")
  func expired() async throws {
    let double = try await TuyaDouble.listen(
      Agent.scenario {
        $0.turns[0].own.sessionState = 1_001
        $0.turns.append(TuyaScenario.Turn())
        $0.turns[1].says = "Yes."
      })
    let agent = try Agent(double, ["token": nil, "provider": .string(double.provider)])
    #expect(try agent.wait { agent.isListening })
    agent.ask("what time is it")
    #expect(try agent.wait { agent.has("authExpired") && agent.isListening })
    agent.ask("and now?", id: "second")
    #expect(try agent.wait { agent.texts.last == "Yes." })
    #expect(double.seen.connections == 1, "\(agent.words)")
    try agent.end()
  }

  @Test(
    "tokens that have expired one after the other are not used again, and the dialogue is there with a good one"
  )
  func expiredAgain() async throws {
    let double = try await TuyaDouble.listen(Agent.scenario { $0.own.tokens = [.expired, .expired, .good] })
    let agent = try Agent(double, ["token": nil, "provider": .string(double.provider)])
    #expect(try agent.wait { agent.isListening && agent.named("conversationStarted").count == 3 })
    agent.ask("what time is it")
    #expect(try agent.wait { agent.texts.last == "It is nine." })
    #expect(agent.named("authExpired").count == 2, "\(agent.words)")
    #expect(double.seen.connections == 2, "the second token is replaced over another connection")
    try agent.end()
  }

  @Test("a token of another agent is replaced once; a second one fails the node")
  func foreign() async throws {
    let double = try await TuyaDouble.listen(Agent.scenario { $0.own.tokens = [.foreign, .good] })
    let agent = try Agent(double, ["token": nil, "provider": .string(double.provider)])
    #expect(try agent.wait { agent.isListening && agent.named("conversationStarted").count == 2 })
    agent.ask("what time is it")
    #expect(try agent.wait { agent.texts.last == "It is nine." })
    try agent.end()
    let never = try await TuyaDouble.listen(Agent.scenario { $0.own.tokens = [.foreign] })
    let message = failure(of: try Agent(never, ["token": nil, "provider": .string(never.provider)]))
    #expect(message.contains("401"), "\(message)")
    never.stop()
  }

  @Test("after a refusal of the token from the parameters, refreshAuth gives the next")
  func refreshed() async throws {
    let agent = try await Agent(
      Agent.scenario {
        $0.turns[0].own.sessionState = 1_001
        $0.turns.append(TuyaScenario.Turn())
        $0.turns[1].says = "Yes."
      }, ["renew": 600_000])
    #expect(try agent.wait { agent.isListening })
    agent.ask("what time is it")
    #expect(try agent.wait { agent.has("authExpired") && !agent.errors.isEmpty })
    agent.command(#"{"command":"refreshAuth","token":"\#(agent.double.agentToken)"}"#)
    #expect(try agent.wait { agent.isListening })
    agent.ask("and now?", id: "second")
    #expect(try agent.wait { agent.texts.last == "Yes." })
    try agent.end()
  }

  // MARK: The vendor's own commands

  @Test("the vendor's calls are commands, and each is answered")
  func commands() async throws {
    let agent = try await Agent(Agent.scenario(), ["mode": "pushToTalk"])
    #expect(try agent.wait { agent.isListening })
    agent.extra("queryAgentToken", id: "token")
    #expect(try agent.wait { agent.answer("token") != nil })
    #expect(agent.answer("token")?.bool("ok") == true)
    #expect(!agent.words.contains(agent.double.agentToken))
    agent.extra("sendEventStart", #"{"eventId":"my-event-1"}"#, id: "start")
    agent.extra("sendText", #"{"text":"what time is it"}"#, id: "text")
    agent.extra("sendEventPayloadsEnd", #"{"dataChannel":"text"}"#, id: "payloads")
    agent.extra("sendEventEnd", #"{"eventId":"my-event-1"}"#, id: "end")
    #expect(try agent.wait { agent.texts.last == "It is nine." })
    for id in ["start", "text", "payloads", "end"] {
      #expect(agent.answer(id)?.bool("ok") == true, "\(id): \(agent.words)")
    }
    #expect(try agent.wait { agent.isListening })
    for (name, payload, code) in [
      ("sendEventEnd", #"{"eventId":"my-event-1"}"#, 39_006.0),
      ("sendEventPayloadsEnd", "{}", 39_007),
      ("sendText", #"{"text":""}"#, 39_008),
      ("sendText", #"{"text":"a","channel":"smell"}"#, 39_007),
      ("sendText", #"{"text":"a","sessionId":"other"}"#, 39_005),
      ("sendEventStart", #"{"eventId":""}"#, 39_006),
    ] {
      let id = "\(name) \(payload.count)"
      agent.extra(name, payload, id: id)
      #expect(try agent.wait { agent.answer(id) != nil })
      #expect(agent.answer(id)?.number("code") == code, "\(name) \(payload): \(agent.words)")
    }
    agent.extra("createSession", #"{"sessionId":"another-session"}"#, id: "create")
    #expect(try agent.wait { agent.named("conversationStarted").count == 2 })
    #expect(agent.named("conversationStarted").last?.string("id") == "another-session")
    agent.extra("closeSession", #"{"code":200}"#, id: "close")
    #expect(try agent.wait { agent.bench.hasEnded })
    #expect(agent.answer("close")?.bool("ok") == true)
    #expect(agent.double.seen.violations == [])
    agent.double.stop()
  }

  @Test("tools of a file are listed for the agent, and a call is answered by the program")
  func tools() async throws {
    let scratch = AgentScratch()
    let path = scratch.write(
      #"{"tools":[{"name":"light","description":"a light","inputSchema":{"type":"object"}}]}"#.utf8,
      to: "tools.json")
    let agent = try await Agent(
      Agent.scenario {
        $0.turns[0].own.mcp = [
          ["jsonrpc": "2.0", "id": 1, "method": "tools/list"],
          [
            "jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": ["name": "light", "arguments": ["on": true]],
          ],
          ["jsonrpc": "2.0", "id": 3, "method": "resources/list"],
        ]
      }, ["tools": .string(path)])
    #expect(try agent.wait { agent.isListening })
    agent.ask("light, please")
    #expect(try agent.wait { agent.named("command").contains { $0.string("name") == "McpCmd" } })
    #expect(agent.named("command").count == 1)
    agent.extra("mcpResult", #"{"id":2,"text":"done"}"#, id: "result")
    #expect(try agent.wait { agent.answer("result")?.bool("ok") == true && agent.turns == 2 })
    try agent.end()
  }

  @Test("with afterEnd wait, begin creates another session")
  func again() async throws {
    let agent = try await Agent(Agent.scenario(), ["afterEnd": "wait"])
    for turn in 1...2 {
      #expect(try agent.wait { agent.isListening })
      agent.ask("what time is it", id: "\(turn)")
      #expect(try agent.wait { agent.texts.count == turn && agent.isListening })
      agent.command(#"{"command":"hangUp"}"#)
      #expect(try agent.wait { agent.states.last == "closed" })
      if turn == 1 { agent.command(#"{"command":"begin"}"#) }
    }
    #expect(Set(agent.named("conversationStarted").compactMap { $0.string("id") }).count == 2)
    try agent.end()
  }
}
