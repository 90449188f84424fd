import MillraceCore
import MillraceDialog
import MillraceJSON
import Testing

@testable import MillraceTuya

@Suite("session of Tuya") struct SessionTests {
  typealias Script = SessionScript

  /// A session that has gone a way.
  static func player(
    _ mode: DialogMode, _ way: [String] = ["start", "opened", "connected"], _ rules: TuyaRules? = nil
  ) -> Script.Player {
    var player = Script.Player(rules ?? Script.rules(mode))
    for name in way { player.play(name) }
    return player
  }

  static func player(_ mode: DialogMode, in phase: TuyaSession.Phase) -> Script.Player {
    player(mode, Script.way(to: phase, mode))
  }

  /// The events among actions.
  static func events(_ actions: [TuyaAction]) -> [DialogEvent] {
    actions.compactMap { if case .post(let event) = $0 { event } else { nil } }
  }

  /// The calls among actions.
  static func calls(_ actions: [TuyaAction]) -> [TuyaCall] {
    actions.compactMap { if case .send(let call) = $0 { call } else { nil } }
  }

  @Test(
    "every phase handles every input as the tables say", arguments: [DialogMode.pushToTalk, .duplex])
  func tables(mode: DialogMode) {
    let found = Script.table(mode)
    let wanted = Set(commonTable + (mode == .duplex ? duplexTable : pushToTalkTable))
    for line in found where !wanted.contains(line) { Issue.record("\(mode.rawValue): unexpected \(line)") }
    for line in wanted.subtracting(found) { Issue.record("\(mode.rawValue): missing \(line)") }
  }

  // MARK: The beginning

  @Test("a session is created with the connection, and told with the ids of both")
  func begins() throws {
    var rules = Script.rules(.pushToTalk)
    rules.session = "s9"
    rules.isShared = true
    rules.replyFormats = [TuyaReplyFormat("mp3", bitRate: 32_000), TuyaReplyFormat("pcm", bitDepth: 16)]
    rules.sessionAttributes = ["custom.param": ["a": 1]]
    var player = Self.player(.pushToTalk, ["start", "opened"], rules)
    let actions = player.play("connected")
    #expect(
      actions.map(Script.word) == [
        "connected", "extra connection", "> create", "conversationStarted", "extra channels",
        "state listening",
      ])
    #expect(Self.events(actions).contains(.extra(name: "connection", payload: ["id": "c"])))
    #expect(Self.events(actions).contains(.conversationStarted(id: "s9")))
    guard case .createSession(let creation)? = Self.calls(actions).first else {
      Issue.record("no session: \(actions)")
      return
    }
    #expect(creation.id == "s9" && creation.isShared)
    let attributes = try #require(creation.userData?["sessionAttributes"])
    let formats = attributes["tts.order.supports"]?.array?.map { $0["format"]?.string }
    #expect(formats == ["mp3", "pcm"])
    #expect(attributes["custom.param"]?["a"] == 1)
    // Only a client that answers to tools asks for them.
    #expect(attributes["deviceMcp"] == nil)
  }

  @Test("a connection that does not come in time is tried again")
  func prepares() {
    var player = Self.player(.duplex, ["start"])
    #expect(player.session.deadline == player.now + player.session.rules.prepare)
    player.now += player.session.rules.prepare
    #expect(player.words("tick") == ["error 39004 connection", "disconnect", "state reconnecting"])
    #expect(player.words("later") == ["connect"])
  }

  // MARK: Turns

  @Test("a turn of push-to-talk is one event: sound, its end, the end of the event; then the answer")
  func pushToTalk() throws {
    var player = Self.player(.pushToTalk)
    let start = player.play("startSpeech")
    let event = player.own
    #expect(
      Self.calls(start) == [
        .startEvent(event, userData: ["chatAttributes": ["asr.enableVad": false]]), .beginVoice(event: event),
      ])
    #expect(player.session.uplink == .send)
    #expect(player.words("asr", "asrFinal") == ["speechStarted", "transcript", "transcript"])
    let stop = player.play("stopSpeech")
    #expect(Self.events(stop) == [.speechEnded, .state(.thinking)])
    #expect(
      Self.calls(stop) == [
        .endVoice(isCut: false), .endPayloads(event: event, TuyaChannelName(.audio), userData: nil),
        .endEvent(event, userData: nil),
      ])
    #expect(player.session.uplink == .drop)
    let started = player.play("EventStart")
    #expect(
      Self.events(started) == [.state(.responding), .replyStarted(round: event)])
    #expect(player.words("nlg", "streamBegan", "audio", "audio") == ["reply", "deliver", "deliver"])
    #expect(player.words("streamEnded", "streamBegan", "audio") == ["endUtterance", "deliver"])
    let end = player.play("EventEnd")
    #expect(end.map(Script.word) == ["endUtterance", "replyEnded"])
    #expect(Self.events(end) == [.replyEnded(round: event, utterances: 2)])
    // Heard when both utterances were played.
    #expect(player.words("finished") == [])
    #expect(player.words("finished") == ["state listening"])
  }

  @Test("in tap-to-talk the cloud ends the turn: no sound follows ServerVAD")
  func tapToTalk() {
    var player = Self.player(.tapToTalk)
    let start = player.play("startSpeech")
    guard case .startEvent(_, let data)? = Self.calls(start).first else {
      Issue.record("no event: \(start)")
      return
    }
    #expect(data?["chatAttributes"]?["asr.enableVad"] == true)
    _ = player.play("asr")
    #expect(
      player.words("ServerVAD") == [
        "speechEnded", "> cut voice", "> payloads audio", "> end", "state thinking",
      ])
    #expect(player.session.uplink == .drop)
    // What was recognised late is no new speech, and a tap that ends nothing has no effect.
    #expect(player.words("asrFinal", "stopSpeech") == ["transcript"])
  }

  @Test("without reports of playback, what was delivered counts as heard")
  func delivered() {
    var player = Script.Player(Script.rules(.pushToTalk, followsPlayback: false))
    for name in Script.way(to: .draining, .pushToTalk) { player.play(name) }
    #expect(player.words("finished") == [])
    #expect(player.words("delivered") == ["state listening"])
  }

  @Test("a reply without sound is heard when it has arrived")
  func silentReply() {
    var player = Self.player(.pushToTalk, in: .thinking)
    #expect(player.words("nlg", "nlgEnd") == ["state responding", "replyStarted", "reply", "reply"])
    #expect(player.words("EventEnd") == ["replyEnded", "state listening"])
  }

  @Test("an answer that does not come is an error of the reply, and breaks its event off")
  func unanswered() {
    var player = Self.player(.pushToTalk, in: .thinking)
    player.now += player.session.rules.answer
    #expect(player.words("tick") == ["error 39001 reply", "> break", "state listening"])
    // It is not taken when it comes all the same.
    #expect(player.words("EventStart", "nlg", "audio", "EventEnd") == [])
    // Playback that reports nothing does not block the session.
    var draining = Self.player(.pushToTalk, in: .draining)
    draining.now += draining.session.rules.playback
    #expect(draining.words("tick") == ["cancelReply", "interrupted local", "state listening"])
  }

  @Test("while nothing is read from the service its answer is not late")
  func excused() {
    var player = Self.player(.pushToTalk, in: .thinking)
    player.now += player.session.rules.answer - 1
    player.session.excuseSilence(at: player.now)
    player.now += 1
    #expect(player.words("tick") == [])
    #expect(player.session.phase == .thinking)
  }

  @Test("the cloud's own rounds are replies, too, and late texts of one that has ended are none")
  func proactive() {
    var player = Self.player(.pushToTalk)
    #expect(player.words(Script.event(.start, "p1")) == [])
    #expect(player.words(Script.nlg("hello", "p1")) == ["state responding", "replyStarted", "reply"])
    #expect(player.words(Script.event(.end, "p1")) == ["replyEnded", "state listening"])
    #expect(player.words(Script.nlg("late", "p1")) == ["reply"])
    #expect(player.session.phase == .listening)
  }

  @Test("an EventEnd or ChatBreak of another event changes nothing for the one that is answered")
  func staleEnds() {
    for phase in [TuyaSession.Phase.talking, .thinking, .responding] {
      var player = Self.player(.pushToTalk, in: phase)
      #expect(player.words("otherEnd") == [])
      #expect(player.words("otherBreak") == ["extra EventChatBreak"])
      #expect(player.session.phase == phase)
    }
  }

  // MARK: Interruptions

  @Test(
    "an interruption breaks the event off, cancels the reply once, and is reported with its round",
    arguments: [TuyaSession.Phase.thinking, .responding])
  func interrupts(phase: TuyaSession.Phase) {
    var player = Self.player(.pushToTalk, in: phase)
    let actions = player.play("interrupt")
    #expect(Self.calls(actions) == [.breakEvent(player.own, userData: nil)])
    #expect(actions.count { $0 == .cancelReply } == (phase == .responding ? 1 : 0))
    #expect(Self.events(actions) == [.interrupted(by: .user, round: player.own), .state(.listening)])
    // Nothing of it is taken any more, however late it comes.
    #expect(
      player.words(
        "EventStart", "nlg", "asrFinal", "control", "streamBegan", "audio", "image", "streamEnded",
        "EventEnd",
        "ChatBreak") == [])
    #expect(player.words("interrupt") == [])
  }

  @Test("a reply that has arrived completely is cut off here; the cloud has nothing to break off")
  func interruptsPlayback() {
    var player = Self.player(.pushToTalk, in: .draining)
    #expect(player.words("interrupt") == ["cancelReply", "interrupted user", "state listening"])
  }

  @Test("sound of a broken event is dropped until the cloud begins the next one")
  func lateSound() {
    var player = Self.player(.pushToTalk, in: .responding)
    let old = player.own
    #expect(
      player.words("startSpeech") == [
        "cancelReply", "interrupted user", "> break", "state listening", "> start", "> voice",
      ])
    #expect(player.session.phase == .talking && player.session.uplink == .send)
    #expect(player.words(Script.began) == [])
    #expect(player.words("audio", "stopSpeech", "audio").filter { $0 == "deliver" } == [])
    #expect(player.words(Script.event(.end, old)) == [])
    #expect(player.words("EventStart", "streamBegan", "audio").last == "deliver")
  }

  @Test("texts of a broken event are recognised by their number, whatever their kind")
  func lateTexts() {
    var player = Self.player(.pushToTalk, in: .talking)
    _ = player.words(Script.asr("hello", "asr-17"))
    _ = player.words("stopSpeech", "interrupt", "startSpeech")
    #expect(player.words(Script.nlg("late", "nlg-17")) == [])
    #expect(player.words(Script.skill("DeviceControl", "skill-17")) == [])
    #expect(player.words(Script.asr("next", "asr-18")) == ["speechStarted", "transcript"])
    _ = player.play("stopSpeech")
    #expect(player.words(Script.nlg("answer", "nlg-18")) == ["state responding", "replyStarted", "reply"])
  }

  @Test("a ChatBreak of the cloud cancels the reply, with its round")
  func chatBreak() {
    var player = Self.player(.pushToTalk, in: .responding)
    let actions = player.play("ChatBreak")
    #expect(actions.first == .cancelReply)
    #expect(Self.events(actions) == [.interrupted(by: .service, round: player.own), .state(.listening)])
    #expect(Self.calls(actions) == [])
    #expect(player.words("audio", "nlg", "EventEnd") == [])
  }

  @Test("a ChatBreak of an event that is being spoken ends its sound")
  func chatBreakOfSpeech() {
    var player = Self.player(.pushToTalk, in: .talking)
    #expect(player.words("ChatBreak") == ["> cut voice", "interrupted service", "state listening"])
    #expect(player.session.uplink == .drop)
  }

  @Test("a reply that the graph has cancelled is broken off once, and not cancelled again")
  func replyCancelled() {
    var player = Self.player(.pushToTalk, in: .responding)
    let actions = player.play("replyCancelled")
    #expect(actions.map(Script.word) == ["interrupted local", "> break", "state listening"])
    #expect(player.words("audio", "nlg", "interrupt", "replyCancelled", "streamEnded", "EventEnd") == [])
  }

  @Test("cancelSpeech breaks off what is being said, and nothing of it is answered")
  func cancelSpeech() {
    var player = Self.player(.pushToTalk, in: .talking)
    _ = player.play("asr")
    #expect(
      player.words("cancelSpeech") == ["> cut voice", "> break", "speechEnded", "state listening"])
    #expect(player.words("asrFinal", "EventStart", "nlg") == [])
    #expect(player.words("cancelSpeech") == [])
  }

  @Test("a press before the session is there takes effect with it; released again, it is forgotten")
  func earlyPress() {
    var player = Self.player(.pushToTalk, ["start", "startSpeech"])
    #expect(player.session.uplink == .keep)
    #expect(player.words("connected").suffix(2) == ["> start", "> voice"])
    var released = Self.player(.pushToTalk, ["start", "startSpeech", "stopSpeech"])
    #expect(released.words("connected").last == "state listening")
  }

  // MARK: Long silence

  @Test("after EventSleep no sound is sent, until the user does something or the event ends")
  func sleep() {
    var player = Self.player(.duplex)
    #expect(player.words("sleep") == ["muted on"])
    #expect(player.session.uplink == .drop)
    #expect(player.words("sleep") == [])
    #expect(player.words("startSpeech") == ["muted off"])
    #expect(player.session.uplink == .send)
    _ = player.play("sleep")
    #expect(player.words("wholeEnd").first == "muted off")
    _ = player.words("later", "sleep")
    #expect(player.words("ask").first == "muted off")
  }

  @Test("a turn that the cloud gives up is an error of the reply")
  func timeover() {
    var player = Self.player(.pushToTalk, in: .responding)
    let actions = player.play("timeover")
    guard case .error(let error)? = Self.events(actions).first else {
      Issue.record("no error: \(actions)")
      return
    }
    #expect(error.name == "ServerTimeover" && error.scope == .reply && error.round == player.own)
    #expect(actions.map(Script.word).suffix(2) == ["cancelReply", "state listening"])
  }
}
