import MillraceDialog
import MillraceJSON
import Testing

/// Every event, in several forms where there are some.
let everyEvent: [DialogEvent] =
  [
    .connected, .conversationStarted(id: "d-1"), .speechStarted, .speechEnded,
    .transcript(text: "wie \"geht\" es", isFinal: false), .transcript(text: "", isFinal: true),
    .reply(DialogReply(text: "gut", spoken: "g u t", isFinal: true, mode: .append, round: "r")),
    .reply(DialogReply(text: "gut", isFinal: false, mode: .replace)), .replyStarted(round: "r"),
    .replyStarted(round: nil), .replyEnded(round: nil, utterances: 0), .replyEnded(round: "r", utterances: 2),
    .command(name: "visual_qa", payload: ["shot": true]),
    .media(DialogMedia(.image, url: "https://example.org/a.jpg")),
    .media(
      DialogMedia(.popup, title: "t", text: "x", options: ["yes", "no"], detail: ["style": 2])),
    .emotion([
      DialogEmotion("happy", startMilliseconds: 0, endMilliseconds: 1200),
      DialogEmotion("sad", startMilliseconds: 1200),
    ]), .usage(["tokens": 12]), .latency(name: "firstByte", milliseconds: 12.5),
    .authWillExpire(inMilliseconds: 30_000), .authWillExpire(inMilliseconds: nil), .authExpired,
    .kicked(.replaced, text: "elsewhere"), .peer(DialogPeer("7", .left, reason: "dropped")),
    .peer(DialogPeer("7", .tracks, sendsAudio: true, sendsVideo: false)),
    .netQuality(index: 0.2625, grade: .excellent, peer: nil),
    .netQuality(index: 1.5, grade: .veryPoor, peer: "7"), .extra(name: "reasoning", payload: "because"),
    .unknown(["event": "brandNew", "n": 1]),
  ] + DialogState.allCases.map { .state($0) } + InterruptionSource.allCases.map { .interrupted(by: $0) }
  + DialogGate.allCases.flatMap { [.gate($0, isOn: true), .gate($0, isOn: false)] }
  + everyError.map { .error($0) }

private let everyError: [DialogError] = [
  DialogError(
    vendor: "bailian", code: 449, name: "TooManyInterrupt", category: .quota,
    reaction: .retry(afterMilliseconds: 2000), text: "slow down"),
  DialogError(vendor: "ivh", code: -101000, category: .internal, reaction: .reconnect, text: "render"),
  DialogError(vendor: "tuya", category: .auth, reaction: .refuse, text: "token"),
  DialogError(vendor: "artc", name: "x", category: .network, reaction: .continue, text: ""),
  DialogError(vendor: "nim", category: .request, reaction: .ended, text: "busy"),
]

private let everyCommand: [DialogCommand] = [
  .startSpeech, .stopSpeech, .cancelSpeech, .interrupt, .say("hallo"), .ask("was ist das?", images: []),
  .ask("", images: [.url("https://example.org"), .base64("AAAA")]), .update(["voice": "x"]),
  .mute(.audio, isOn: true), .mute(.video, isOn: false), .setRole("viewer"), .refreshAuth(token: nil),
  .refreshAuth(token: "t"), .hangUp, .extra(name: "busyLine", payload: 9),
]

@Suite("dialogue vocabulary") struct VocabularyTests {
  @Test("every event is read back from its JSON unchanged", arguments: everyEvent)
  func events(event: DialogEvent) throws {
    let text = event.json.text
    #expect(try DialogEvent(json: JSONValue(parsing: text)) == event)
  }

  @Test("every event has the contract of its name at its index, and each contract an event")
  func contracts() {
    #expect(Set(everyEvent.map(\.index)) == Set(DialogEvent.contracts.indices))
    for event in everyEvent {
      #expect(event.json["event"]?.string == DialogEvent.contracts[event.index].name)
    }
    #expect(Set(DialogEvent.contracts.map(\.name)).count == DialogEvent.contracts.count)
  }

  @Test("every command is read back from its JSON unchanged", arguments: everyCommand)
  func commands(command: DialogCommand) throws {
    #expect(try DialogCommand(json: JSONValue(parsing: command.json.text)) == command)
  }

  @Test(
    "an invalid event is rejected with what is missing, without its content",
    arguments: [
      (#"{}"#, #""event" must be a string"#), (#"{"event":"hm"}"#, #""event" has the unknown value "hm""#),
      (
        #"{"event":"state","state":"asleep"}"#,
        #""state.state" must be one of idle, connecting, listening, thinking, responding, reconnecting, closed"#
      ),
      (#"{"event":"transcript","final":true}"#, #""transcript.text" must be a string"#),
      (
        #"{"event":"transcript","text":"secret","final":1}"#,
        #""transcript.final" must be true or false"#
      ),
      (#"{"event":"replyEnded","utterances":"2"}"#, #""replyEnded.utterances" must be an integer"#),
      (#"{"event":"latency","name":"n","ms":1e999}"#, #""latency.ms" must be a number"#),
    ])
  func badEvents(text: String, message: String) throws {
    let json = try JSONValue(parsing: text)
    #expect { try DialogEvent(json: json) } throws: { "\($0)" == message }
  }

  @Test(
    "an invalid command is rejected with what is missing",
    arguments: [
      (#"{"text":"x"}"#, #""command" must be a string"#),
      (#"{"command":"dance"}"#, #""command" has the unknown value "dance""#),
      (#"{"command":"ask","text":"x","images":{}}"#, #""ask.images" must be an array"#),
      (
        #"{"command":"ask","text":"x","images":[{}]}"#,
        #""ask.images[0]" must have a string "url" or "base64""#
      ),
      (#"{"command":"mute","track":"smell","on":true}"#, #""mute.track" must be one of audio, video"#),
    ])
  func badCommands(text: String, message: String) throws {
    let json = try JSONValue(parsing: text)
    #expect { try DialogCommand(json: json) } throws: { "\($0)" == message }
  }

  @Test("the control port accepts commands and playback's own events, and ignores the rest")
  func control() throws {
    func read(_ text: String) throws -> DialogControl? { try DialogControl.read(JSONValue(parsing: text)) }
    #expect(try read(#"{"command":"interrupt"}"#) == .command(.interrupt))
    #expect(
      try read(#"{"time":1.5,"node":"play","event":"replyAudible","reply":3,"at":1.52}"#)
        == .playback(.audible(reply: 3)))
    #expect(
      try read(#"{"event":"replyFinished","reply":3,"samples":480,"ms":10.7}"#)
        == .playback(.finished(reply: 3, samples: 480, milliseconds: 10)))
    #expect(
      try read(#"{"event":"interrupted","reply":0,"samples":0,"ms":0,"position":5}"#)
        == .playback(.cut(reply: 0, samples: 0, milliseconds: 0)))
    #expect(try read(#"{"event":"late","ms":3,"count":1}"#) == nil)
    #expect(throws: JSONFormProblem.self) { try read(#"{"event":"replyFinished","reply":3}"#) }
    #expect(
      try read(#"{"event":"replyFinished","reply":3,"samples":1,"ms":1e300}"#)
        == .playback(.finished(reply: 3, samples: 1, milliseconds: 0)))
  }

  @Test("an error is described by vendor, category, code, name and text")
  func errorDescriptions() {
    #expect(everyError[0].description == "bailian: quota 449 TooManyInterrupt: slow down")
    #expect(everyError[2].description == "tuya: auth: token")
  }
}
