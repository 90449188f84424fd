import MillraceBailian
import MillraceCore
import MillraceDialog
import Testing

/// Phases as they come about, inputs as they are named in the tables, and actions in short words.
enum SessionScript {
  static let second: Nanoseconds = 1_000_000_000

  static func rules(
    _ mode: DialogMode, followsPlayback: Bool = true, hasVideo: Bool = true,
    live: BailianRules.Live = .command
  ) -> BailianRules {
    var start = BailianStart(workspace: "w", app: "a", user: "u")
    start.upstream.mode = mode
    start.upstream.hasVideo = hasVideo
    var rules = BailianRules(
      start, reconnect: ReconnectPolicy(Backoff(first: second, jitter: 0, seed: 1)))
    rules.followsPlayback = followsPlayback
    rules.live = live
    rules.linger = second
    return rules
  }

  static func message(_ output: String) throws -> BailianInput {
    .message(
      try BailianMessage(
        parsing: Array(
          #"{"header":{"event":"result-generated"},"payload":{"output":{\#(output)}}}"#.utf8)))
  }

  static func whole(_ text: String) throws -> BailianInput {
    .message(try BailianMessage(parsing: Array(text.utf8)))
  }

  static func inputs() throws -> [(name: String, input: BailianInput)] {
    let refusal = DialogError(vendor: "bailian", category: .auth, reaction: .refuse, text: "401")
    let loss = DialogError(vendor: "bailian", category: .network, reaction: .reconnect, text: "gone")
    func film(_ action: String) -> BailianInput {
      .command(
        .extra(name: "videos", payload: [["action": .string(action), "type": "voicechat_video_channel"]]))
    }
    let large = DialogImage.base64(String(repeating: "A", count: 180_001))
    return [
      ("start", .start), ("opened", .opened),
      ("Started", try message(#""event":"Started","dialog_id":"d2""#)),
      ("Listening", try message(#""event":"DialogStateChanged","state":"Listening""#)),
      ("Thinking", try message(#""event":"DialogStateChanged","state":"Thinking""#)),
      ("Responding", try message(#""event":"DialogStateChanged","state":"Responding""#)),
      ("SpeechStarted", try message(#""event":"SpeechStarted""#)),
      ("SpeechContent", try message(#""event":"SpeechContent","text":"hi","finished":true"#)),
      ("SpeechEnded", try message(#""event":"SpeechEnded""#)),
      ("RespondingStarted", try message(#""event":"RespondingStarted""#)),
      (
        "RespondingContent",
        try message(
          #""event":"RespondingContent","text":"yes","finished":true,"extra_info":{"commands":"[{\"name\":\"visual_qa\"}]","agent_info":1}"#
        )
      ),
      ("RespondingEnded", try message(#""event":"RespondingEnded""#)),
      ("RequestAccepted", try message(#""event":"RequestAccepted""#)),
      ("HeartBeat", try message(#""event":"HeartBeat""#)),
      (
        "Error",
        try message(#""event":"Error","error_code":500,"error_name":"InternalLLMError","error_message":"m""#)
      ),
      (
        "fatalError",
        try whole(
          #"{"header":{"event":"result-generated","status_code":444,"status_name":"ClientAudioTimeout"},"payload":{"output":{"event":"Error"}}}"#
        )
      ),
      (
        "taskFailed",
        try whole(#"{"header":{"event":"task-failed","error_code":"Model.AccessDenied"},"payload":{}}"#)
      ),
      ("Stopped", try message(#""event":"Stopped""#)),
      ("taskFinished", try whole(#"{"header":{"event":"task-finished"},"payload":{}}"#)),
      ("unknown", try message(#""event":"Astonished""#)), ("garbled", .garbled("why")), ("sound", .sound),
      ("lost", .lost(loss)), ("refused", .lost(refusal)), ("startSpeech", .command(.startSpeech)),
      ("stopSpeech", .command(.stopSpeech)), ("cancelSpeech", .command(.cancelSpeech)),
      ("interrupt", .command(.interrupt)), ("say", .command(.say("words"))),
      ("ask", .command(.ask("why", images: []))), ("update", .command(.update(["a": 1]))),
      ("mute", .command(.mute(.audio, isOn: true))), ("setRole", .command(.setRole("r"))),
      ("refreshAuth", .command(.refreshAuth(token: "k"))), ("hangUp", .command(.hangUp)),
      ("refreshNothing", .command(.refreshAuth(token: nil))),
      ("connectFilm", film("connect")), ("exitFilm", film("exit")),
      ("commands", .command(.extra(name: "commands", payload: [["name": "agent_command"]]))),
      ("results", .command(.extra(name: "command_results", payload: [["command_request_id": "1"]]))),
      ("request", .command(.extra(name: "RequestToRespond", payload: ["text": "why"]))),
      ("wrongRequest", .command(.extra(name: "RequestToRespond", payload: ["type": "song"]))),
      ("largeAsk", .command(.ask("why", images: [large]))),
      ("muteFilm", .command(.mute(.video, isOn: true))), ("unmute", .command(.mute(.audio, isOn: false))),
      ("taskStarted", try whole(#"{"header":{"event":"task-started"},"payload":{}}"#)),
      ("usage", try whole(#"{"header":{"event":"task-started"},"payload":{"usage":{"invoke":1}}}"#)),
      ("leaving", .leaving), ("tick", .tick),
      ("extra", .command(.extra(name: "what", payload: .null))), ("audible", .audible),
      ("finished", .finished), ("delivered", .delivered), ("voided", .voided), ("soundOver", .soundOver),
    ]
  }

  /// How each phase comes about.
  static func way(to phase: BailianSession.Phase, _ mode: DialogMode) -> [String] {
    let listening = ["start", "opened", "Started", "Listening"]
    let responding = listening + ["Thinking", "Responding", "RespondingStarted", "sound", "audible"]
    return switch phase {
    case .idle: []
    case .connecting: ["start"]
    case .starting: ["start", "opened"]
    case .listening: listening
    case .talking: listening + [mode == .duplex ? "SpeechStarted" : "startSpeech"]
    case .thinking: listening + ["Thinking"]
    case .responding: responding
    case .draining: responding + ["RespondingEnded"]
    case .yielding: responding + ["RespondingEnded", "finished"]
    case .waiting: listening + ["lost"]
    case .stopping: listening + ["hangUp"]
    case .closed: listening + ["hangUp", "taskFinished"]
    }
  }

  static func session(_ rules: BailianRules, _ way: [String]) throws -> BailianSession {
    let inputs = Dictionary(uniqueKeysWithValues: try inputs().map { ($0.name, $0.input) })
    var session = BailianSession(rules)
    for name in way { _ = session.handle(try #require(inputs[name], "\(name)"), at: second) }
    return session
  }

  static func word(_ action: BailianAction) -> String {
    switch action {
    case .connect: "connect"
    case .disconnect: "disconnect"
    case .send(let request): "> \(request.directive)"
    case .post(.state(let state)): "state \(state.rawValue)"
    case .post(.interrupted(let source)): "interrupted \(source.rawValue)"
    case .post(.error(let error)): "error \(error.category.rawValue)"
    case .post(.replyEnded(_, let count)): "replyEnded \(count)"
    case .post(let event): event.name
    case .deliver: "deliver"
    case .endUtterance: "endUtterance"
    case .voidReply: "voidReply"
    case .useKey: "useKey"
    case .end(let error): error == nil ? "end" : "fail"
    }
  }

  /// Every phase with every input that means something in it: `listening Thinking: thinking [state thinking]`.
  static func table(_ mode: DialogMode) throws -> [String] {
    var lines: [String] = []
    for phase in BailianSession.Phase.allCases {
      let before = try session(rules(mode), way(to: phase, mode))
      #expect(before.phase == phase, "the way to \(phase) ends in \(before.phase)")
      for (name, input) in try inputs() {
        var after = before
        let actions = after.handle(input, at: second).map(word)
        guard after.phase != phase || !actions.isEmpty || after.uplink != before.uplink else { continue }
        let uplink = after.uplink == before.uplink ? "" : " \(after.uplink.rawValue)"
        let list = actions.isEmpty ? "" : " [\(actions.joined(separator: ", "))]"
        lines.append("\(phase.rawValue) \(name): \(after.phase.rawValue)\(uplink)\(list)")
      }
    }
    return lines
  }
}

@Suite("The session of Bailian") struct SessionTests {
  @Test("every phase with every input does what the tables say", arguments: DialogMode.allCases)
  func tables(mode: DialogMode) throws {
    let found = try SessionScript.table(mode)
    let wanted = Set(sessionTable + (sessionTables[mode] ?? []))
    let others = Set(DialogMode.allCases.filter { $0 != mode }.flatMap { sessionTables[$0] ?? [] })
    for line in found where !wanted.contains(line) { Issue.record("\(mode.rawValue): unexpected \(line)") }
    for line in wanted.subtracting(found) { Issue.record("\(mode.rawValue): missing \(line)") }
    #expect(others.isDisjoint(with: sessionTable))
  }

  private static let orders: [[String]] = [
    ["RequestAccepted", "Listening", "SpeechStarted"], ["Listening", "SpeechStarted"],
    ["SpeechStarted", "Listening"], ["RespondingEnded", "Listening", "SpeechStarted"],
  ]

  @Test(
    "a voice over a reply ends it once, whatever is told first, and nothing of the old reply is heard after",
    arguments: orders, [BailianSession.Phase.responding, .draining])
  func bargeIn(order: [String], phase: BailianSession.Phase) throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), SessionScript.way(to: phase, .duplex))
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    var words: [String] = []
    for name in order where phase == .responding || name != "RespondingEnded" {
      words += session.handle(try #require(inputs[name]), at: SessionScript.second).map(SessionScript.word)
      if name != "RespondingEnded" {
        #expect(!session.handle(.sound, at: SessionScript.second).contains(.deliver), "after \(name)")
      }
      #expect(session.uplink == .send)
    }
    #expect(words.count { $0 == "voidReply" } == 1)
    #expect(words.count { $0.hasPrefix("interrupted") } == 1)
    #expect(!words.contains("> LocalRespondingEnded"))
    // The next reply is heard.
    for name in ["SpeechEnded", "Thinking"] {
      _ = session.handle(try #require(inputs[name]), at: SessionScript.second)
    }
    #expect(session.handle(.sound, at: SessionScript.second) == [.deliver])
  }

  @Test("sound may come before Responding, and before Thinking of a question that was asked")
  func early() throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), ["start", "opened", "Started", "Listening"])
    _ = session.handle(.command(.say("words")), at: SessionScript.second)
    #expect(session.handle(.sound, at: SessionScript.second) == [.deliver])
    session = try SessionScript.session(
      SessionScript.rules(.duplex), ["start", "opened", "Started", "Listening", "Thinking"])
    #expect(session.handle(.sound, at: SessionScript.second) == [.deliver])
  }

  @Test("speech pressed for during a reply waits until the service listens; what is said meanwhile is kept")
  func pressDuringReply() throws {
    var session = try SessionScript.session(
      SessionScript.rules(.pushToTalk), SessionScript.way(to: .responding, .pushToTalk))
    let press = session.handle(.command(.startSpeech), at: SessionScript.second).map(SessionScript.word)
    #expect(press == ["voidReply", "> RequestToSpeak"] && session.uplink == .keep)
    // Asked once: a second press asks for nothing.
    #expect(session.handle(.command(.startSpeech), at: SessionScript.second).isEmpty)
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    _ = session.handle(try #require(inputs["RequestAccepted"]), at: SessionScript.second)
    let listening = session.handle(try #require(inputs["Listening"]), at: SessionScript.second)
    #expect(listening.map(SessionScript.word) == ["state listening", "> SendSpeech"])
    #expect(session.phase == .talking && session.uplink == .send)
  }

  @Test(
    "a reply that the graph voids is broken off by one request, also where its sound came ahead of its word",
    arguments: [
      ["start", "opened", "Started", "Listening", "Thinking", "sound"],
      SessionScript.way(to: .responding, .duplex), SessionScript.way(to: .draining, .duplex),
    ])
  func voided(way: [String]) throws {
    var session = try SessionScript.session(SessionScript.rules(.duplex), way)
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    var words: [String] = []
    for name in ["voided", "interrupt", "sound", "RespondingEnded", "finished", "voided", "Listening"] {
      words += session.handle(try #require(inputs[name]), at: SessionScript.second).map(SessionScript.word)
    }
    #expect(words.filter { $0 != "replyEnded 0" } == ["> RequestToSpeak", "state listening"])
  }

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

  @Test("without reports of playback, what was handed on counts as heard")
  func delivered() throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex, followsPlayback: false),
      ["start", "opened", "Started", "Listening", "Thinking", "RespondingStarted", "sound"])
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    #expect(
      session.handle(try #require(inputs["RespondingEnded"]), at: SessionScript.second).map(
        SessionScript.word)
        == ["endUtterance", "replyEnded 1"])
    #expect(session.handle(.finished, at: SessionScript.second).isEmpty)
    #expect(
      session.handle(.delivered, at: SessionScript.second).map(SessionScript.word) == [
        "> LocalRespondingEnded"
      ])
  }

  @Test(
    "commands of the service are told when it listens; a film is asked for, shown once answered, and left")
  func film() throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), SessionScript.way(to: .responding, .duplex))
    let inputs = Dictionary(uniqueKeysWithValues: try SessionScript.inputs().map { ($0.name, $0.input) })
    func tell(_ names: String...) throws -> [String] {
      try names.flatMap {
        session.handle(try #require(inputs[$0]), at: SessionScript.second).map(SessionScript.word)
      }
    }
    let open = try SessionScript.message(
      #""event":"RespondingContent","text":"","finished":true,"extra_info":{"commands":"[{\"name\":\"open_videochat\"}]"}"#
    )
    #expect(session.handle(open, at: SessionScript.second).map(SessionScript.word) == ["reply"])
    #expect(
      try tell("RespondingEnded", "finished", "Listening").suffix(3) == [
        "state listening", "command", "> RequestToRespond",
      ])
    #expect(!session.takesPictures)
    _ = try tell("Thinking", "Responding", "RespondingStarted", "sound", "audible", "RespondingEnded")
    #expect(!session.takesPictures)
    _ = try tell("finished", "Listening")
    #expect(session.takesPictures)
    _ = try tell("Thinking", "Responding")
    #expect(session.takesPictures, "pictures go on during a reply")
    _ = session.handle(
      .command(.extra(name: "videos", payload: [["action": "exit"]])), at: SessionScript.second)
    #expect(!session.takesPictures)
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

  @Test("the vendor's whole request goes out as it is, for this request only; a wrong one is told in words")
  func wholeRequest() throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), SessionScript.way(to: .listening, .duplex))
    let parameters: JSONValue = ["biz_params": ["user_query_params": ["a": "b"]]]
    let payload: JSONValue = ["type": "transcript", "text": "words", "parameters": parameters]
    let actions = session.handle(
      .command(.extra(name: "RequestToRespond", payload: payload)), at: SessionScript.second)
    guard case .send(let request)? = actions.first else {
      Issue.record("\(actions)")
      return
    }
    let sent = request.json(task: "t", dialog: "d")["payload"]
    #expect(sent?["parameters"] == parameters)
    #expect(sent?["input"]?["type"]?.string == "transcript" && sent?["input"]?["text"]?.string == "words")
    let picture: JSONValue = ["type": "url", "value": "https://x"]
    for wrong: JSONValue in [
      ["type": "song"], ["parameters": 1], ["parameters": ["images": [picture, picture]]],
      [
        "parameters": [
          "images": [["type": "base64", "value": .string(String(repeating: "A", count: 180_001))]]
        ]
      ],
    ] {
      let told = session.handle(
        .command(.extra(name: "RequestToRespond", payload: wrong)), at: SessionScript.second)
      #expect(told.map(SessionScript.word) == ["error request"])
    }
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

  @Test("members without a common word are told under their own names, once")
  func rest() throws {
    var session = try SessionScript.session(
      SessionScript.rules(.duplex), SessionScript.way(to: .listening, .duplex))
    func extras(_ text: String) throws -> [String] {
      session.handle(try SessionScript.message(text), at: SessionScript.second).compactMap {
        if case .post(.extra(let name, _)) = $0 { name } else { nil }
      }
    }
    #expect(
      try extras(#""event":"DialogStateChanged","state":"Thinking","dialog_id":"d","inputType":"voice""#)
        == ["inputType"])
    let content =
      #""event":"RespondingContent","text":"a","llm_request_id":"1","round_id":"2","finish_reason":"stop","extra_info":{"timestamps":{"a":1},"dialog_debug":{"b":2}},"finished":"#
    #expect(try extras(content + "false") == ["timestamps", "dialog_debug"])
    #expect(
      try extras(content + "true") == ["timestamps", "dialog_debug", "llm_request_id", "finish_reason"])
  }

  @Test("any order of inputs keeps the session's promises")
  func random() throws {
    let inputs = try SessionScript.inputs()
    for mode in DialogMode.allCases {
      for seed in 0..<200 {
        var dice = SplitMix(UInt64(seed))
        var session = BailianSession(SessionScript.rules(mode))
        var time: Nanoseconds = 0
        var hasEnded = false
        var isOpen = false
        for _ in 0..<300 {
          time += Nanoseconds(dice.next() % 3_000_000_000)
          let (name, input) = inputs[Int(dice.next() % UInt64(inputs.count))]
          for action in session.handle(input, at: time) {
            #expect(!hasEnded, "\(action) after the end, by \(name)")
            switch action {
            case .end: hasEnded = true
            case .connect: isOpen = false
            case .send(.start): isOpen = true
            case .send(let request): #expect(isOpen, "\(request.directive) before Start, by \(name)")
            case .disconnect: isOpen = false
            default: break
            }
          }
          if case .lost = input { isOpen = false }
          if session.phase == .closed { #expect(session.deadline == nil && session.uplink == .drop) }
        }
      }
    }
  }
}

/// SplitMix64.
struct SplitMix {
  private var state: UInt64
  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}
