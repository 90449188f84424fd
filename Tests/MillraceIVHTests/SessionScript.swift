import MillraceCore
import MillraceDialog
import MillraceJSON

@testable import MillraceIVH

/// How to reach each phase, the inputs by the names in the tables, and short names for actions.
enum SessionScript {
  static let second: Nanoseconds = 1_000_000_000

  static func rules(
    _ generation: IVHGeneration, _ driver: IVHCreation.Driver = .text, followsPlayback: Bool = true,
    waitsAfterEnd: Bool = false
  ) -> IVHRules {
    var creation = IVHCreation(user: "u", avatar: generation == .stream ? .account : .project("p"))
    creation.driver = driver
    var rules = IVHRules(
      generation, creation, reconnect: ReconnectPolicy(Backoff(first: second, jitter: 0, seed: 1)))
    rules.followsPlayback = followsPlayback
    rules.waitsAfterEnd = waitsAfterEnd
    return rules
  }

  static func push(_ payload: String, _ generation: IVHGeneration) -> IVHInput {
    let frame = #"{"Header":{"Code":0},"Payload":{"SessionId":"s1",\#(payload)}}"#
    do throws(JSONFormProblem) {
      return .message(.push(try IVHPush(parsing: Array(frame.utf8), generation)))
    } catch { return .invalidMessage("\(error)") }
  }

  static func code(_ code: Int, _ generation: IVHGeneration) -> IVHInput {
    let frame = #"{"Header":{"Code":\#(code),"Message":"m"},"Payload":{"SessionId":"s1"}}"#
    do throws(JSONFormProblem) {
      return .message(.push(try IVHPush(parsing: Array(frame.utf8), generation)))
    } catch { return .invalidMessage("\(error)") }
  }

  static func answer(_ payload: String, to number: Int) -> IVHInput {
    do {
      let bytes = Array(#"{"Header":{"Code":0},"Payload":{\#(payload)}}"#.utf8)
      return .message(.answer(try IVHAnswer.parse(bytes).get(), to: number))
    } catch { return .invalidMessage("\(error)") }
  }

  static let loss = DialogError(vendor: "ivh", category: .network, reaction: .reconnect, text: "gone")

  /// The inputs of a table; `number` is that of the latest request.
  static func inputs(_ generation: IVHGeneration, _ number: Int) -> [(name: String, input: IVHInput)] {
    let isStream = generation == .stream
    let (start, over) = isStream ? ("speak_start", "speak_over") : ("TextStart", "TextOver")
    func state(_ word: String) -> IVHInput {
      push(#""Type":3,"SpeakStatus":"\#(word)""# + (isStream ? #","SpeechId":1"# : ""), generation)
    }
    return [
      ("start", .start), ("opened", .opened),
      ("created", answer(#""SessionId":"s1","SessionStatus":1,"PlayStreamAddr":"rtmp://h/s1""#, to: number)),
      ("preparing", answer(#""SessionId":"s1","SessionStatus":3"#, to: number)),
      ("closed", answer(#""SessionStatus":2"#, to: number)),
      ("unprepared", answer(#""SessionStatus":4"#, to: number)),
      ("late", answer(#""SessionStatus":5"#, to: number)),
      ("quota", .message(.refused(IVHFault(100_008), to: number))),
      ("noSession", .message(.refused(IVHFault(110_006), to: number))),
      ("unanswered", .message(.failed(loss, to: number))), ("firstPicture", .firstPicture),
      ("channelOpened", .message(.channelOpened)), ("channelLost", .message(.channelLost(loss))),
      ("speech", push(#""Type":2,"Text":"a""# + (isStream ? #","SpeechId":1"# : ""), generation)),
      ("protected", push(#""Type":2,"Text":"a","Uninterrupt":true"#, generation)),
      ("startSpeaking", state(start)), ("over", state(over)),
      (
        "failed",
        isStream ? push(#""Type":5"#, generation) : push(#""Type":9,"ErrorCode":-111005"#, generation)
      ),
      ("replaced", code(110_022, generation)), ("gone", code(110_013, generation)),
      ("tooLarge", code(110_001, generation)), ("unknown", push(#""Type":77"#, generation)),
      ("foreign", .message(.push(foreign(generation)))), ("invalid", .invalidMessage("why")),
      ("lost", .lost(loss)), ("say", .command(.say("words"))),
      ("sayNow", .command(.say("words", isForced: true))), ("ask", .command(.ask("why", images: []))),
      ("askImage", .command(.ask("why", images: [.base64("AA==")]))), ("sayNothing", .command(.say(""))),
      ("interrupt", .command(.interrupt())), ("force", .command(.interrupt(isForced: true))),
      ("update", .command(.update(["ImagePosition": 0, "ImagePositionVertical": 0, "ImageZoom": 1]))),
      ("wrongUpdate", .command(.update(["Zoom": 1]))),
      ("stat", .command(.extra(name: "statSession", payload: .null))),
      ("list", .command(.extra(name: "listSession", payload: .null))),
      ("config", .command(.extra(name: "queryConfig", payload: .null))),
      ("part", .command(.extra(name: "streamText", payload: ["text": "a"]))),
      ("what", .command(.extra(name: "what", payload: .null))),
      ("newSession", .command(.extra(name: "newSession", payload: .null))), ("begin", .command(.begin())),
      ("mute", .command(.mute(.audio, isOn: true))), ("startSpeech", .command(.startSpeech)),
      ("stopSpeech", .command(.stopSpeech)), ("cancelSpeech", .command(.cancelSpeech)),
      ("refreshAuth", .command(.refreshAuth(token: "t"))), ("setRole", .command(.setRole("r"))),
      ("hangUp", .command(.hangUp())), ("voiceBegan", .voiceBegan), ("voiceEnded", .voiceEnded),
      ("audioEnded", .audioEnded), ("finished", .finished), ("replyCancelled", .replyCancelled),
      ("drain", .drain), ("sourcesEnded", .sourcesEnded), ("tick", .tick),
      ("timeout", .command(.hangUp(reason: DialogCommand.timeout))),
    ]
  }

  private static func foreign(_ generation: IVHGeneration) -> IVHPush {
    var push = IVHPush(.newInput)
    push.session = "s2"
    return push
  }

  /// How each phase is reached.
  static func way(to phase: IVHSession.Phase, _ generation: IVHGeneration) -> [String] {
    let created = ["start", "opened", "created"]
    let opening = generation == .stream ? created : created + ["firstPicture", "created"]
    let arriving = generation == .stream ? opening + ["channelOpened"] : created
    let starting = arriving + ["firstPicture"]
    let listening = generation == .stream ? starting + ["created"] : opening + ["channelOpened"]
    let speaking = listening + ["say", "speech", "startSpeaking"]
    return switch phase {
    case .idle: []
    case .connecting: ["start"]
    case .creating: ["start", "opened"]
    case .preparing: ["start", "opened", "preparing"]
    case .arriving: arriving
    case .starting: starting
    case .opening: opening
    case .listening: listening
    case .thinking: listening + ["say"]
    case .speaking: speaking
    case .draining: speaking + ["over"]
    case .yielding: speaking + ["interrupt"]
    case .waiting: listening + ["channelLost"]
    case .resuming: listening + ["channelLost", "later"]
    case .closing: listening + ["hangUp"]
    // A session that waits after the end; otherwise this is the way to closed.
    case .ended, .closed: listening + ["hangUp", "created"]
    }
  }

  /// A session, driven by the names of inputs; `later` is a tick two seconds later.
  struct Player {
    var session: IVHSession
    let generation: IVHGeneration
    var now = second
    /// The number of the latest request.
    var number = 0

    init(_ rules: IVHRules) {
      session = IVHSession(rules)
      generation = rules.generation
    }

    mutating func play(_ input: IVHInput) -> [IVHAction] {
      let actions = session.handle(input, at: now)
      for case .send(.call(_, let latest)) in actions { number = latest }
      return actions
    }

    @discardableResult
    mutating func play(_ name: String) -> [IVHAction] {
      if name == "later" {
        now += 2 * second
        return play(.tick)
      }
      guard let input = inputs(generation, number).first(where: { $0.name == name })?.input else {
        preconditionFailure("there is no input \(name)")
      }
      return play(input)
    }
  }

  static func word(_ action: IVHAction) -> String {
    switch action {
    case .connect: "connect"
    case .disconnect: "disconnect"
    case .send(.call(let call, _)): "> \(IVHGeneration.stream.name(of: call.operation))"
    case .send(.openChannel): "> open"
    case .send(.closeChannel): "> close"
    case .send(.command(let command)): "> \(command.name.rawValue)"
    case .send(.beginVoice): "new utterance"
    case .send(.endVoice(let isCut)): isCut ? "> cut voice" : "> end voice"
    case .post(.state(let state)): "state \(state.rawValue)"
    case .post(.interrupted(let source, _)): "interrupted \(source.rawValue)"
    case .post(.error(let error)): "error \(error.category.rawValue)"
    case .refuse: "refuse"
    case .post(.gate(let gate, let isOn, _)): "\(gate.rawValue) \(isOn ? "on" : "off")"
    case .post(let event): event.name
    case .stream(let address): address == nil ? "no stream" : "stream"
    case .deliver: "deliver"
    case .deliverImage: "deliverImage"
    case .deliverFile: "deliverFile"
    case .endUtterance: "endUtterance"
    case .cancelReply: "cancelReply"
    case .useCredential: "useCredential"
    case .answerLater: "answerLater"
    case .end(let error): error == nil ? "end" : "fail"
    }
  }

  /// Every phase with every input that has an effect: `listening say: thinking [> SEND_TEXT, state thinking]`.
  static func table(_ generation: IVHGeneration, _ driver: IVHCreation.Driver = .text) -> [String] {
    var lines: [String] = []
    for phase in IVHSession.Phase.allCases {
      var before = Player(rules(generation, driver, waitsAfterEnd: phase == .ended))
      for name in way(to: phase, generation) { before.play(name) }
      if before.session.phase != phase { lines.append("the way to \(phase) ends in \(before.session.phase)") }
      for (name, input) in inputs(generation, before.number) {
        var after = before
        let words = after.play(input).map(word)
        let isSame = after.session.phase == phase && after.session.uplink == before.session.uplink
        guard !isSame || !words.isEmpty else { continue }
        let uplink = after.session.uplink == before.session.uplink ? "" : " \(after.session.uplink.rawValue)"
        let list = words.isEmpty ? "" : " [\(words.joined(separator: ", "))]"
        lines.append("\(phase.rawValue) \(name): \(after.session.phase.rawValue)\(uplink)\(list)")
      }
    }
    return lines
  }
}
