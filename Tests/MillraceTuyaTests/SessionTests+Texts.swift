import MillraceCore
import MillraceDialog
import MillraceJSON
import Testing

@testable import MillraceTuya

/// Text documents, pictures and files of the cloud.
extension SessionTests {
  @Test("a transcript replaces the one before, and the last is final; an empty one is reported")
  func transcripts() {
    var player = Self.player(.pushToTalk, in: .talking)
    let id = player.own
    let partial = Self.events(player.play(Script.asr("what is", id)))
    #expect(partial == [.speechStarted, .transcript(text: "what is", isFinal: false, round: id)])
    let final = Self.events(player.play(Script.asr("what is it", id, isFinal: true)))
    #expect(final == [.transcript(text: "what is it", isFinal: true, round: id)])
    _ = player.play("stopSpeech")
    let empty = Self.events(player.play(Script.asr("", id, isFinal: true)))
    #expect(empty == [.transcript(text: "", isFinal: true, round: id), .state(.listening)])
  }

  @Test(
    "a reply is appended to, or begins a new message; thoughts and images come beside it")
  func replies() {
    var player = Self.player(.pushToTalk, in: .thinking)
    let id = player.own
    let first = Self.events(
      player.play(
        Script.nlg("It is", id, #","reasoningContent":"hm","images":[{"url":"http://h/1.jpg"}]"#)))
    #expect(
      first == [
        .state(.responding), .replyStarted(round: id),
        .extra(name: "reasoning", payload: ["text": "hm", "round": .string(id)]),
        .reply(DialogReply(text: "It is", isFinal: false, mode: .append, round: id)),
        .media(DialogMedia(.image, url: "http://h/1.jpg", round: id)),
      ])
    let other = Self.events(
      player.play(
        Script.text(
          #"{"bizId":"\#(id)","bizType":"NLG","eof":0,"data":{"content":"No","images":{"url":["u1","u2"]}}}"#)
      ))
    #expect(
      other == [
        .reply(DialogReply(text: "No", isFinal: false, mode: .replace, round: id)),
        .media(DialogMedia(.image, url: "u1", round: id)), .media(DialogMedia(.image, url: "u2", round: id)),
      ])
    // The end may be empty, and discards nothing.
    let end = Self.events(
      player.play(Script.text(#"{"bizId":"\#(id)","bizType":"NLG","eof":1,"data":{}}"#)))
    #expect(end == [.reply(DialogReply(text: "", isFinal: true, mode: .append, round: id))])
  }

  @Test("emotions are gathered from the first to the last, in the vendor's words")
  func emotions() {
    var player = Self.player(.pushToTalk, in: .responding)
    let id = player.own
    // A list that was never complete is replaced.
    #expect(player.words(Script.emotion("\u{1F622}", id, sequence: 1, isFinal: false)) == [])
    #expect(player.words(Script.emotion("\u{1F600}", id, sequence: 1, isFinal: false)) == [])
    let actions = player.play(Script.emotion("\u{1F914}", id, sequence: 2, isFinal: true))
    #expect(
      Self.events(actions) == [
        .emotion(
          [
            DialogEmotion("HAPPY", startMilliseconds: 100, endMilliseconds: 200),
            DialogEmotion("THINKING", startMilliseconds: 200, endMilliseconds: 300),
          ], round: id)
      ])
    // Of a reply that was cut off nothing is left.
    _ = player.play(Script.emotion("\u{1F622}", id, sequence: 1, isFinal: false))
    _ = player.words("ChatBreak", "ask")
    let next = player.own
    _ = player.play(Script.event(.start, next))
    let late = Self.events(player.play(Script.emotion("\u{1F600}", next, sequence: 2, isFinal: true)))
    let step = DialogEmotion("HAPPY", startMilliseconds: 200, endMilliseconds: 300)
    #expect(late == [.emotion([step], round: next)])
  }

  @Test("emotions without end do not fill the memory")
  func manyEmotions() {
    var player = Self.player(.pushToTalk, in: .responding)
    for index in 2..<1_000 {
      _ = player.play(Script.emotion("\u{1F600}", player.own, sequence: index, isFinal: false))
    }
    let events = Self.events(player.play(Script.emotion("\u{1F600}", player.own, sequence: 0, isFinal: true)))
    guard case .emotion(let steps, _)? = events.first else {
      Issue.record("no emotion: \(events)")
      return
    }
    #expect(steps.count == TuyaEmotions.most)
  }

  @Test("skills are commands with their round; music is something to play, too")
  func skills() {
    var player = Self.player(.pushToTalk, in: .responding)
    let id = player.own
    let exit = player.play(Script.skill("speechControl", id, #","general":{"action":"exit"}"#))
    #expect(
      Self.events(exit) == [
        .command(
          name: "speechControl", payload: ["code": "speechControl", "general": ["action": "exit"]], round: id)
      ])
    let music = Self.events(
      player.play(
        Script.skill(
          "music", id,
          #","general":{"data":{"audios":[{"name":"n","artist":"a","url":"http://h/m.mp3"},{"name":"none"}]}}"#
        )))
    #expect(music.count == 2)
    guard case .media(let media)? = music.last else {
      Issue.record("no media: \(music)")
      return
    }
    #expect(media.kind == .audio && media.url == "http://h/m.mp3" && media.name == "n")
    #expect(media.title == "a" && media.round == id)
  }

  @Test("other types are unknown, whole; what is no text is an error that ends nothing")
  func unknownTexts() {
    var player = Self.player(.pushToTalk, in: .responding)
    let cloud = Self.events(player.play(Script.text(#"{"bizType":"CloudEvent","data":{"a":1},"x":[2]}"#)))
    #expect(cloud == [.unknown(["bizType": "CloudEvent", "data": ["a": 1], "x": [2]])])
    let broken = Self.events(player.play(Script.text("{")))
    guard case .error(let error)? = broken.first else {
      Issue.record("no error: \(broken)")
      return
    }
    #expect(error.code == 39_001 && error.reaction == .continue)
    #expect(player.session.phase == .responding)
    let event = Self.events(player.play(Script.event(TuyaEventType(rawValue: 77), "e", ["b": 2])))
    #expect(event == [.unknown(["type": 77, "eventId": "e", "data": ["b": 2]])])
  }

  @Test("with raw, every text and event is also told as it came")
  func raw() {
    var rules = Script.rules(.pushToTalk)
    rules.postsRaw = true
    var player = Self.player(.pushToTalk, Script.way(to: .thinking, .pushToTalk), rules)
    #expect(player.words("EventStart", "nlg").filter { $0 == "extra raw" }.count == 2)
  }

  @Test("an agent that only recognises speech is not waited for")
  func onlyASR() {
    var rules = Script.rules(.pushToTalk)
    rules.onlyASR = true
    var player = Self.player(.pushToTalk, Script.way(to: .thinking, .pushToTalk), rules)
    #expect(player.words("asrFinal") == ["transcript", "state listening"])
    #expect(player.words("EventEnd") == [])
    var long = Script.rules(.duplex)
    long.onlyASR = true
    var duplex = Self.player(.duplex, Script.way(to: .talking, .duplex), long)
    #expect(duplex.words("asrFinal") == ["transcript", "speechEnded", "state listening"])
    #expect(duplex.session.uplink == .send)
  }

  @Test("texts whose ids name no event belong to the round that is answered")
  func otherIDs() {
    var player = Self.player(.pushToTalk, in: .thinking)
    let round = player.own
    let started = Self.events(player.play(Script.nlg("well", "nlg-17")))
    #expect(started.contains(.replyStarted(round: round)))
    #expect(started.contains(.reply(DialogReply(text: "well", isFinal: false, mode: .append, round: round))))
    let emotion = Self.events(player.play(Script.emotion("x", "skill-17", sequence: 1, isFinal: true)))
    #expect(
      emotion == [
        .emotion([DialogEmotion("x", startMilliseconds: 100, endMilliseconds: 200)], round: round)
      ])
  }

  @Test("pictures and files are handed on, but not those of a reply that was cut off")
  func picturesAndFiles() {
    var player = Self.player(.pushToTalk, in: .responding)
    #expect(player.play("image") == [.deliverImage])
    let file = player.play("file")
    #expect(file.last == .deliverFile("/f"))
    #expect(
      Self.events(file) == [.media(DialogMedia(.file, url: "file:/f", name: "f", round: player.own))])
    _ = player.play("interrupt")
    #expect(player.play("image") == [])
  }

  @Test("an agent's sound without a reply is discarded, and told once")
  func stray() {
    var player = Self.player(.pushToTalk)
    #expect(player.words("audio", "audio", "audio") == ["error 39001 reply"])
  }

  @Test("ids of programs that begin with one another are different events")
  func prefixes() {
    var player = Self.player(.pushToTalk)
    _ = player.play(Script.extra("sendEventStart", ["eventId": "e1"]))
    _ = player.words("sendEventChatBreak")
    _ = player.play(Script.extra("sendEventStart", ["eventId": "e10"]))
    _ = player.words("sendText", "sendEventEnd")
    #expect(player.words(Script.event(.start, "e1")) == [])
    #expect(player.words(Script.event(.start, "e10")) == ["state responding", "replyStarted"])
  }
}
