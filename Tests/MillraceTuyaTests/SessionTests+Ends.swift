import MillraceCore
import MillraceDialog
import MillraceJSON
import Testing

@testable import MillraceTuya

/// Losses, tokens, and the ways a dialogue ends.
extension SessionTests {
  @Test("after a loss the session is made again, as another one, and sound is kept meanwhile")
  func lost() throws {
    var player = Self.player(.duplex, in: .responding)
    let first = try #require(player.session.session)
    #expect(
      player.words("lost") == [
        "error 39010 connection", "cancelReply", "interrupted service", "state reconnecting",
      ]
    )
    #expect(player.session.uplink == .keep && player.session.isUnreachable)
    #expect(player.session.deadline == player.now + Script.second)
    #expect(player.words("later") == ["connect"])
    let created = player.play("connected")
    #expect(
      created.map(Script.word) == [
        "connected", "extra connection", "> create", "conversationStarted", "extra channels",
        "state listening", "> start", "> voice",
      ])
    #expect(player.session.session != first && !player.session.isUnreachable)
  }

  @Test(
    "what still arrives of the old connection is not taken for the new one", arguments: ["connected", "lost"])
  func oldConnection(late: String) throws {
    var player = Self.player(.duplex, in: .waiting)
    player.now = try #require(player.session.deadline)
    // The backoff ends at the same time.
    #expect(player.words(late) == ["connect"])
    #expect(player.session.phase == .connecting)
  }

  @Test("the button stays pressed over a loss: what is said meanwhile belongs to the next session")
  func pressedOverLoss() {
    var player = Self.player(.pushToTalk, in: .talking)
    _ = player.play("lost")
    #expect(player.session.uplink == .keep)
    _ = player.play("later")
    #expect(player.words("connected").suffix(2) == ["> start", "> voice"])
  }

  @Test("a reply that has arrived is played on over a loss")
  func playedOverLoss() {
    var player = Self.player(.pushToTalk, in: .draining)
    #expect(player.words("lost") == ["error 39010 connection", "state reconnecting"])
  }

  @Test(
    "the same identity elsewhere ends the dialogue; it never connects again by itself",
    arguments: ["lost602", "closed602"])
  func replaced(name: String) {
    var player = Self.player(.duplex, in: .listening)
    let actions = player.play(name)
    #expect(
      Self.events(actions).contains { if case .kicked(.replaced, _) = $0 { true } else { false } })
    #expect(actions.last == .end(nil))
    #expect(player.words("later") == [])
    #expect(player.session.deadline == nil)
  }

  @Test(
    "a token that has expired is replaced over the same connection, and the session made again",
    arguments: ["closed1001", "state1001"])
  func expired(name: String) {
    var player = Self.player(.pushToTalk, in: .responding)
    let actions = player.play(name)
    let isOpen = name == "state1001"
    #expect(
      Self.calls(actions).first
        == (isOpen ? .closeSession(.closedByClient) : .requestToken(1, rejectsPresent: true)))
    #expect(Self.calls(actions).last == .requestToken(1, rejectsPresent: true))
    #expect(Self.events(actions).first == .authExpired)
    #expect(actions.contains(.post(.state(.reconnecting))))
    #expect(
      player.words("token") == [
        "connected", "> create", "conversationStarted", "extra channels", "state listening",
      ])
    #expect(player.session.terms.bizCode == 7)
    // Again at once: not without a pause.
    #expect(player.words(name).last == "state reconnecting")
    #expect(player.session.phase == .waiting)
    #expect(player.words("later") == ["connect"])
    #expect(player.words("connected").contains("> create"))
    #expect(player.session.phase == .listening)
  }

  @Test("a refused token is replaced once; refused again, the session fails")
  func refused() {
    var player = Self.player(.pushToTalk, in: .listening)
    #expect(player.words("closed401").last == "> new token")
    _ = player.play("token")
    #expect(player.words("closed401").last == "fail")
    // After a reply it may be replaced again.
    var other = Self.player(.pushToTalk, in: .listening)
    _ = other.words("closed401", "token", "ask", "nlg", "EventEnd")
    #expect(other.words("closed401").last == "> new token")
  }

  @Test("no new token: the session fails, is tried again, or waits for refreshAuth")
  func noToken() {
    var player = Self.player(.pushToTalk, in: .renewing)
    let actions = player.play("noToken")
    guard case .end(let error?)? = actions.last else {
      Issue.record("no failure: \(actions)")
      return
    }
    #expect(error.code == 39_003 && error.category == .auth)
    var later = Self.player(.pushToTalk, in: .renewing)
    #expect(later.words("noTokenNow") == ["error 39003 connection", "disconnect", "state reconnecting"])
    #expect(later.words("later") == ["connect"])
    var rules = Script.rules(.pushToTalk)
    rules.renew = 10 * Script.second
    var waiting = Self.player(.pushToTalk, Script.way(to: .renewing, .pushToTalk), rules)
    #expect(waiting.words("noToken") == ["error 39003 connection", "disconnect"])
    #expect(waiting.words("refreshAuth") == ["useCredential", "connect"])
    var forgotten = Self.player(.pushToTalk, Script.way(to: .renewing, .pushToTalk) + ["noToken"], rules)
    forgotten.now += 10 * Script.second
    #expect(forgotten.words("tick") == ["state closed", "fail"])
  }

  @Test("the end of a connection's time is reported, and followed by another connection")
  func connectionExpired() {
    var player = Self.player(.duplex, in: .listening)
    #expect(
      player.words("lost605") == ["authExpired", "error 39012 connection", "state reconnecting"])
    #expect(player.words("later") == ["connect"])
  }

  @Test("hangUp closes the session properly, and at once")
  func hangUp() {
    var player = Self.player(.duplex, in: .responding)
    #expect(
      player.words("hangUp") == [
        "cancelReply", "interrupted local", "> cut voice", "> close 200", "disconnect", "state closed", "end",
      ])
    #expect(player.session.closingCall == nil && player.session.uplink == .drop)
    let talking = Self.player(.duplex, in: .talking)
    #expect(talking.session.closingCall == .closeSession(.ok))
  }

  @Test("a hangUp because the service was not ready is a failure")
  func timeout() {
    var player = Self.player(.duplex, in: .connecting)
    #expect(player.words("timeout").last == "fail")
    var listening = Self.player(.duplex, in: .listening)
    #expect(listening.words("timeout").last == "end")
  }

  @Test("a session that waits after its end begins again with another id, the microphone still muted")
  func again() throws {
    var player = Script.Player(Script.rules(.duplex, waitsAfterEnd: true))
    for name in ["start", "connected", "mute", "hangUp"] { player.play(name) }
    #expect(player.session.phase == .ended)
    #expect(Self.refusal(player.play("ask"))?.code == 39_005)
    #expect(
      player.play(.command(.begin(values: ["session": "s5"]))).map(Script.word) == [
        "state connecting", "connect",
      ])
    _ = player.play("connected")
    #expect(player.session.session == "s5" && player.session.uplink == .silence)
    // The next one has no id of its own.
    _ = player.words("hangUp", "begin", "connected")
    #expect(player.session.session != "s5")
  }

  @Test("when the sources have ended, an answer is awaited, and then the dialogue ends")
  func sourcesEnded() {
    var player = Self.player(.pushToTalk, in: .thinking)
    #expect(player.words("sourcesEnded") == [])
    #expect(player.words("nlg", "EventEnd").last == "state listening")
    #expect(player.words("tick") == ["> close 200", "disconnect", "state closed", "end"])
    // But not for ever.
    var silent = Self.player(.duplex, in: .talking)
    _ = silent.play("sourcesEnded")
    #expect(silent.session.deadline == silent.now + silent.session.rules.drain)
    silent.now += silent.session.rules.drain
    #expect(silent.words("tick").last == "end")
    var playing = Self.player(.pushToTalk, in: .draining)
    #expect(playing.words("sourcesEnded") == [])
    #expect(playing.words("finished", "tick").last == "end")
  }

  @Test(
    "when the sources have ended, what was said ends as by the button, and is answered",
    arguments: [DialogMode.pushToTalk, .tapToTalk], ["sourcesEnded", "drain"])
  func endsSpeechWhileDraining(mode: DialogMode, end: String) {
    // The button came after the end of the audio: nothing else ends the speech.
    var player = Self.player(mode, ["start", "connected", "audioEnded", "startSpeech"])
    #expect(player.words(end) == ["> end voice", "> payloads audio", "> end", "state thinking"])
    #expect(player.words("nlg", "EventEnd").last == "state listening")
    #expect(player.words("tick").last == "end")
    // No answer comes: it has the time of every answer, though the session drains for a shorter time.
    var silent = Self.player(mode, ["start", "connected", "startSpeech", end])
    #expect(silent.session.rules.drain < silent.session.rules.answer)
    silent.now += silent.session.rules.drain
    #expect(silent.words("tick") == [])
    silent.now += silent.session.rules.answer - silent.session.rules.drain
    #expect(silent.words("tick").prefix(2) == ["error 39001 reply", "> break"])
    #expect(silent.words("tick").last == "end")
    // The button does not open another turn.
    var pressed = Self.player(mode, ["start", "connected", "ask", end])
    #expect(pressed.words("startSpeech").last == "state listening")
    #expect(pressed.words("tick").last == "end")
  }

  @Test(
    "when the sources have ended, an event of the program ends if it has data, and is broken off otherwise")
  func endsProgramsEventWhileDraining() {
    for end in ["sourcesEnded", "drain"] {
      var empty = Self.player(.pushToTalk, ["start", "connected", "sendEventStart"])
      #expect(empty.words(end) == ["> break", "> close 200", "disconnect", "state closed", "end"])
      // In duplex, too, and while the user speaks in it.
      var long = Self.player(.duplex, ["start", "connected", "sendEventStart"])
      #expect(long.words(end).first == "> break")
      #expect(long.session.phase == .closed)
      var sent = Self.player(.pushToTalk, ["start", "connected", "sendEventStart", "sendText"])
      #expect(sent.words(end) == ["> payloads text", "> end", "state thinking"])
      #expect(sent.words("nlg", "EventEnd", "tick").last == "end")
      var spoken = Self.player(.pushToTalk, ["start", "connected", "sendEventStart", "startSpeech"])
      #expect(spoken.words(end) == ["> end voice", "> payloads audio", "> end", "state thinking"])
      // The question behind it is asked, and answered.
      var asked = Self.player(.pushToTalk, ["start", "connected", "sendEventStart", "ask"])
      #expect(asked.words(end) == ["> break", "state listening"] + Self.asked)
      #expect(asked.words("nlg", "EventEnd", "tick").last == "end")
      // The agent answers within it, unasked.
      var unasked = Self.player(.pushToTalk, ["start", "connected", "sendEventStart", "nlg", end])
      #expect(unasked.session.phase == .responding)
      #expect(unasked.words("interrupt", "tick").last == "end")
    }
  }

  @Test("an event that a program begins while the graph drains holds it up for a limited time")
  func eventWhileDraining() {
    var player = Self.player(.pushToTalk, ["start", "connected", "ask", "sourcesEnded"])
    #expect(player.words("sendEventStart").last == "> start")
    player.now += player.session.rules.drain
    #expect(player.words("tick") == ["> close 200", "disconnect", "state closed", "end"])
  }

  @Test("when the sources have ended, a loss ends the session: as a failure, unless the reply has arrived")
  func lostWhileDraining() {
    for (phase, end) in [(TuyaSession.Phase.thinking, "fail"), (.draining, "end")] {
      var player = Self.player(.pushToTalk, in: phase)
      _ = player.play("sourcesEnded")
      #expect(player.words("lost").last == end)
    }
  }

  @Test("after the microphone's end, silence for as long as linger ends the dialogue")
  func linger() {
    var rules = Script.rules(.duplex)
    rules.linger = 5 * Script.second
    var player = Self.player(.duplex, ["start", "connected", "audioEnded"], rules)
    #expect(player.session.deadline == player.now + rules.linger)
    player.now += rules.linger
    #expect(player.words("tick").last == "end")
  }

  @Test("where no silence follows the microphone's end, the event ends with it")
  func endsWithAudio() {
    var rules = Script.rules(.duplex)
    rules.sendsSilenceAfterEnd = false
    var player = Self.player(.duplex, ["start", "connected", "asr"], rules)
    #expect(
      player.words("audioEnded") == [
        "> end voice", "> payloads audio", "speechEnded", "> end", "state thinking",
      ])
  }

  @Test("commands that wait are answered when the dialogue ends or the connection is lost")
  func answersAtEnd() {
    for name in ["hangUp", "lost", "closed500"] {
      var player = Self.player(.pushToTalk, in: .thinking)
      _ = player.play(.command(.ask("later", images: []), id: "1"))
      _ = player.play(.command(.extra(name: "queryAgentToken", payload: .null), id: "2"))
      let answers = Self.answers(player.play(name)).map(\.id)
      // A question waits for the next session.
      #expect(answers.sorted() == (name == "hangUp" ? ["1", "2"] : ["2"]))
    }
  }

  static let statuses: [(UInt16, DialogError.Category, DialogError.Reaction)] = [
    (200, .network, .ended), (400, .request, .refuse), (401, .auth, .refuse), (404, .request, .refuse),
    (408, .network, .reconnect), (500, .internal, .reconnect), (504, .network, .reconnect),
    (601, .network, .ended), (602, .auth, .ended), (603, .network, .reconnect), (604, .network, .reconnect),
    (605, .auth, .reconnect), (607, .quota, .refuse), (1_001, .auth, .reconnect),
    (999, .internal, .reconnect),
  ]

  @Test("each status of the cloud has its category and what to do", arguments: statuses)
  func statuses(number: UInt16, category: DialogError.Category, reaction: DialogError.Reaction) {
    let error = DialogError.tuya(closedWith: TuyaStatus(rawValue: number))
    #expect(error.vendor == "tuya" && error.code == 39_012 && error.detail == "\(number)")
    #expect(error.category == category && error.reaction == reaction)
    #expect(error.tuyaStatus?.rawValue == number)
  }

  @Test("any sequence of inputs preserves the session's invariants")
  func random() {
    let connected = TuyaInput.message(.connected(id: "c", TuyaTerms()))
    for (mode, speech) in [
      (DialogMode.pushToTalk, TuyaRules.Speech.single), (.tapToTalk, .single), (.duplex, .long),
      (.duplex, .single),
    ] {
      for seed in 0..<100 {
        var dice = SplitMix(UInt64(seed))
        let rules = Script.rules(mode, speech, followsPlayback: seed % 3 > 0, waitsAfterEnd: seed % 2 == 0)
        var watch = Watch(Script.Player(rules))
        var all: [(name: String, input: TuyaInput)] = [], ids = ""
        for _ in 0..<300 {
          watch.player.now += Nanoseconds(dice.next() % 3_000_000_000)
          let next = watch.player
          if ids != next.round + "\(next.number)" {
            ids = next.round + "\(next.number)"
            all = Script.inputs(next.own, next.round, next.number)
          }
          // Ends are rare, so that the rest is reached.
          var pick = all[Int(dice.next() % UInt64(all.count))]
          if Self.endings.contains(pick.name) && dice.next() % 8 > 0 { pick = ("connected", connected) }
          watch.play(pick.name, pick.input)
        }
      }
    }
  }

  private static let endings: Set<String> = [
    "hangUp", "timeout", "drain", "sourcesEnded", "lost602", "closed602", "lost400", "refused", "closed607",
    "closed200", "closeSession", "noToken",
  ]
}

/// What must hold for a session, whatever arrives.
private struct Watch {
  var player: SessionScript.Player
  private var hasEnded = false
  private var isConnected = false, hasSession = false
  private var open: String?
  private var hasVoice = false, mayReopen = false
  private var isReplying = false
  private var ids = 0
  private var unanswered: Set<String> = []

  init(_ player: SessionScript.Player) { self.player = player }

  mutating func play(_ name: String, _ input: TuyaInput) {
    var input = input
    if case .command(let command, _) = input {
      ids += 1
      input = .command(command, id: "\(ids)")
    }
    switch input {
    case .lost: leave()
    case .message(.sessionClosed): hasSession = false
    case .message(.sessionAnswered(let status)): if status != .ok { hasSession = false }
    // The cloud may end the event that is open.
    case .message(.event(let event)):
      if [.end, .chatBreak, .serverTimeover].contains(event.type) { mayReopen = true }
    default: break
    }
    for action in player.play(input) { check(action, name) }
    if player.session.session != nil { hasSession = true }
    if player.session.phase == .closed {
      #expect(player.session.deadline == nil && player.session.uplink == .drop)
      #expect(hasEnded, "closed without an end, by \(name)")
    }
    if player.session.uplink == .send || player.session.uplink == .silence {
      #expect(hasVoice, "sound outside of an event, by \(name)")
    }
  }

  private mutating func leave() {
    isConnected = false
    closeSession()
  }

  private mutating func closeSession() {
    hasSession = false
    open = nil
    hasVoice = false
  }

  private mutating func check(_ action: TuyaAction, _ name: String) {
    #expect(!hasEnded, "\(action) after the end, by \(name)")
    switch action {
    case .end:
      hasEnded = true
      #expect(unanswered.isEmpty, "never answered: \(unanswered)")
    case .connect: isConnected = true
    case .disconnect: leave()
    case .send(let call):
      #expect(isConnected, "\(call) without a connection, by \(name)")
      check(call, name)
    case .deliver: #expect(isReplying, "sound without a reply, by \(name)")
    case .answerLater: unanswered.insert("\(ids)")
    case .post(.answer(let answer)):
      #expect(unanswered.remove(answer.id) != nil, "\(answer.id) is answered once too often, by \(name)")
    case .post(let event):
      switch event {
      case .replyStarted:
        #expect(!isReplying, "a reply within a reply, by \(name)")
        isReplying = true
      case .replyEnded, .interrupted: isReplying = false
      case .error(let error): if error.scope != .command { isReplying = false }
      case .state(.reconnecting), .state(.closed), .kicked: isReplying = false
      default: break
      }
    default: break
    }
  }

  private mutating func check(_ call: TuyaCall, _ name: String) {
    switch call {
    case .requestToken: break
    case .createSession:
      #expect(!hasSession, "two sessions, by \(name)")
      closeSession()
      hasSession = true
    case .closeSession:
      #expect(!hasVoice, "closed within sound, by \(name)")
      closeSession()
    case .startEvent(let id, _):
      #expect(hasSession && (open == nil || mayReopen), "two events, by \(name)")
      open = id
      mayReopen = false
    case .beginVoice(let id):
      #expect(open == id && !hasVoice, "sound outside of an event, by \(name)")
      hasVoice = true
    case .endVoice:
      #expect(hasVoice, "the end of no sound, by \(name)")
      hasVoice = false
    case .endPayloads(let id, let channel, _):
      #expect(open == id && !(hasVoice && channel.kind == .audio), "payloads of no event, by \(name)")
    case .endEvent(let id, _):
      #expect(open == id && !hasVoice, "the end of no event, by \(name)")
      open = nil
    case .breakEvent(let id, _):
      if open == id {
        #expect(!hasVoice, "broken off within sound, by \(name)")
        open = nil
      }
    case .event: #expect(hasSession, "an event without a session, by \(name)")
    case .text, .image, .heldImage, .file: #expect(open != nil, "data outside of an event, by \(name)")
    }
  }
}

/// SplitMix64.
private struct SplitMix {
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
