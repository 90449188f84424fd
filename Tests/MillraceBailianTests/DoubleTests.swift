import MillraceBailianDouble
import MillraceCore
import MillraceDoubles
import MillraceNet
import TestNet
import Testing

/// What the double finds wrong in a client, and what it must not.
@Suite("Bailian double", .timeLimit(.minutes(30))) struct DoubleTests {
  /// Replies of 100 ms per word, each sent at once.
  private func scenario(words: Int) -> BailianScenario {
    var scenario = BailianScenario()
    scenario.isNumbered = true
    scenario.speed = 1_000
    scenario.turns[0].says = Array(repeating: "word", count: words).joined(separator: " ")
    scenario.turns[0].thinks = 1
    scenario.checksPlayback = true
    // However long the machine suspends a client.
    scenario.silence = 100_000
    return scenario
  }

  /// Names of violations, once the double has handled everything that was sent: it answers in order.
  private func violations(_ double: BailianDouble, _ client: BailianClient) async throws -> [String] {
    let before = client.words.count { $0 == "HeartBeat" }
    client.say("HeartBeat")
    try await client.wait(for: "HeartBeat", times: before + 1)
    return double.seen.violations.map(\.name)
  }

  @Test(
    "a reply reported as played as soon as it has arrived is a violation, and so is an end without a beginning"
  )
  func heardTooSoon() async throws {
    // Longer than any machine needs to deliver a message.
    let double = try await BailianDouble.listen(scenario(words: 1_800))
    let client = try await BailianClient(double.port)
    try await client.wait(for: "Listening")
    client.ask()
    try await client.wait(for: "RespondingEnded")
    client.say("LocalRespondingStarted")
    client.say("LocalRespondingEnded")
    #expect(try await violations(double, client) == ["endedBeforePlayed"])
    client.ask()
    try await client.wait(for: "RespondingEnded", times: 2)
    client.say("LocalRespondingEnded")
    #expect(try await violations(double, client) == ["endedBeforePlayed", "endedBeforePlayed"])
    client.close()
    double.stop()
  }

  @Test(
    "the vendor's SDK, which sends the server's own host as its origin, is admitted; a foreign page is not"
  )
  func origins() async throws {
    let lines = Locked<[String]>([])
    let double = try await BailianDouble.listen(scenario(words: 1)) { line in
      lines.withLock { $0.append(line) }
    }
    for host in ["127.0.0.1", "localhost"] {
      let client = try await BailianClient(
        double.port,
        headers: [("Host", "\(host):\(double.port)"), ("Origin", "http://\(host):\(double.port)")])
      try await client.wait(for: "Listening")
      client.close()
    }
    let connections = double.seen.connections
    var request = WebSocketRequest(
      try WebAddress("ws://127.0.0.1:\(double.port)/api-ws/v1/inference"))
    request.headers = [("Authorization", "Bearer k"), ("Origin", "https://evil.example")]
    request.limits = .patient
    let end = await withCheckedContinuation { continuation in
      _ = WebSocket.open(request) { event in
        if case .closed(let end) = event { continuation.resume(returning: end) }
      }
    }
    #expect(end.problem?.status == 403 && double.seen.connections == connections)
    #expect(
      lines.withLock {
        $0.contains { $0.hasPrefix("- refused 1: ") && $0.hasSuffix(": https://evil.example") }
      })
    double.stop()
  }

  @Test("a client that sends no audio while the service listens is a violation, and its dialogue is ended")
  func silent() async throws {
    var scenario = scenario(words: 1)
    scenario.silence = 1
    let double = try await BailianDouble.listen(scenario)
    let client = try await BailianClient(double.port)
    try await client.wait(for: "closed")
    #expect(client.words.suffix(3) == ["Listening", "Error", "closed"], "\(client.words)")
    #expect(double.seen.violations.map(\.name) == ["silence"])
    double.stop()
  }

  @Test("reporting the beginning as late as the end is not a violation")
  func lateBeginning() async throws {
    let double = try await BailianDouble.listen(scenario(words: 3))
    let client = try await BailianClient(double.port)
    try await client.wait(for: "Listening")
    client.ask()
    try await client.wait(for: "sound")
    // It plays the reply in real time, and then sends both reports at once.
    try await Task.sleep(for: .milliseconds(300))
    try await client.wait(for: "RespondingEnded")
    client.say("LocalRespondingStarted")
    client.say("LocalRespondingEnded")
    #expect(try await violations(double, client) == [])
    #expect(double.seen.turns == 1)
    client.close()
    double.stop()
  }

  @Test("messages sent before the client could know of a barge-in are not violations, once")
  func crossing() async throws {
    let double = try await BailianDouble.listen(scenario(words: 600))
    let client = try await BailianClient(double.port)
    try await client.wait(for: "Listening")
    client.ask()
    try await client.wait(for: "RespondingEnded")
    // All of this is sent before an answer to the speech can arrive.
    client.speak(200, isLoud: true)
    client.say("RequestToSpeak")
    client.say("LocalRespondingStarted")
    try await client.wait(for: "Listening", times: 2)
    #expect(try await violations(double, client) == [])
    client.say("RequestToSpeak")
    #expect(try await violations(double, client) == ["speakWhileListening"])
    // The next turn, by speech: a question asked meanwhile is too late, and a beginning may still be that of the old reply.
    client.speak(700, isLoud: false)
    client.ask()
    try await client.wait(for: "Responding", times: 2)
    client.say("LocalRespondingStarted")
    #expect(try await violations(double, client) == ["speakWhileListening"])
    client.ask()
    client.say("LocalRespondingStarted")
    #expect(
      try await violations(double, client) == [
        "speakWhileListening", "respondOutOfTurn", "startedOutOfTurn",
      ])
    client.close()
    double.stop()
  }
}
