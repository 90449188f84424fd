import MillraceDialog
import Testing

/// One of every event, and more of those that have several forms.
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
  DialogError(vendor: "artc", name: "x", category: .network, reaction: .goOn, text: ""),
  DialogError(vendor: "nim", category: .request, reaction: .ended, text: "busy"),
]

private let everyCommand: [DialogCommand] = [
  .startSpeech, .stopSpeech, .cancelSpeech, .interrupt, .say("hallo"), .ask("was ist das?", images: []),
  .ask("", images: [.url("https://example.org"), .base64("AAAA")]), .update(["voice": "x"]),
  .mute(.audio, isOn: true), .mute(.video, isOn: false), .setRole("viewer"), .refreshAuth(token: nil),
  .refreshAuth(token: "t"), .hangUp, .extra(name: "busyLine", payload: 9),
]

@Suite("the vocabulary of dialogues") struct VocabularyTests {
  @Test("every event comes back from its JSON as it was", arguments: everyEvent)
  func events(event: DialogEvent) throws {
    let text = event.json.text
    #expect(try DialogEvent(json: JSONValue(parsing: text)) == event)
  }

  @Test("every event has a contract of its name at its index, and each contract an event")
  func contracts() {
    #expect(Set(everyEvent.map(\.index)) == Set(DialogEvent.contracts.indices))
    for event in everyEvent {
      #expect(event.json["event"]?.string == DialogEvent.contracts[event.index].name)
    }
    #expect(Set(DialogEvent.contracts.map(\.name)).count == DialogEvent.contracts.count)
  }

  @Test("every command comes back from its JSON as it was", arguments: everyCommand)
  func commands(command: DialogCommand) throws {
    #expect(try DialogCommand(json: JSONValue(parsing: command.json.text)) == command)
  }

  @Test(
    "what is no event says what is missing, and nothing of the content",
    arguments: [
      (#"{}"#, #"an event needs a text "event""#), (#"{"event":"hm"}"#, #""hm" is no event of a dialogue"#),
      (
        #"{"event":"state","state":"asleep"}"#,
        #""state": "state" is none of idle, connecting, listening, thinking, responding, reconnecting, closed"#
      ),
      (#"{"event":"transcript","final":true}"#, #""transcript": it needs a text "text""#),
      (
        #"{"event":"transcript","text":"secret","final":1}"#,
        #""transcript": "final" has to be true or false"#
      ),
      (#"{"event":"replyEnded","utterances":"2"}"#, #""replyEnded": it needs a whole number "utterances""#),
    ])
  func badEvents(text: String, words: String) throws {
    let json = try JSONValue(parsing: text)
    #expect { try DialogEvent(json: json) } throws: { "\($0)" == words }
  }

  @Test(
    "what is no command says what is missing",
    arguments: [
      (#"{"text":"x"}"#, #"a command needs a text "command""#),
      (#"{"command":"dance"}"#, #""dance" is no command of a dialogue"#),
      (#"{"command":"ask","text":"x","images":{}}"#, #""ask": "images" has to be a list"#),
      (#"{"command":"ask","text":"x","images":[{}]}"#, #""ask": an image needs a text "url" or "base64""#),
      (#"{"command":"mute","track":"smell","on":true}"#, #""mute": "track" is none of audio, video"#),
    ])
  func badCommands(text: String, words: String) throws {
    let json = try JSONValue(parsing: text)
    #expect { try DialogCommand(json: json) } throws: { "\($0)" == words }
  }

  @Test("a service's control port understands commands and playback's own events, and passes over the rest")
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
    #expect(throws: DialogFormProblem.self) { try read(#"{"event":"replyFinished","reply":3}"#) }
    #expect(
      try read(#"{"event":"replyFinished","reply":3,"samples":1,"ms":1e300}"#)
        == .playback(.finished(reply: 3, samples: 1, milliseconds: 0)))
  }

  @Test("an error in words has the vendor, the kind, the number, the name and the text")
  func errorWords() {
    #expect(everyError[0].description == "bailian: quota 449 TooManyInterrupt: slow down")
    #expect(everyError[2].description == "tuya: auth: token")
  }
}
