import MillraceBailian
import MillraceCore
import MillraceDialog
import Testing

/// Dialogues one after the other in one session.
@Suite("another dialogue after the end") struct BeginningTests {
  private static let rules = SessionScript.rules(.duplex, waitsAfterEnd: true)

  private struct Player {
    var session: BailianSession
    let inputs: [String: BailianInput]

    init(_ way: [String], _ rules: BailianRules = BeginningTests.rules) throws {
      session = try SessionScript.session(rules, way)
      inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    }

    /// Passes inputs one second in; returns the actions.
    mutating func callAsFunction(_ names: String...) throws -> [BailianAction] {
      try names.flatMap { session.handle(try #require(inputs[$0], "\($0)"), at: SessionScript.second) }
    }

    mutating func words(_ name: String) throws -> [String] { try self(name).map(SessionScript.word) }
  }

  @Test(
    "a dialogue that ends as intended leaves a session that waits, from every phase",
    arguments: [
      (BailianSession.Phase.listening, ["hangUp", "taskFinished"]), (.responding, ["hangUp", "lost"]),
      (.listening, ["Stopped"]), (.draining, ["taskFinished"]), (.connecting, ["hangUp"]),
      (.waiting, ["hangUp"]),
    ])
  func waits(phase: BailianSession.Phase, ending: [String]) throws {
    var player = try Player(SessionScript.way(to: phase, .duplex))
    var words: [String] = []
    for name in ending { words += try player.words(name) }
    #expect(player.session.phase == .ended && player.session.uplink == .drop)
    #expect(words.count { $0 == "state closed" } == 1 && !words.contains("end"))
    #expect(player.session.deadline == nil && !player.session.isClosed && !player.session.isEnding)
  }

  @Test("a begin that waits for the end is answered when it takes effect, is replaced, or never will")
  func waitingBegin() throws {
    var player = try Player(SessionScript.way(to: .listening, .duplex) + ["hangUp"])
    func begin(_ id: String) -> [BailianAction] {
      player.session.handle(.command(.begin(), id: id), at: SessionScript.second)
    }
    func answers(_ actions: [BailianAction]) -> [String] {
      actions.compactMap { action in
        guard case .post(.answer(let answer)) = action else { return nil }
        if case .failed(let error) = answer.result { return "\(answer.id): \(error.text)" }
        return answer.id
      }
    }
    #expect(begin("1") == [.answerLater])
    let second = begin("2")
    #expect(answers(second) == [#"1: "begin" discarded: another one replaced it"#])
    #expect(second.contains(.answerLater))
    #expect(answers(try player("taskFinished")) == ["2"])
    #expect(player.session.phase == .connecting)
    _ = try player("opened", "Started", "Listening", "hangUp")
    #expect(begin("3") == [.answerLater])
    #expect(answers(try player("drain", "taskFinished")) == [#"3: "begin" discarded: the node ends"#])
    #expect(player.session.isClosed)
  }

  @Test("begin starts a new dialogue, and nothing of the one before but the microphone's state is left")
  func begins() throws {
    let way =
      SessionScript.way(to: .responding, .duplex) + ["mute", "update", "ask", "hangUp", "taskFinished"]
    var player = try Player(way)
    #expect(player.session.phase == .ended)
    #expect(try player.words("begin") == ["state connecting", "connect"])
    #expect(player.session.dialog == nil && player.session.isMuted)
    guard case .send(.start(let start))? = try player("opened").last else {
      Issue.record("no Start")
      return
    }
    #expect(start.dialog == nil)
    // Neither the update nor the question of the first dialogue is sent again.
    #expect(try player.words("Started") == ["conversationStarted"])
    #expect(try player.words("Listening") == ["state listening"])
    #expect(player.session.phase == .listening)
  }

  @Test("begin resumes the dialogue it names")
  func resumes() throws {
    var player = try Player(SessionScript.way(to: .ended, .duplex))
    _ = try player("resume")
    guard case .send(.start(let start))? = try player("opened").last else {
      Issue.record("no Start")
      return
    }
    #expect(start.dialog == "d9")
  }

  @Test("begin while the dialogue is ending takes effect when it has ended")
  func early() throws {
    var player = try Player(SessionScript.way(to: .stopping, .duplex))
    #expect(try player.words("begin") == [])
    #expect(player.session.phase == .stopping)
    #expect(
      try player.words("taskFinished") == ["disconnect", "state closed", "state connecting", "connect"])
    #expect(player.session.phase == .connecting)
    // It counts once.
    _ = try player("hangUp")
    #expect(player.session.phase == .ended)
  }

  @Test("a failure and a graph that drains end the session all the same")
  func ends() throws {
    var failed = try Player(SessionScript.way(to: .listening, .duplex))
    #expect(try failed.words("refused").suffix(2) == ["state closed", "fail"])
    var drained = try Player(SessionScript.way(to: .listening, .duplex))
    _ = try drained("drain")
    #expect(try drained.words("begin") == ["error request"])
    #expect(try drained.words("taskFinished").suffix(2) == ["state closed", "end"])
    #expect(drained.session.isClosed)
  }

  @Test("a credential sent between two dialogues is used for the next, and does not begin it")
  func credential() throws {
    var rules = Self.rules
    rules.renew = 5 * SessionScript.second
    var player = try Player(["start", "opened", "Started", "Listening", "lost"], rules)
    _ = player.session.handle(.tick, at: 10 * SessionScript.second)
    _ = try player("refused", "hangUp")
    #expect(player.session.phase == .ended)
    #expect(try player.words("refreshAuth") == ["useCredential"])
    #expect(player.session.phase == .ended)
  }
}
