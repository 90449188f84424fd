import MillraceBailian
import MillraceBailianDouble
import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceTesting
import TestNet
import Testing

/// What the service and the user see when the network or the service fails and comes back.
@Suite("losses of a dialogue", .serialized, .timeLimit(.minutes(30))) struct LossTests {
  private static let second: Nanoseconds = 1_000_000_000

  @Test(
    "after an outage of 1, 10 or 60 s the dialogue is resumed with its id, reported once, with nothing sent twice",
    arguments: [(1, 2), (10, 5), (60, 11)])
  func absence(seconds: Int, attempts: Int) throws {
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    var rules = SessionScript.rules(.duplex)
    // As the node configures it: half a second to eight, here without jitter.
    rules.reconnect = ReconnectPolicy(
      Backoff(first: .milliseconds(500), most: .milliseconds(8_000), jitter: 0, seed: 1))
    var session = try SessionScript.session(rules, SessionScript.way(to: .listening, .duplex))
    var time = Self.second
    _ = session.handle(.command(.ask("why", images: [])), at: time)
    let back = time + Nanoseconds(seconds) * Self.second
    var actions = session.handle(try #require(inputs["lost"]), at: time)
    var all = actions
    var tries = 0
    while session.phase != .listening {
      if actions.contains(.connect) {
        tries += 1
        let isBack = time >= back
        for name in isBack ? ["opened", "Started", "Listening"] : ["lost"] {
          all += session.handle(try #require(inputs[name]), at: time)
        }
        actions = []
        continue
      }
      #expect(session.uplink == .keep)
      time = try #require(session.deadline)
      actions = session.handle(.tick, at: time)
      all += actions
    }
    #expect(tries == attempts)
    #expect(time - back <= .milliseconds(8_000), "the longest backoff delay after its return")
    let starts = all.compactMap { if case .send(.start(let start)) = $0 { start.dialog } else { nil } }
    #expect(starts == ["d2"])
    #expect(all.count { if case .send(.requestToRespond) = $0 { true } else { false } } == 0)
    #expect(all.contains(.post(.state(.reconnecting))))
    #expect(session.uplink == .send)
  }

  @Test("commands of a service that never listens are limited in number, and the rest is reported once")
  func endlessCommands() throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), SessionScript.way(to: .responding, .duplex))
    let input = try SessionScript.message(
      #""event":"RespondingContent","dialog_id":"d","round_id":"r","llm_request_id":"l","text":"","spoken":"","finished":false,"extra_info":{"commands":"[{\"name\":\"a\",\"params\":[]},{\"name\":\"b\",\"params\":[]},{\"name\":\"c\",\"params\":[]}]"}"#
    )
    func errors(_ actions: [BailianAction]) -> Int {
      actions.count { if case .post(.error) = $0 { true } else { false } }
    }
    func commands(_ actions: [BailianAction]) -> Int {
      actions.count { if case .post(.command) = $0 { true } else { false } }
    }
    for _ in 0..<2 {
      let counts = (0..<1_000).map { _ in errors(session.handle(input, at: Self.second)) }
      #expect(counts.reduce(0, +) == 1 && counts[20] == 0 && counts[21] == 1)
      let listening = try SessionScript.message(
        #""event":"DialogStateChanged","state":"Listening","dialog_id":"d""#)
      #expect(commands(session.handle(listening, at: Self.second)) == 64)
      #expect(commands(session.handle(listening, at: Self.second)) == 0)
    }
  }

  @Test(
    "cut off while the user speaks, the dialogue resumes with its id and a new task; every frame is sent once and in order, and of the outage the latest audio is kept"
  )
  func cutWhileSpeaking() async throws {
    let received = Locked<[UInt8]>([])
    var observer = AudioObserver()
    observer.received = { frame in received.withLock { $0.append(frame[0]) } }
    var scenario = BailianScenario()
    scenario.turns[0].thinks = 10
    let double = try await BailianDouble.listen(scenario, observer: observer)
    let relay = Relay(to: double.port)
    let bench = try NodeBench(
      BailianDialog.self,
      [
        "url": .string("ws://127.0.0.1:\(relay.port)/api-ws/v1/inference"), "key": "k", "workspace": "w",
        "app": "a", "user": "u", "first": 5, "most": 10, "preRoll": 1_000, "open": 600_000, "begin": 600_000,
      ],
      inputs: ["audio": .pcm(rate: 16_000, channels: 1, sample: .s16, frames: 1_600)], clock: .realtime)
    var events: [BenchEvent] = []
    func wait(until condition: () -> Bool) throws -> Bool {
      let end = ContinuousClock.now + .seconds(300)
      while ContinuousClock.now < end {
        if try bench.wait(
          0.005,
          until: {
            events += bench.events(); return condition()
          })
        {
          return true
        }
      }
      return false
    }
    func states() -> [String] { events.filter { $0.name == "state" }.compactMap { $0.string("state") } }
    // Frames of 100 ms that contain their number.
    var next: Int16 = 1
    func speak(_ count: Int) {
      for _ in 0..<count {
        bench.push([Int16](repeating: next, count: 1_600), to: "audio")
        next += 1
      }
    }
    #expect(try wait { states().last == "listening" })
    speak(20)
    #expect(try wait { received.withLock { $0.count } == 20 })
    let connections = relay.connections
    relay.cut(isAway: true)
    #expect(try wait { states().last == "reconnecting" })
    #expect(try wait { relay.connections >= connections + 3 })
    // Five seconds, of which one is kept; one second at a time, which the queue to the connection holds.
    for part in 1...5 {
      speak(10)
      _ = try bench.run()
      #expect(try wait { relay.connections >= connections + 3 + 3 * part })
    }
    relay.comeBack()
    #expect(try wait { states().last == "listening" })
    speak(5)
    #expect(try wait { received.withLock { $0.last } == 75 })
    let numbers = received.withLock { $0 }
    #expect(numbers == Array(1...20) + Array(61...75))
    #expect(events.filter { $0.name == "extra" }.compactMap { $0.string("name") } == ["unsent"])
    #expect(double.seen.violations == [])
    let starts = double.seen.starts
    #expect(starts.count == 2 && starts[0]["task"] != starts[1]["task"])
    let id = events.first { $0.name == "conversationStarted" }?.string("id")
    #expect(starts[1]["payload"]?["input"]?["dialog_id"]?.string == id && id != nil)
    try bench.finish()
    relay.stop()
    double.stop()
  }

  @Test("cut off after any number of bytes, the dialogue still comes to its end")
  func cutAnywhere() async throws {
    var scenario = BailianScenario()
    scenario.turns[0].says = "Yes."
    scenario.turns[0].thinks = 1
    scenario.speed = 100
    let double = try await BailianDouble.listen(scenario)
    // The handshake has about 130 bytes, the answers to Start some hundred each; a reply's audio begins after a thousand.
    for cut in [
      1, 17, 129, 130, 131, 132, 135, 200, 333, 400, 517, 640, 700, 811, 1_000, 1_500, 3_000, 9_000, 20_000,
    ] {
      let relay = Relay(to: double.port, allowances: [cut])
      let bench = try NodeBench(
        BailianDialog.self,
        [
          "url": .string("ws://127.0.0.1:\(relay.port)/api-ws/v1/inference"), "key": "k", "workspace": "w",
          "app": "a", "user": "u", "first": 1, "most": 2, "open": 600_000, "begin": 600_000,
        ], inputs: ["text": OutputShape(.text, packetDuration: nil, packetBytes: 100)], clock: .realtime)
      bench.push(text: "why", to: "text")
      var answers: [String] = []
      var asked = 1
      let end = ContinuousClock.now + .seconds(300)
      while !answers.contains("Yes."), ContinuousClock.now < end {
        let turns = double.seen.begun
        _ = try bench.wait(0.2) {
          answers += bench.texts("text"); return !answers.isEmpty
        }
        // A question lost with a connection has to be repeated by the caller: the node does not.
        if answers.isEmpty && double.seen.begun == turns {
          bench.push(text: "why", to: "text")
          asked += 1
        }
      }
      #expect(answers.contains("Yes."), "cut after \(cut) bytes, asked \(asked) times")
      try bench.finish()
      relay.stop()
    }
    #expect(double.seen.violations == [])
    double.stop()
  }
}
