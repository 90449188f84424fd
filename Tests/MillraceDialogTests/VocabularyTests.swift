import MillraceDialog
import MillraceJSON
import Testing

/// Every event, in several forms where there are some.
let everyEvent: [DialogEvent] =
  [
    .connected, .conversationStarted(id: "d-1"), .speechStarted, .speechEnded,
    .transcript(text: "wie \"geht\" es", isFinal: false), .transcript(text: "", isFinal: true, round: "r"),
    .reply(DialogReply(text: "gut", spoken: "g u t", isFinal: true, mode: .append, round: "r")),
    .reply(DialogReply(text: "gut", isFinal: false, mode: .replace)), .replyStarted(round: "r"),
    .replyStarted(round: nil), .replyEnded(round: nil, utterances: 0), .replyEnded(round: "r", utterances: 2),
    .command(name: "visual_qa", payload: ["shot": true]), .command(name: "play", payload: .null, round: "r"),
    .media(DialogMedia(.image, url: "https://example.org/a.jpg")),
    .media(
      DialogMedia(.popup, title: "t", text: "x", options: ["yes", "no"], detail: ["style": 2], round: "r")),
    .media(DialogMedia(.audio, url: "https://example.org/a.mp3")),
    .media(DialogMedia(.file, url: "file:///tmp/a.pdf", name: "a.pdf")),
    .emotion([
      DialogEmotion("happy", startMilliseconds: 0, endMilliseconds: 1200),
      DialogEmotion("sad", startMilliseconds: 1200),
    ]), .emotion([], round: "r"), .usage(["tokens": 12]), .latency(name: "firstByte", milliseconds: 12.5),
    .authWillExpire(inMilliseconds: 30_000), .authWillExpire(inMilliseconds: nil), .authExpired,
    .kicked(.replaced, text: "elsewhere"), .peer(DialogPeer("7", .left, reason: "dropped")),
    .peer(DialogPeer("7", .tracks, sendsAudio: true, sendsVideo: false)),
    .peer(DialogPeer("7", .joined, name: "Ann", elapsedMilliseconds: 120)),
    .peer(DialogPeer("7", .muted, sendsAudio: false, sendsScreen: true)),
    .netQuality(DialogNetQuality(index: 0.2625, grade: .excellent)), .netQuality(measuredQuality),
    .extra(name: "reasoning", payload: "because"),
    .unknown(["event": "brandNew", "n": 1]),
  ] + roomEvents + DialogState.allCases.map { .state($0) }
  + InterruptionSource.allCases.flatMap { [.interrupted(by: $0), .interrupted(by: $0, round: "r")] }
  + DialogGate.allCases.flatMap { [.gate($0, isOn: true), .gate($0, isOn: false, round: "r")] }
  + everyError.map { .error($0) }

/// Rooms, calls, devices, and answers.
private let roomEvents: [DialogEvent] =
  [
    .call(DialogCall("c", .incoming, by: "7", media: [.audio, .video], message: "hello")),
    .call(DialogCall("c", .elsewhere, isAccepted: true)),
    .call(DialogCall("c", .ended, by: "7", reason: "bye")), .role("viewer"),
    .level(DialogLevel(decibels: -32.5)), .level(DialogLevel(peer: "7", decibels: 0)), .speaking([]),
    .speaking([DialogLevel(decibels: nil), DialogLevel(peer: "7", decibels: -20)]),
    .device(DialogDevice(.microphone, .lost, name: "USB", code: 3, text: "unplugged")),
    .progress(DialogProgress("upload", command: "c1", done: 0.5, bytes: 512, totalBytes: 1_024)),
    .progress(DialogProgress("recording")),
    .data(DialogData(.text("hi \"there\""), peer: "7", label: "chat")),
    .data(DialogData(.bytes([0, 255, 7]))), .data(DialogData(.bytes([]))),
    .answer(DialogAnswer("1", .done(["users": [7]]))), .answer(DialogAnswer("2", .done(nil))),
  ] + DialogCall.Change.allCases.map { .call(DialogCall("c", $0)) }
  + DialogTrack.allCases.flatMap { track in DialogTrackChange.allCases.map { .track(track, $0) } }
  + DialogDevice.Kind.allCases.flatMap { kind in
    DialogDevice.Change.allCases.map { .device(DialogDevice(kind, $0)) }
  }
  + everyError.map { error in
    // An answer says nothing of a scope, as its error is always that of its command.
    var error = error
    error.scope = .command
    return .answer(DialogAnswer("3", .failed(error)))
  }

private let measuredQuality: DialogNetQuality = {
  var quality = DialogNetQuality(index: 1.5, grade: .veryPoor, peer: "7")
  quality.lossPercent = 2.5
  quality.roundTripMilliseconds = 120
  quality.leastRoundTripMilliseconds = 80.5
  quality.mostRoundTripMilliseconds = 300
  quality.deviationMilliseconds = 12
  quality.jitterMilliseconds = 7.25
  return quality
}()

private let everyError: [DialogError] = [
  DialogError(
    vendor: "bailian", code: 449, name: "TooManyInterrupt", category: .quota,
    reaction: .retry(afterMilliseconds: 2000), text: "slow down"),
  DialogError(vendor: "ivh", code: -101000, category: .internal, reaction: .reconnect, text: "render"),
  DialogError(vendor: "tuya", category: .auth, reaction: .refuse, text: "token"),
  DialogError(vendor: "artc", name: "x", category: .network, reaction: .continue, text: ""),
  DialogError(vendor: "nim", category: .request, reaction: .ended, text: "busy"),
  DialogError(
    vendor: "tuya", code: 39_012, category: .network, reaction: .reconnect, scope: .reply, detail: "603",
    round: "r", text: "closed"),
  DialogError(vendor: "ivh", category: .request, reaction: .continue, scope: .command, text: "not found"),
]

private let everyCommand: [DialogCommand] = [
  .startSpeech, .stopSpeech, .cancelSpeech, .interrupt(), .interrupt(isForced: true), .say("hallo"),
  .say("", isForced: true), .ask("was ist das?", images: []), .ask("x", images: [], isForced: true),
  .ask("", images: [.url("https://example.org"), .base64("AAAA")]), .update(["voice": "x"]),
  .mute(.audio, isOn: true), .mute(.video, isOn: false), .setRole("viewer"), .refreshAuth(token: nil),
  .refreshAuth(token: "t"), .hangUp(), .hangUp(call: "c", reason: "busy"),
  .extra(name: "busyLine", payload: 9), .mute(.audio, isOn: true, peer: "7"), .begin(),
  .begin(values: ["channel": "b"]), .call(DialogCallRequest(to: "7")),
  .call(DialogCallRequest(to: "7", media: [.video, .data], message: "hello", options: ["crop": "16:9"])),
  .call(DialogCallRequest(to: "7", media: [])), .answerCall(DialogCallAnswer("c", isAccepted: true)),
  .answerCall(DialogCallAnswer("c", isAccepted: false, message: "later", options: ["record": false])),
  .publish(.audio, isOn: true), .publish(.screen, isOn: false), .subscribe(.all, .audio, isOn: true),
  .subscribe(.new, .video, isOn: false), .subscribe(.one("7"), .data, isOn: true),
  .data(DialogData(.text("hi"), peer: "7", label: "chat")), .data(DialogData(.bytes([1, 2, 3]))),
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
    let names = DialogEvent.contracts.map(\.name)
    #expect(Set(names).count == names.count)
    // Events travel with their index, and the first of them have theirs for good.
    let first = [
      "connected", "conversationStarted", "state", "speechStarted", "speechEnded", "transcript", "reply",
      "replyStarted", "replyEnded", "interrupted", "command", "media", "emotion", "gate", "usage", "latency",
      "authWillExpire", "authExpired", "kicked", "peer", "netQuality", "error", "extra", "unknown", "answer",
    ]
    #expect(Array(names.prefix(first.count)) == first)
  }

  @Test("every command is read back from its JSON unchanged", arguments: everyCommand)
  func commands(command: DialogCommand) throws {
    #expect(try DialogCommand(json: JSONValue(parsing: command.json.text)) == command)
  }

  @Test("members that events had before the others may be all there is")
  func olderEvents() throws {
    let older: [(String, DialogEvent)] = [
      (#"{"event":"transcript","text":"a","final":true}"#, .transcript(text: "a", isFinal: true)),
      (#"{"event":"interrupted","by":"user"}"#, .interrupted(by: .user)),
      (
        #"{"event":"peer","id":"7","change":"tracks","video":true}"#,
        .peer(DialogPeer("7", .tracks, sendsVideo: true))
      ),
      (
        #"{"event":"netQuality","index":0.5,"grade":"good"}"#,
        .netQuality(DialogNetQuality(index: 0.5, grade: .good))
      ),
      (#"{"event":"speaking","peers":[]}"#, .speaking([])),
      (
        #"{"event":"answer","id":"1","ok":false,"vendor":"v","category":"quota","reaction":"continue","text":"t"}"#,
        .answer(
          DialogAnswer(
            "1",
            .failed(
              DialogError(vendor: "v", category: .quota, reaction: .continue, scope: .command, text: "t"))))
      ),
    ]
    for (text, event) in older { #expect(try DialogEvent(parsing: text) == event) }
    #expect(
      try DialogCommand(json: JSONValue(parsing: #"{"command":"call","peer":"7"}"#))
        == .call(DialogCallRequest(to: "7", media: [.audio])))
    #expect(
      try DialogCommand(json: JSONValue(parsing: #"{"command":"subscribe","track":"audio","on":true}"#))
        == .subscribe(.all, .audio, isOn: true))
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
      (
        #"{"event":"call","id":"c","change":"ringing","media":["smell"]}"#,
        #""call.media[0]" must be one of audio, video, screen, data"#
      ),
      (#"{"event":"level","peer":"7"}"#, #""level.dBov" must be a number"#),
      (#"{"event":"speaking","peers":[7]}"#, #""speaking.peers[0]" must be an object"#),
      (
        #"{"event":"data","text":"a","base64":"AAAA"}"#,
        #""data" must have a "text" or a "base64", and not both"#
      ),
      (#"{"event":"data"}"#, #""data" must have a "text" or a "base64", and not both"#),
      (#"{"event":"data","base64":"AAA"}"#, #""data.base64" must be standard Base64 with padding"#),
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
      (
        #"{"command":"mute","track":"smell","on":true}"#,
        #""mute.track" must be one of audio, video, screen, data"#
      ),
      (#"{"command":"interrupt","force":"yes"}"#, #""interrupt.force" must be true or false"#),
      // Read as none, these would concern everybody, or everything.
      (#"{"command":"mute","track":"audio","on":true,"peer":7}"#, #""mute.peer" must be a string"#),
      (#"{"command":"hangUp","call":7}"#, #""hangUp.call" must be a string"#),
      (
        #"{"command":"subscribe","peers":"some","track":"audio","on":true}"#,
        #""subscribe.peers" must be all or new; one participant is named by "peer""#
      ),
      (#"{"command":"begin","values":"now"}"#, #""begin.values" must be an object"#),
    ])
  func badCommands(text: String, message: String) throws {
    let json = try JSONValue(parsing: text)
    #expect { try DialogCommand(json: json) } throws: { "\($0)" == message }
  }

  @Test("the control port accepts commands and playback's own events, and ignores the rest")
  func control() throws {
    func read(_ text: String) throws -> DialogControl? { try DialogControl.read(JSONValue(parsing: text)) }
    #expect(try read(#"{"command":"interrupt"}"#) == .command(.interrupt()))
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
