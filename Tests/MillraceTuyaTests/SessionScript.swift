import MillraceCore
import MillraceDialog
import MillraceJSON
import Synchronization

@testable import MillraceTuya

/// How to reach each phase, the inputs by the names in the tables, and short names for actions.
enum SessionScript {
  static let second: Nanoseconds = 1_000_000_000

  static func rules(
    _ mode: DialogMode, _ speech: TuyaRules.Speech? = nil, followsPlayback: Bool = true,
    waitsAfterEnd: Bool = false
  ) -> TuyaRules {
    var rules = TuyaRules(mode, reconnect: ReconnectPolicy(Backoff(first: second, jitter: 0, seed: 1)))
    if let speech { rules.speech = speech }
    rules.followsPlayback = followsPlayback
    rules.waitsAfterEnd = waitsAfterEnd
    return rules
  }

  /// A document of the cloud.
  static func text(_ json: String) -> TuyaInput {
    do {
      return .message(.text(try TuyaText(parsing: Array(json.utf8))))
    } catch { return .message(.unreadableText("\(error)")) }
  }

  static func asr(_ words: String, _ id: String, isFinal: Bool = false) -> TuyaInput {
    text(#"{"bizId":"\#(id)","bizType":"ASR","eof":\#(isFinal ? 1 : 0),"data":{"text":"\#(words)"}}"#)
  }

  static func nlg(_ words: String, _ id: String, isFinal: Bool = false, _ more: String = "") -> TuyaInput {
    text(
      #"{"bizId":"\#(id)","bizType":"NLG","eof":\#(isFinal ? 1 : 0),"data":{"appendMode":"append","content":"\#(words)"\#(more)}}"#
    )
  }

  static func skill(_ code: String, _ id: String, _ more: String = "", isFinal: Bool = true) -> TuyaInput {
    text(
      #"{"bizId":"\#(id)","bizType":"SKILL","eof":\#(isFinal ? 1 : 0),"data":{"code":"\#(code)"\#(more)}}"#)
  }

  static func emotion(_ text: String, _ id: String, sequence: Int, isFinal: Bool) -> TuyaInput {
    skill(
      "llm_emo", id,
      #","skillContent":{"text":"\#(text)","startTime":\#(sequence * 100),"endTime":\#(sequence * 100 + 100),"sequence":\#(sequence)}"#,
      isFinal: isFinal)
  }

  static func event(_ type: TuyaEventType, _ id: String, _ data: JSONValue? = nil) -> TuyaInput {
    .message(.event(TuyaCloudEvent(type, id: id, data: data)))
  }

  static func extra(_ name: String, _ payload: JSONValue = .null) -> TuyaInput {
    .command(.extra(name: name, payload: payload))
  }

  static let loss = DialogError.tuya(.sendFailed, "gone", reaction: .reconnect)
  static let began = TuyaInput.message(
    .streamBegan(.audio(TuyaAudioParameters(.mp3, channels: 1, bits: 16, rate: 16_000))))
  /// The beginning of a JPEG.
  static let jpeg = "/9j/"

  /// The inputs of a table.
  /// - Parameters:
  ///   - own: the event that the session has begun last.
  ///   - round: the round of it that the cloud answers.
  ///   - number: that of the latest call.
  static func inputs(_ own: String, _ round: String, _ number: Int) -> [(name: String, input: TuyaInput)] {
    [
      ("start", .start), ("opened", .opened), ("connected", .message(.connected(id: "c", TuyaTerms()))),
      ("token", .message(.token(TuyaTerms(bizCode: 7), to: number))),
      ("noToken", .message(.tokenFailed(TuyaTokenProblem("none", isFinal: true), to: number))),
      ("noTokenNow", .message(.tokenFailed(TuyaTokenProblem("not now", isFinal: false), to: number))),
      ("willExpire", .message(.tokenWillExpire(in: second))), ("expired", .message(.tokenExpired)),
      ("answered", .message(.sessionAnswered(.ok))), ("refused", .message(.sessionAnswered(.badRequest))),
      ("closed200", .message(.sessionClosed(.ok))),
      ("closed401", .message(.sessionClosed(.unauthenticated))),
      ("closed500", .message(.sessionClosed(.internalError))),
      ("closed602", .message(.sessionClosed(.reused))), ("closed605", .message(.sessionClosed(.expired))),
      ("closed607", .message(.sessionClosed(.sessionsFull))),
      ("closed1001", .message(.sessionClosed(.tokenExpired))),
      ("state1001", .message(.sessionState(.tokenExpired))),
      ("state5", .message(.sessionState(TuyaStatus(rawValue: 5)))),
      ("willDisconnect", .message(.willDisconnect)), ("EventStart", event(.start, round)),
      ("PayloadsEnd", event(.payloadsEnd, round)), ("EventEnd", event(.end, round)),
      ("wholeEnd", event(.end, own)), ("otherEnd", event(.end, "other")),
      ("ChatBreak", event(.chatBreak, round)), ("otherBreak", event(.chatBreak, "other")),
      ("ServerVAD", event(.serverVAD, round)),
      ("mcp", event(.mcpCommand, "m", ["jsonrpc": "2.0", "id": 1, "method": "tools/list"])),
      ("timeover", event(.serverTimeover, round)), ("sleep", event(.sleep, round)),
      ("oneShot", event(.oneShot, round)), ("event77", event(TuyaEventType(rawValue: 77), round)),
      ("streamBegan", began), ("streamEnded", .message(.streamEnded(.audio))), ("audio", .audio),
      ("image", .image), ("imageHeld", .imageHeld), ("asr", asr("hello", round)),
      ("asrFinal", asr("hello there", round, isFinal: true)), ("asrEmpty", asr("", round, isFinal: true)),
      ("nlg", nlg("well", round)), ("nlgEnd", nlg("", round, isFinal: true)),
      ("control", skill("DeviceControl", round)), ("text77", text(#"{"bizType":"77","data":{}}"#)),
      ("unreadable", .message(.unreadableText("why"))),
      ("file", .message(.file(path: "/f", name: "f", kind: .file))),
      ("progress", .message(.progress(DialogProgress("upload", command: "\(number)")))),
      ("failed", .message(.failed(.tuya(.unreadableFile, "no", scope: .command), call: number))),
      ("sent", .message(.sent(call: number))), ("unknown", .message(.unknown(["type": 99]))),
      ("invalid", .invalidMessage("why")), ("lost", .lost(loss)),
      ("lost602", .lost(.tuya(closedWith: .reused))), ("lost605", .lost(.tuya(closedWith: .expired))),
      ("lost400", .lost(.tuya(closedWith: .badRequest))), ("startSpeech", .command(.startSpeech)),
      ("stopSpeech", .command(.stopSpeech)), ("cancelSpeech", .command(.cancelSpeech)),
      ("interrupt", .command(.interrupt())), ("ask", .command(.ask("why", images: []))),
      ("askImage", .command(.ask("", images: [.base64(jpeg)]))),
      ("askURL", .command(.ask("why", images: [.url("u")]))), ("askNothing", .command(.ask("", images: []))),
      ("say", .command(.say("words"))), ("update", .command(.update(["a": 1]))),
      ("mute", .command(.mute(.audio, isOn: true))), ("unmute", .command(.mute(.audio, isOn: false))),
      ("refreshAuth", .command(.refreshAuth(token: "t"))), ("renewAuth", .command(.refreshAuth(token: nil))),
      ("setRole", .command(.setRole("r"))), ("begin", .command(.begin())),
      ("beginWrong", .command(.begin(values: ["user": "u"]))), ("queryAgentToken", extra("queryAgentToken")),
      ("createSession", extra("createSession")), ("closeSession", extra("closeSession", ["code": 601])),
      ("sendEventStart", extra("sendEventStart")),
      ("sendEventPayloadsEnd", extra("sendEventPayloadsEnd", ["dataChannel": "audio"])),
      ("sendEventEnd", extra("sendEventEnd")), ("sendEventChatBreak", extra("sendEventChatBreak")),
      ("eventTrigger", extra("eventTrigger", ["data": ["a": 1]])),
      ("sendText", extra("sendText", ["text": "why"])),
      ("sendImage", extra("sendImage", ["path": "/p"])), ("sendFile", extra("sendFile", ["path": "/p"])),
      ("mcpResult", extra("mcpResult", ["id": 1, "text": "done"])), ("what", extra("what")),
      ("voiceBegan", .voiceBegan), ("voiceEnded", .voiceEnded), ("audible", .audible),
      ("finished", .finished), ("delivered", .delivered), ("replyCancelled", .replyCancelled),
      ("firstPicture", .firstPicture), ("audioEnded", .audioEnded), ("sourcesEnded", .sourcesEnded),
      ("drain", .drain), ("tick", .tick), ("hangUp", .command(.hangUp())),
      ("timeout", .command(.hangUp(reason: DialogCommand.timeout))),
    ]
  }

  /// How each phase is reached.
  static func way(to phase: TuyaSession.Phase, _ mode: DialogMode) -> [String] {
    let listening = ["start", "opened", "connected"]
    let talking = listening + (mode == .duplex ? ["asr"] : ["startSpeech"])
    let thinking = talking + (mode == .pushToTalk ? ["stopSpeech"] : ["ServerVAD"])
    let responding = thinking + ["EventStart", "nlg", "streamBegan", "audio"]
    return switch phase {
    case .idle: []
    case .connecting: ["start"]
    case .renewing: listening + ["closed1001"]
    case .listening: listening
    case .talking: talking
    case .thinking: thinking
    case .responding: responding
    case .draining: responding + ["streamEnded", "EventEnd"]
    case .waiting: listening + ["lost"]
    // A session that waits after the end; otherwise this is the way to closed.
    case .ended, .closed: listening + ["hangUp"]
    }
  }

  /// A session, driven by the names of inputs; `later` is a tick two seconds later.
  struct Player {
    var session: TuyaSession
    var now = second
    /// The event that the session has begun last, and the number of its latest call.
    var own = "none", number = 0
    private let isLong: Bool

    init(_ rules: TuyaRules) {
      let ids = Ids()
      isLong = rules.mode == .duplex && rules.speech == .long
      session = TuyaSession(rules) { ids.next() }
    }

    var round: String { isLong ? own + "-1" : own }

    mutating func play(_ input: TuyaInput) -> [TuyaAction] {
      let actions = session.handle(input, at: now)
      for case .send(let call) in actions {
        switch call {
        case .startEvent(let id, _): own = id
        case .requestToken(let latest, _), .image(_, _, _, _, let latest), .file(_, _, _, _, let latest):
          number = latest
        default: break
        }
      }
      return actions
    }

    @discardableResult
    mutating func play(_ name: String) -> [TuyaAction] {
      if name == "later" {
        now += 2 * second
        return play(.tick)
      }
      guard let input = inputs(own, round, number).first(where: { $0.name == name })?.input else {
        preconditionFailure("there is no input \(name)")
      }
      return play(input)
    }

    /// The words of what several inputs cause.
    mutating func words(_ names: String...) -> [String] { names.flatMap { play($0) }.map(word) }

  }

  /// Ids in order: `id1`, `id2`, …
  final class Ids: Sendable {
    private let count = Atomic<Int>(0)
    func next() -> String { "id\(count.add(1, ordering: .relaxed).newValue)" }
  }

  static func word(_ action: TuyaAction) -> String {
    switch action {
    case .connect: "connect"
    case .disconnect: "disconnect"
    case .send(let call): "> " + word(call)
    case .post(.state(let state)): "state \(state.rawValue)"
    case .post(.interrupted(let source, _)): "interrupted \(source.rawValue)"
    case .post(.error(let error)): "error \(error.code ?? 0) \(error.scope.rawValue)"
    case .refuse(let error): "refuse \(error.code ?? 0)"
    case .post(.gate(let gate, let isOn, _)): "\(gate.rawValue) \(isOn ? "on" : "off")"
    case .post(.extra(let name, _)): "extra \(name)"
    case .post(.answer(let answer)):
      if case .failed(let error) = answer.result { "failed \(error.code ?? 0)" } else { "answer" }
    case .post(let event): event.name
    case .stream: "stream"
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

  static func word(_ call: TuyaCall) -> String {
    switch call {
    case .requestToken(_, let rejects): rejects ? "new token" : "token"
    case .createSession: "create"
    case .closeSession(let status): "close \(status.rawValue)"
    case .startEvent: "start"
    case .beginVoice: "voice"
    case .endVoice(let isCut): isCut ? "cut voice" : "end voice"
    case .endPayloads(_, let channel, _): "payloads \(channel.text)"
    case .endEvent: "end"
    case .breakEvent: "break"
    case .event(let type, _, _, _): "event \(type.rawValue)"
    case .text: "text"
    case .image: "image"
    case .heldImage: "held image"
    case .file(_, _, let channel, _, _): "file as \(channel.text)"
    }
  }

  /// Every phase with every input that has an effect: `listening ask: thinking [> start, > text, …]`.
  static func table(_ mode: DialogMode) -> [String] {
    var lines: [String] = []
    for phase in TuyaSession.Phase.allCases {
      var before = Player(rules(mode, waitsAfterEnd: phase == .ended))
      for name in way(to: phase, mode) { before.play(name) }
      if before.session.phase != phase { lines.append("the way to \(phase) ends in \(before.session.phase)") }
      for (name, input) in inputs(before.own, before.round, before.number) {
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
