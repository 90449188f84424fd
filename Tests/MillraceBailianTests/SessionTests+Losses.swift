import MillraceBailian
import MillraceCore
import MillraceDialog
import Testing

/// What comes to an end and begins anew: connections, keys, waits.
extension SessionTests {
  @Test("a lost dialogue is taken up again with its id, after the wait; a refusal is the end")
  func reconnects() throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), SessionScript.way(to: .responding, .duplex))
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    let lost = session.handle(try #require(inputs["lost"]), at: SessionScript.second)
    #expect(
      lost.map(SessionScript.word) == [
        "error network", "voidReply", "interrupted service", "state reconnecting",
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

  @Test("what an old connection says late is not taken for the new one, which is only asked for now")
  func wordsOfTheOneBefore() throws {
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    for late in ["opened", "lost", "refused"] {
      var session = try SessionScript.session(
        SessionScript.rules(.duplex), SessionScript.way(to: .waiting, .duplex))
      let deadline = try #require(session.deadline)
      // The wait is over as it comes.
      #expect(session.handle(try #require(inputs[late]), at: deadline) == [.connect], "\(late)")
      #expect(session.phase == .connecting, "\(late)")
    }
  }

  @Test("when nothing more will be said, a service that is away is tried once more, and then it is the end")
  func nobodyThere() throws {
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    for way in [["start"], SessionScript.way(to: .waiting, .duplex)] {
      var session = try SessionScript.session(SessionScript.rules(.duplex), way + ["soundOver"])
      if session.phase == .waiting {
        let deadline = try #require(session.deadline)
        #expect(session.handle(.tick, at: deadline) == [.connect])
      }
      let end = session.handle(try #require(inputs["lost"]), at: 9 * SessionScript.second)
      #expect(end.map(SessionScript.word) == ["error network", "state closed", "fail"])
    }
    // With a dialogue the connection is made anew, and what was said is still answered.
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), SessionScript.way(to: .thinking, .duplex) + ["soundOver"])
    let lost = session.handle(try #require(inputs["lost"]), at: SessionScript.second)
    #expect(lost.last.map(SessionScript.word) == "state reconnecting")
  }

  @Test("heartbeats go out in time; a service that says nothing is lost")
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

  @Test("a dialogue that does not begin is tried again; playback that never tells of its end holds nobody up")
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
    #expect(words == ["voidReply", "interrupted local", "> LocalRespondingEnded"])
  }

  @Test("a key that is not taken any more: a new one is waited for, and without one it is the end")
  func renewal() throws {
    var rules = SessionScript.rules(.duplex)
    rules.renew = 5 * SessionScript.second
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    var session = try SessionScript.session(rules, SessionScript.way(to: .listening, .duplex))
    func tell(_ name: String, at time: Nanoseconds) throws -> [String] {
      session.handle(try #require(inputs[name]), at: time * SessionScript.second).map(SessionScript.word)
    }
    _ = try tell("lost", at: 1)
    _ = session.handle(.tick, at: 2 * SessionScript.second)
    #expect(try tell("refused", at: 2) == ["authExpired", "error auth"])
    #expect(session.phase == .waiting && session.uplink == .keep)
    #expect(try tell("refreshAuth", at: 4) == ["useKey", "connect"])
    #expect(try tell("refused", at: 5) == ["authExpired", "error auth"])
    #expect(
      session.handle(.tick, at: 10 * SessionScript.second).map(SessionScript.word) == [
        "state closed", "fail",
      ])
    // A first key that is wrong is not waited for.
    session = try SessionScript.session(rules, SessionScript.way(to: .connecting, .duplex))
    #expect(try tell("refused", at: 1) == ["error auth", "state closed", "fail"])
  }

  @Test(
    "what UpdateInfo changed without a dialogue is told when there is one, and again after a loss; pictures are not"
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
    // Told once a connection.
    #expect(
      session.handle(try #require(inputs["Started"]), at: SessionScript.second).map(SessionScript.word)
        == ["conversationStarted"])
    #expect(update(["images": [["type": "base64", "value": "AA"]]]) == ["> UpdateInfo"])
    _ = session.handle(try #require(inputs["lost"]), at: SessionScript.second)
    _ = session.handle(.tick, at: 10 * SessionScript.second)
    #expect(try begin().last == .send(.updateInfo(wanted)))
  }

  @Test("a question without a dialogue waits for one; one that will never be asked is told")
  func questions() throws {
    let way = SessionScript.way(to: .waiting, .duplex)
    var session = try SessionScript.session(SessionScript.rules(.duplex), way)
    func tell(_ input: BailianInput) -> [BailianAction] {
      session.handle(input, at: 3 * SessionScript.second)
    }
    #expect(tell(.command(.ask("one", images: []))) == [.connect])
    #expect(tell(.command(.ask("two", images: []))).map(SessionScript.word) == ["error request"])
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    for name in ["opened", "Started"] { _ = tell(try #require(inputs[name])) }
    guard case .send(.requestToRespond(let asked))? = tell(try #require(inputs["Listening"])).last else {
      Issue.record("not asked")
      return
    }
    #expect(asked.text == "two")
    session = try SessionScript.session(SessionScript.rules(.duplex), way)
    _ = session.handle(.command(.ask("one", images: [])), at: SessionScript.second)
    #expect(
      session.handle(.command(.hangUp), at: SessionScript.second).map(SessionScript.word)
        == ["disconnect", "error request", "state closed", "end"])
  }
}
