import MillraceCore
import MillraceDialog
import MillraceJSON
import Testing

@testable import MillraceTuya

/// Duplex: one long event, and events of one turn each.
extension SessionTests {
  @Test("duplex is one long event, in which the cloud looks for speech and for interruptions")
  func long() {
    var player = Self.player(.duplex, ["start"])
    let actions = player.play("connected")
    #expect(
      Self.calls(actions).dropFirst() == [
        .startEvent(
          player.own,
          userData: ["chatAttributes": ["asr.enableVad": true, "processing.interrupt": true]]),
        .beginVoice(event: player.own),
      ])
    #expect(player.session.uplink == .send)
  }

  @Test("in a long event sound never ends: rounds have ids of their own, and ServerVAD only ends speech")
  func rounds() {
    var player = Self.player(.duplex)
    let round = player.round
    #expect(player.words("asr", "asr") == ["speechStarted", "transcript", "transcript"])
    #expect(player.words("ServerVAD") == ["speechEnded", "state thinking"])
    #expect(player.words("asrFinal") == ["transcript"])
    let started = player.play("EventStart")
    #expect(Self.events(started) == [.state(.responding), .replyStarted(round: round)])
    #expect(
      player.words("nlg", "streamBegan", "audio", "streamEnded") == ["reply", "deliver", "endUtterance"])
    #expect(player.session.uplink == .send)
    #expect(Self.events(player.play("EventEnd")) == [.replyEnded(round: round, utterances: 1)])
    #expect(player.words("finished") == ["state listening"])
    // The second round, in the same event.
    #expect(player.words(Script.asr("more", player.own + "-2")) == ["speechStarted", "transcript"])
    #expect(
      player.words(Script.asr("more", player.own + "-2", isFinal: true)) == [
        "transcript", "speechEnded", "state thinking",
      ])
    #expect(
      player.words(Script.nlg("well", player.own + "-2")) == ["state responding", "replyStarted", "reply"])
    #expect(player.session.uplink == .send)
  }

  @Test(
    "a ChatBreak in a long event cancels the reply, and leaves the sound of the user alone")
  func bargeIn() {
    var player = Self.player(.duplex, in: .responding)
    let actions = player.play("ChatBreak")
    #expect(actions.first == .cancelReply)
    #expect(Self.calls(actions) == [])
    #expect(Self.events(actions).first == .interrupted(by: .service, round: player.round))
    #expect(player.session.uplink == .send)
    // Late packets of the round.
    #expect(player.words("nlg", "audio", "streamEnded", "EventEnd", "EventStart") == [])
    let next = player.own + "-2"
    #expect(player.words(Script.asr("stop", next)) == ["speechStarted", "transcript"])
    #expect(player.words(Script.event(.serverVAD, next), Script.event(.start, next)).last == "replyStarted")
    #expect(player.words(Script.began, .audio) == ["deliver"])
  }

  @Test(
    "speech over a reply that has arrived completely cuts it off here: the cloud has nothing to break off")
  func bargeInOverPlayback() {
    var player = Self.player(.duplex, in: .draining)
    #expect(
      player.words(Script.asr("stop", player.own + "-2")) == [
        "cancelReply", "interrupted user", "speechStarted", "transcript",
      ])
    #expect(player.session.phase == .talking)
    // Not without "interrupt".
    var rules = Script.rules(.duplex)
    rules.interrupt = false
    var deaf = Self.player(.duplex, Script.way(to: .draining, .duplex), rules)
    #expect(deaf.words(Script.asr("stop", deaf.own + "-2")) == ["transcript"])
  }

  @Test("the final words of a round that is already answered are no barge-in")
  func lateTranscript() {
    for id in ["asr-5", "-1"] {
      var player = Self.player(.duplex)
      _ = player.words("ServerVAD", "EventStart")
      let text = id == "-1" ? player.round : id
      #expect(player.words(Script.asr("hello", text, isFinal: true)) == ["transcript"])
      #expect(player.session.phase == .responding)
    }
  }

  @Test("an interruption in a long event breaks the round off, not the event")
  func interruptsRound() {
    var player = Self.player(.duplex, in: .responding)
    let actions = player.play("interrupt")
    #expect(Self.calls(actions) == [.breakEvent(player.round, userData: nil)])
    #expect(player.session.uplink == .send)
    // The event continues.
    #expect(player.words(Script.asr("more", player.own + "-2")) == ["speechStarted", "transcript"])
  }

  @Test("where the cloud has not named the round, the long event is broken off, and another begins")
  func interruptsUnnamed() {
    var player = Self.player(.duplex)
    _ = player.words(Script.event(.serverVAD, ""))
    let old = player.own
    #expect(player.session.phase == .thinking)
    let actions = player.play("interrupt")
    #expect(
      Self.calls(actions).prefix(2) == [.endVoice(isCut: true), .breakEvent(old, userData: nil)])
    #expect(actions.map(Script.word).suffix(2) == ["> start", "> voice"])
    #expect(player.words(Script.event(.start, old + "-1"), Script.nlg("late", old + "-1")) == [])
  }

  @Test("noise that is not understood leads back to listening, with speech ended")
  func noise() {
    var player = Self.player(.duplex, in: .talking)
    #expect(player.words("asrEmpty") == ["transcript", "speechEnded", "state listening"])
    var other = Self.player(.duplex, in: .thinking)
    #expect(other.words("asrEmpty") == ["transcript", "state listening"])
    #expect(other.words("EventEnd") == [])
  }

  /// Asks a question in duplex; returns its event.
  private func ask(_ player: inout Script.Player) -> (question: String, actions: [TuyaAction]) {
    let actions = player.play("ask")
    let events = Self.calls(actions).compactMap { call in
      if case .startEvent(let id, _) = call { id } else { nil }
    }
    return (events.first ?? "none", actions)
  }

  @Test("a question in duplex ends the long event, and another begins behind it")
  func questionInDuplex() {
    var player = Self.player(.duplex)
    let old = player.own
    let (question, actions) = ask(&player)
    #expect(
      Self.calls(actions).prefix(2) == [.endVoice(isCut: true), .breakEvent(old, userData: nil)])
    #expect(
      actions.map(Script.word).dropFirst(2) == [
        "> start", "> text", "> payloads text", "> end", "state thinking", "> start", "> voice",
      ]
    )
    #expect(player.session.uplink == .send && player.own != question)
    #expect(
      player.words(
        Script.event(.start, question), Script.nlg("so", question), Script.began, .audio,
        .message(.streamEnded(.audio))) == [
          "state responding", "replyStarted", "reply", "deliver", "endUtterance",
        ])
    #expect(player.words(Script.event(.end, question)) == ["replyEnded"])
    #expect(player.session.phase == .draining && player.session.uplink == .send)
  }

  @Test("speech over the answer to a question interrupts it, and breaks its event off")
  func speechOverAnswer() {
    var player = Self.player(.duplex)
    let (question, _) = ask(&player)
    _ = player.words(Script.event(.start, question), Script.began, .audio)
    let round = player.own + "-1"
    let actions = player.play(Script.asr("stop", round))
    #expect(Self.calls(actions) == [.breakEvent(question, userData: nil)])
    #expect(
      actions.map(Script.word).filter { !$0.hasPrefix(">") } == [
        "cancelReply", "interrupted user", "speechStarted", "transcript",
      ])
    #expect(player.session.phase == .talking)
    // What still comes of it is discarded; the answer to what was said is not.
    #expect(player.words(Script.nlg("late", question), .audio) == [])
    let more = player.words(
      Script.event(.serverVAD, round), Script.asr("stop", round, isFinal: true), Script.nlg("yes", round),
      Script.began, .audio)
    #expect(more.contains("state thinking") && more.contains("replyStarted") && more.last == "deliver")
  }

  @Test("speech before the answer to a question takes its place")
  func speechBeforeAnswer() {
    var player = Self.player(.duplex)
    let (question, _) = ask(&player)
    let actions = player.play(Script.asr("no", player.own + "-1"))
    #expect(Self.calls(actions) == [.breakEvent(question, userData: nil)])
    #expect(player.session.phase == .talking)
  }

  @Test("a ChatBreak for the answer to a question leaves the voice alone")
  func brokenAnswer() {
    var player = Self.player(.duplex)
    let (question, _) = ask(&player)
    _ = player.words(Script.event(.start, question), Script.began, .audio)
    let words = player.words(Script.event(.chatBreak, question))
    #expect(words == ["cancelReply", "interrupted service", "state listening"])
    #expect(player.session.uplink == .send)
    #expect(player.words(Script.nlg("late", question)) == [])
  }

  @Test("a long event that the cloud ends begins again, but not without pause")
  func endedByCloud() {
    var player = Self.player(.duplex)
    #expect(player.words("wholeEnd") == ["> cut voice"])
    #expect(player.session.uplink == .keep)
    #expect(player.session.deadline == player.now + Script.second)
    #expect(player.words("later") == ["> start", "> voice"])
    #expect(player.session.uplink == .send)
  }

  @Test("duplex with an event for each turn begins the next one when the reply was heard")
  func singleDuplex() {
    var player = Self.player(.duplex, ["start", "connected"], Script.rules(.duplex, .single))
    let first = player.own
    #expect(player.words("asr") == ["speechStarted", "transcript"])
    #expect(
      player.words("ServerVAD") == [
        "speechEnded", "> cut voice", "> payloads audio", "> end", "state thinking",
      ])
    #expect(player.session.uplink == .drop)
    _ = player.words("EventStart", "streamBegan", "audio", "streamEnded")
    #expect(player.words("EventEnd") == ["replyEnded"])
    #expect(player.words("finished") == ["state listening", "> start", "> voice"])
    #expect(player.own != first && player.session.uplink == .send)
  }

  @Test("a round that begins without the end of the one before ends it")
  func unendedRound() {
    var player = Self.player(.duplex, in: .responding)
    let next = player.own + "-2"
    #expect(player.words(Script.event(.start, next)) == [])
    let actions = player.play(Script.nlg("next", next))
    #expect(
      actions.map(Script.word) == [
        "endUtterance", "replyEnded", "state responding", "replyStarted", "reply",
      ])
    #expect(Self.events(actions).first == .replyEnded(round: player.round, utterances: 1))
  }
}

extension SessionScript.Player {
  /// The words of what several inputs cause.
  mutating func words(_ inputs: TuyaInput...) -> [String] {
    inputs.flatMap { play($0) }.map(SessionScript.word)
  }
}
