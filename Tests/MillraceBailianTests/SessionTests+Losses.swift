import MillraceBailian
import MillraceCore
import MillraceDialog
import MillraceJSON
import Testing

/// Ends and restarts: connections, keys, timeouts.
extension SessionTests {
  @Test("a lost dialogue is resumed with its id after the backoff; a refusal ends it")
  func reconnects() throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), SessionScript.way(to: .responding, .duplex))
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    let lost = session.handle(try #require(inputs["lost"]), at: SessionScript.second)
    #expect(
      lost.map(SessionScript.word) == [
        "error network", "cancelReply", "interrupted service", "state reconnecting",
      ])
    #expect(session.uplink == .keep)
    #expect(session.deadline == 2 * SessionScript.second)
    #expect(session.handle(.tick, at: 2 * SessionScript.second) == [.connect])
    let opened = session.handle(.opened, at: 2 * SessionScript.second)
    guard case .send(.start(let start))? = opened.last else {
      Issue.record("no Start: \(opened)")
      return
    }
    #expect(start.dialog == "d2")
    let refused = session.handle(try #require(inputs["refused"]), at: 3 * SessionScript.second)
    #expect(
      refused.map(SessionScript.word) == ["authExpired", "error auth", "state closed", "fail"])
  }

  @Test("late events of an old connection are not taken for those of the new one")
  func lateEvents() throws {
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    for late in ["opened", "lost", "refused"] {
      var session = try SessionScript.session(
        SessionScript.rules(.duplex), SessionScript.way(to: .waiting, .duplex))
      let deadline = try #require(session.deadline)
      // The backoff ends at the same time.
      #expect(session.handle(try #require(inputs[late]), at: deadline) == [.connect], "\(late)")
      #expect(session.phase == .connecting, "\(late)")
    }
  }

  @Test(
    "after the end of the microphone, an unreachable service is tried once more, and then the session fails")
  func unreachable() throws {
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    for way in [["start"], SessionScript.way(to: .waiting, .duplex)] {
      var session = try SessionScript.session(SessionScript.rules(.duplex), way + ["audioEnded"])
      if session.phase == .waiting {
        let deadline = try #require(session.deadline)
        #expect(session.handle(.tick, at: deadline) == [.connect])
      }
      let end = session.handle(try #require(inputs["lost"]), at: 9 * SessionScript.second)
      #expect(end.map(SessionScript.word) == ["error network", "state closed", "fail"])
    }
    // During a dialogue it reconnects, and what was said is still answered.
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), SessionScript.way(to: .thinking, .duplex) + ["audioEnded"])
    let lost = session.handle(try #require(inputs["lost"]), at: SessionScript.second)
    #expect(lost.last.map(SessionScript.word) == "state reconnecting")
  }

  @Test("heartbeats are sent in time; a silent service counts as lost")
  func beats() throws {
    let rules = SessionScript.rules(.duplex)
    var session = try SessionScript.session(rules, SessionScript.way(to: .listening, .duplex))
    let start = SessionScript.second
    #expect(session.deadline == start + rules.heartBeat)
    #expect(session.handle(.tick, at: start + rules.heartBeat) == [.send(.heartBeat)])
    session.excuseSilence(at: start + SessionScript.second)
    #expect(session.handle(.tick, at: start + rules.silence) == [.send(.heartBeat)])
    let end = session.handle(.tick, at: start + SessionScript.second + rules.silence).map(SessionScript.word)
    #expect(end == ["error network", "disconnect", "state reconnecting"])
  }

  @Test("a dialogue that does not start is retried; missing playback reports do not block the service")
  func waits() throws {
    let rules = SessionScript.rules(.duplex)
    var session = try SessionScript.session(rules, SessionScript.way(to: .starting, .duplex))
    #expect(
      session.handle(.tick, at: SessionScript.second + rules.begin).map(SessionScript.word) == [
        "error network", "disconnect", "state reconnecting",
      ])
    session = try SessionScript.session(rules, SessionScript.way(to: .draining, .duplex))
    var words: [String] = []
    var time = SessionScript.second
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    while time < SessionScript.second + rules.playback {
      time += 10 * SessionScript.second
      _ = session.handle(try #require(inputs["HeartBeat"]), at: time - 1)
      words += session.handle(.tick, at: time).map(SessionScript.word).filter { $0 != "> HeartBeat" }
    }
    #expect(words == ["cancelReply", "interrupted local", "> LocalRespondingEnded"])
  }

  @Test("when the sources have ended, an answer is awaited, but not for ever")
  func sourcesEnded() throws {
    let rules = SessionScript.rules(.duplex)
    var thinking = try SessionScript.session(rules, SessionScript.way(to: .thinking, .duplex))
    #expect(thinking.handle(.sourcesEnded, at: SessionScript.second).isEmpty)
    #expect(thinking.deadline.map { $0 <= SessionScript.second + rules.drain } == true)
    let end = thinking.handle(.tick, at: SessionScript.second + rules.drain).map(SessionScript.word)
    #expect(end.last == "> Stop", "\(end)")
    var responding = try SessionScript.session(rules, SessionScript.way(to: .responding, .duplex))
    _ = responding.handle(.sourcesEnded, at: SessionScript.second)
    let words = responding.handle(.tick, at: SessionScript.second + rules.drain).map(SessionScript.word)
    #expect(!words.contains("> Stop"), "\(words)")
  }

  @Test("when the sources have ended, a loss ends the session: as a failure, unless the reply has arrived")
  func lostWhileDraining() throws {
    let rules = SessionScript.rules(.duplex)
    for (phase, end) in [(BailianSession.Phase.thinking, "fail"), (.draining, "end")] {
      var session = try SessionScript.session(rules, SessionScript.way(to: phase, .duplex))
      _ = session.handle(.sourcesEnded, at: SessionScript.second)
      let loss = DialogError(vendor: "bailian", category: .network, reaction: .reconnect, text: "gone")
      #expect(session.handle(.lost(loss), at: SessionScript.second).map(SessionScript.word).last == end)
    }
  }

  @Test("after a rejected key a new one is awaited, and without one the session fails")
  func renewal() throws {
    var rules = SessionScript.rules(.duplex)
    rules.renew = 5 * SessionScript.second
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    var session = try SessionScript.session(rules, SessionScript.way(to: .listening, .duplex))
    func handle(_ name: String, at time: Nanoseconds) throws -> [String] {
      session.handle(try #require(inputs[name]), at: time * SessionScript.second).map(SessionScript.word)
    }
    _ = try handle("lost", at: 1)
    _ = session.handle(.tick, at: 2 * SessionScript.second)
    #expect(try handle("refused", at: 2) == ["authExpired", "error auth"])
    #expect(session.phase == .waiting && session.uplink == .keep)
    #expect(try handle("refreshAuth", at: 4) == ["useCredential", "connect"])
    #expect(try handle("refused", at: 5) == ["authExpired", "error auth"])
    #expect(
      session.handle(.tick, at: 10 * SessionScript.second).map(SessionScript.word) == [
        "state closed", "fail",
      ])
    // An invalid first key is not awaited.
    session = try SessionScript.session(rules, SessionScript.way(to: .connecting, .duplex))
    #expect(try handle("refused", at: 1) == ["error auth", "state closed", "fail"])
  }

  @Test(
    "updates made without a dialogue are sent when one starts, and again after a loss; images are not"
  )
  func standing() throws {
    var session = BailianSession(SessionScript.rules(.duplex))
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    func update(_ values: JSONValue) -> [String] {
      session.handle(.command(.update(values)), at: SessionScript.second).map(SessionScript.word)
    }
    #expect(update(["biz_params": ["a": ["x": 1], "b": 2]]) == [])
    #expect(update(["biz_params": ["a": ["y": 3]], "client_info": ["status": ["on": true]]]) == [])
    #expect(update(["images": [["type": "base64", "value": "AA"]]]) == ["error request"])
    let wanted: JSONValue = ["biz_params": ["b": 2, "a": ["y": 3]], "client_info": ["status": ["on": true]]]
    func begin() throws -> [BailianAction] {
      _ = session.handle(.opened, at: SessionScript.second)
      return session.handle(try #require(inputs["Started"]), at: SessionScript.second)
    }
    _ = session.handle(.start, at: SessionScript.second)
    #expect(try begin().last == .send(.updateInfo(wanted)))
    // Sent once per connection.
    #expect(
      session.handle(try #require(inputs["Started"]), at: SessionScript.second).map(SessionScript.word)
        == ["conversationStarted"])
    #expect(update(["images": [["type": "base64", "value": "AA"]]]) == ["> UpdateInfo"])
    _ = session.handle(try #require(inputs["lost"]), at: SessionScript.second)
    _ = session.handle(.tick, at: 10 * SessionScript.second)
    #expect(try begin().last == .send(.updateInfo(wanted)))
  }

  @Test("a question without a dialogue waits for one; a discarded question is reported")
  func questions() throws {
    let way = SessionScript.way(to: .waiting, .duplex)
    var session = try SessionScript.session(SessionScript.rules(.duplex), way)
    func handle(_ input: BailianInput) -> [BailianAction] {
      session.handle(input, at: 3 * SessionScript.second)
    }
    #expect(handle(.command(.ask("one", images: []))) == [.connect])
    #expect(handle(.command(.ask("two", images: []))).map(SessionScript.word) == ["error request"])
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    for name in ["opened", "Started"] { _ = handle(try #require(inputs[name])) }
    guard case .send(.requestToRespond(let asked))? = handle(try #require(inputs["Listening"])).last else {
      Issue.record("not asked")
      return
    }
    #expect(asked.text == "two")
    session = try SessionScript.session(SessionScript.rules(.duplex), way)
    _ = session.handle(.command(.ask("one", images: [])), at: SessionScript.second)
    #expect(
      session.handle(.command(.hangUp()), at: SessionScript.second).map(SessionScript.word)
        == ["disconnect", "error request", "state closed", "end"])
  }
}
