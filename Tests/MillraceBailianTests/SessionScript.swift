import MillraceBailian
import MillraceCore
import MillraceDialog
import Testing

/// How to reach each phase, the inputs by the names in the tables, and short names for actions.
enum SessionScript {
  static let second: Nanoseconds = 1_000_000_000

  static func rules(
    _ mode: DialogMode, followsPlayback: Bool = true, hasVideo: Bool = true,
    live: BailianRules.Live = .command, waitsAfterEnd: Bool = false
  ) -> BailianRules {
    var start = BailianStart(workspace: "w", app: "a", user: "u")
    start.upstream.mode = mode
    start.upstream.hasVideo = hasVideo
    var rules = BailianRules(
      start, reconnect: ReconnectPolicy(Backoff(first: second, jitter: 0, seed: 1)))
    rules.followsPlayback = followsPlayback
    rules.live = live
    rules.linger = second
    rules.waitsAfterEnd = waitsAfterEnd
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
    func video(_ action: String) -> BailianInput {
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
      ("unknown", try message(#""event":"Astonished""#)), ("invalid", .invalidMessage("why")),
      ("audio", .audio),
      ("lost", .lost(loss)), ("refused", .lost(refusal)), ("startSpeech", .command(.startSpeech)),
      ("stopSpeech", .command(.stopSpeech)), ("cancelSpeech", .command(.cancelSpeech)),
      ("interrupt", .command(.interrupt())), ("say", .command(.say("words"))),
      ("ask", .command(.ask("why", images: []))), ("update", .command(.update(["a": 1]))),
      ("mute", .command(.mute(.audio, isOn: true))), ("setRole", .command(.setRole("r"))),
      ("refreshAuth", .command(.refreshAuth(token: "k"))), ("hangUp", .command(.hangUp())),
      ("refreshNothing", .command(.refreshAuth(token: nil))),
      ("connectVideo", video("connect")), ("exitVideo", video("exit")),
      ("commands", .command(.extra(name: "commands", payload: [["name": "agent_command"]]))),
      ("results", .command(.extra(name: "command_results", payload: [["command_request_id": "1"]]))),
      ("request", .command(.extra(name: "RequestToRespond", payload: ["text": "why"]))),
      ("wrongRequest", .command(.extra(name: "RequestToRespond", payload: ["type": "song"]))),
      ("largeAsk", .command(.ask("why", images: [large]))),
      ("muteVideo", .command(.mute(.video, isOn: true))), ("unmute", .command(.mute(.audio, isOn: false))),
      ("taskStarted", try whole(#"{"header":{"event":"task-started"},"payload":{}}"#)),
      ("usage", try whole(#"{"header":{"event":"task-started"},"payload":{"usage":{"invoke":1}}}"#)),
      ("drain", .drain), ("sourcesEnded", .sourcesEnded), ("tick", .tick),
      ("timeout", .command(.hangUp(reason: DialogCommand.timeout))),
      ("extra", .command(.extra(name: "what", payload: .null))), ("audible", .audible),
      ("finished", .finished), ("delivered", .delivered), ("replyCancelled", .replyCancelled),
      ("audioEnded", .audioEnded), ("begin", .command(.begin())),
      ("resume", .command(.begin(values: ["dialog": "d9"]))),
      ("wrongBegin", .command(.begin(values: ["voice": "x"]))),
      ("call", .command(.call(DialogCallRequest(to: "7")))),
      ("muteScreen", .command(.mute(.screen, isOn: true))), ("hangUpCall", .command(.hangUp(call: "c"))),
    ]
  }

  /// How each phase is reached.
  static func way(to phase: BailianSession.Phase, _ mode: DialogMode) -> [String] {
    let listening = ["start", "opened", "Started", "Listening"]
    let responding = listening + ["Thinking", "Responding", "RespondingStarted", "audio", "audible"]
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
    // A session that waits after the end; otherwise this is the way to closed.
    case .ended, .closed: listening + ["hangUp", "taskFinished"]
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
    case .post(.interrupted(let source, _)): "interrupted \(source.rawValue)"
    case .post(.error(let error)), .refuse(let error): "error \(error.category.rawValue)"
    case .post(.replyEnded(_, let count)): "replyEnded \(count)"
    case .post(let event): event.name
    case .deliver: "deliver"
    case .deliverImage: "deliverImage"
    case .deliverFile: "deliverFile"
    case .endUtterance: "endUtterance"
    case .cancelReply: "cancelReply"
    case .stream(let address): address == nil ? "stream over" : "stream"
    case .useCredential: "useCredential"
    case .answerLater: "answerLater"
    case .end(let error): error == nil ? "end" : "fail"
    }
  }

  /// Every phase with every input that has an effect: `listening Thinking: thinking [state thinking]`.
  static func table(_ mode: DialogMode) throws -> [String] {
    var lines: [String] = []
    for phase in BailianSession.Phase.allCases {
      let before = try session(rules(mode, waitsAfterEnd: phase == .ended), way(to: phase, mode))
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
