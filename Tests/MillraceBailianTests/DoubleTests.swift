import MillraceCore
import MillraceNet
import Testing

@testable import MillraceBailianDouble

/// What the double finds wrong in a client, and what it must not.
@Suite("The double of Bailian", .timeLimit(.minutes(30))) struct DoubleTests {
  /// Replies of 100 ms a word, all of one sent at once.
  private func scenario(words: Int) -> BailianScenario {
    var scenario = BailianScenario()
    scenario.isNumbered = true
    scenario.speed = 1_000
    scenario.turns[0].says = Array(repeating: "word", count: words).joined(separator: " ")
    scenario.turns[0].thinks = 1
    scenario.checksPlayback = true
    // However long the machine leaves a client aside.
    scenario.silence = 100_000
    return scenario
  }

  /// Names of violations, once the double has done with everything that was sent: it answers in order.
  private func violations(_ double: BailianDouble, _ client: HandClient) async throws -> [String] {
    let before = client.words.count { $0 == "HeartBeat" }
    client.say("HeartBeat")
    try await client.wait(for: "HeartBeat", times: before + 1)
    return double.seen.violations.map(\.name)
  }

  @Test("a reply that is told to be heard as soon as it has come is a violation, and one never told to begin")
  func heardTooSoon() async throws {
    // Longer than any machine takes to hand a message on.
    let double = try await BailianDouble.listen(scenario(words: 1_800))
    let client = try await HandClient(double.port)
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
    "the vendor's SDK, which names the server's own host as its origin, is let in; a page of another site is not"
  )
  func origins() async throws {
    let lines = Locked<[String]>([])
    let double = try await BailianDouble.listen(scenario(words: 1)) { line in
      lines.withLock { $0.append(line) }
    }
    for host in ["127.0.0.1", "localhost"] {
      let client = try await HandClient(
        double.port,
        headers: [("Host", "\(host):\(double.port)"), ("Origin", "http://\(host):\(double.port)")])
      try await client.wait(for: "Listening")
      client.close()
    }
    let visits = double.seen.visits
    var request = WebSocketRequest(
      try WebAddress("ws://127.0.0.1:\(double.port)/api-ws/v1/inference"))
    request.headers = [("Authorization", "Bearer k"), ("Origin", "https://evil.example")]
    let end = await withCheckedContinuation { continuation in
      _ = WebSocket.open(request) { event in
        if case .closed(let end) = event { continuation.resume(returning: end) }
      }
    }
    #expect(end.problem?.status == 403 && double.seen.visits == visits)
    #expect(
      lines.withLock {
        $0.contains { $0.hasPrefix("- refused 1: ") && $0.hasSuffix(": https://evil.example") }
      })
    double.stop()
  }

  @Test("a client that sends nothing while it is listened to is accused of it, and its dialogue is ended")
  func silent() async throws {
    var scenario = scenario(words: 1)
    scenario.silence = 1
    let double = try await BailianDouble.listen(scenario)
    let client = try await HandClient(double.port)
    try await client.wait(for: "closed")
    #expect(client.words.suffix(3) == ["Listening", "Error", "closed"], "\(client.words)")
    #expect(double.seen.violations.map(\.name) == ["silence"])
    double.stop()
  }

  @Test("a client whose word for the beginning comes as late as that for the end has done nothing wrong")
  func lateBeginning() async throws {
    let double = try await BailianDouble.listen(scenario(words: 3))
    let client = try await HandClient(double.port)
    try await client.wait(for: "Listening")
    client.ask()
    try await client.wait(for: "sound")
    // It plays for as long as the reply lasts, and what it has to say of it comes all at once.
    try await Task.sleep(for: .milliseconds(300))
    try await client.wait(for: "RespondingEnded")
    client.say("LocalRespondingStarted")
    client.say("LocalRespondingEnded")
    #expect(try await violations(double, client) == [])
    #expect(double.seen.turns == 1)
    client.close()
    double.stop()
  }

  @Test("what a client said before it can have known that a voice broke the reply off is no violation, once")
  func crossing() async throws {
    let double = try await BailianDouble.listen(scenario(words: 600))
    let client = try await HandClient(double.port)
    try await client.wait(for: "Listening")
    client.ask()
    try await client.wait(for: "RespondingEnded")
    // All of this is on its way before an answer to the voice can be.
    client.speak(200, isLoud: true)
    client.say("RequestToSpeak")
    client.say("LocalRespondingStarted")
    try await client.wait(for: "Listening", times: 2)
    #expect(try await violations(double, client) == [])
    client.say("RequestToSpeak")
    #expect(try await violations(double, client) == ["speakWhileListening"])
    // The next turn, by voice: a question that was asked meanwhile comes too late, and a beginning may still be the old reply's.
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

  @Test("the first thousand violations are kept, and all are counted")
  func many() async throws {
    let double = try await BailianDouble.listen(scenario(words: 1))
    for index in 0..<1_234 { double.violate("wrong", "\(index)") }
    let seen = double.seen
    #expect(seen.violationCount == 1_234 && seen.violations.count == 1_000)
    #expect(seen.violations.last?.text == "999")
    double.stop()
  }

  @Test(
    "what was spoken is kept up to a number of bytes, the oldest let go of first; tasks up to a number of them"
  )
  func bounds() {
    var voices = Voices()
    let reply = SpokenReply(pieces: [[UInt8](repeating: 0, count: 1 << 20)], milliseconds: 1)
    for index in 0..<100 { voices.keep(reply, "\(index)") }
    #expect(voices.bytes == Voices.most)
    #expect(voices.find("35") == nil && voices.find("36") != nil && voices.find("99") != nil)
    voices.keep(
      SpokenReply(pieces: [[UInt8](repeating: 0, count: Voices.most + 1)], milliseconds: 1), "large")
    #expect(voices.find("large") != nil && voices.find("99") == nil)
    var tasks = Latest<Int>(3)
    for index in 0..<10 { tasks.add(index) }
    #expect(tasks.all == [7, 8, 9])
  }
}
