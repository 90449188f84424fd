import MillraceCore
import MillraceDialog
import MillraceJSON
import Testing

@testable import MillraceIVH

@Suite("sessions of IVH") struct SessionTests {
  typealias Script = SessionScript

  @Test("every phase with every input is as in the table")
  func tables() {
    func check(_ found: [String], _ expected: [String], _ name: String) {
      for line in Set(found).subtracting(expected).sorted() {
        Issue.record("\(name): not in the table: \(line)")
      }
      for line in Set(expected).subtracting(found).sorted() {
        Issue.record("\(name): only in the table: \(line)")
      }
    }
    check(Script.table(.stream), streamTable, "stream")
    check(Script.table(.session), sessionTable, "session")
    check(Script.table(.session, .originalVoice), voiceTable, "voice")
  }

  func player(
    _ generation: IVHGeneration = .stream, to phase: IVHSession.Phase = .listening,
    _ change: (inout IVHRules) -> Void = { _ in }
  ) -> Script.Player {
    var rules = Script.rules(generation)
    change(&rules)
    var player = Script.Player(rules)
    for name in Script.way(to: phase, generation) { player.play(name) }
    #expect(player.session.phase == phase)
    return player
  }

  func words(_ actions: [IVHAction]) -> [String] { actions.map(Script.word) }

  // MARK: The beginning

  @Test(
    "a session is polled until it is active, and given up after its time", arguments: IVHGeneration.allCases)
  func polling(generation: IVHGeneration) {
    var player = player(generation, to: .preparing) { $0.prepare = 12 * Script.second }
    for _ in 1...4 {
      #expect(words(player.play("later")) == ["> statsession"])
      #expect(player.play("preparing").isEmpty)
    }
    var active = player
    active.play("later")
    #expect(words(active.play("created")).starts(with: ["connected", "stream"]))
    // A poll that fails is repeated; the whole preparation has a limit.
    player.play("later")
    #expect(player.play("unanswered").isEmpty)
    #expect(words(player.play("later")) == ["> closesession", "error network", "state reconnecting"])
    #expect(player.session.session == nil)
  }

  @Test(
    "a setup that is refused is repeated with growing delays, or not at all, and never at once",
    arguments: [
      (IVHSession.Phase.creating, 424_242, false), (.creating, 110_015, false), (.creating, 100_012, true),
      (.starting, 424_242, true), (.starting, 110_005, true), (.resuming, 110_016, true),
      (.preparing, 424_242, true), (.starting, 100_015, false),
    ])
  func refusedSetup(phase: IVHSession.Phase, code: Int, isRepeated: Bool) {
    var player = player(.session, to: phase)
    if phase == .preparing { player.play("later") }
    let actions = words(player.play(.message(.refused(IVHFault(code), to: player.number))))
    #expect(actions.contains("fail") == !isRepeated, "\(actions)")
    guard isRepeated else { return }
    func wait() -> Nanoseconds { (player.session.deadline ?? 0) - player.now }
    #expect(player.session.phase == .waiting && wait() >= Script.second)
    // Another failure waits longer: nothing has succeeded.
    let first = wait()
    player.play("later")
    _ = player.play(.message(.refused(IVHFault(100_000), to: player.number)))
    #expect(player.session.phase == .waiting && wait() > first)
  }

  @Test(
    "a session that does not exist any more is not polled, and one that another client ended is not replaced")
  func endedWhilePrepared() {
    var player = player(.session, to: .preparing)
    player.play("later")
    var gone = player
    #expect(words(gone.play("noSession")) == ["error request", "state reconnecting"])
    #expect(gone.session.session == nil)
    let payload = #""SessionId":"s1","SessionStatus":2,"CloseType":5"#
    #expect(words(player.play(Script.answer(payload, to: player.number))).contains("kicked"))
    #expect(player.session.phase == .closed)
  }

  @Test("a start whose answer was lost is not repeated")
  func startedAlready() {
    var player = player(.session, to: .starting)
    player.play("unanswered")
    player.play("later")
    let payload = #""SessionId":"s1","SessionStatus":1,"IsSessionStarted":true"#
    let actions = words(player.play(Script.answer(payload, to: player.number)))
    #expect(actions == ["connected", "> open"], "\(actions)")
  }

  @Test("the address of the stream is emitted as soon as it is known")
  func earlyAddress() {
    var player = player(to: .creating)
    let payload = #""SessionId":"s1","SessionStatus":3,"PlayStreamAddr":"rtmp://h/s1""#
    #expect(words(player.play(Script.answer(payload, to: player.number))) == ["stream"])
    player.play("later")
    #expect(!words(player.play("created")).contains("stream"))
  }

  @Test("without a first picture the session is started, and says so")
  func noPicture() {
    var player = player(to: .arriving)
    player.now += 15 * Script.second
    #expect(words(player.play(.tick)) == ["error network", "> startsession"])
    #expect(words(player.play("created")) == ["state listening"])
  }

  @Test("a session is started at once, with the first picture, or never, as the rules say")
  func start() {
    var now = player(to: .opening) { $0.start = .now }
    #expect(words(now.play("channelOpened")) == ["conversationStarted", "> startsession"])
    var never = player(to: .opening) { $0.start = .never }
    #expect(words(never.play("channelOpened")) == ["conversationStarted", "state listening"])
    // A picture that comes first counts.
    var early = player(to: .opening)
    #expect(early.play("firstPicture").isEmpty)
    #expect(words(early.play("channelOpened")) == ["conversationStarted", "> startsession"])
  }

  // MARK: Texts

  @Test("texts wait for each other, in order, and are answered when they are sent")
  func queue() {
    var player = player()
    var sent: [String] = []
    func note(_ actions: [IVHAction]) {
      for action in actions {
        switch action {
        case .send(.command(let command)): sent.append(command.data.first?.value.string ?? "")
        case .post(.answer(let answer)): sent.append("answer \(answer.id)")
        case .answerLater: sent.append("later")
        default: break
        }
      }
    }
    for number in 1...3 { note(player.play(.command(.say("text \(number)"), id: "\(number)"))) }
    #expect(sent == ["later", "text 1", "answer 1", "later", "later"])
    for speech in 1...2 {
      for state in ["speak_start", "speak_over"] {
        note(player.play(Script.push(#""Type":3,"SpeakStatus":"\#(state)","SpeechId":\#(speech)"#, .stream)))
      }
      #expect(player.session.phase == .thinking)
    }
    #expect(sent.suffix(4) == ["text 2", "answer 2", "text 3", "answer 3"])
  }

  @Test("of texts that are never sent each command is answered as failed")
  func discarded() {
    var player = player(to: .speaking)
    for id in ["a", "b"] { _ = player.play(.command(.say("text"), id: id)) }
    let failed = player.play("hangUp").compactMap { action -> String? in
      guard case .post(.answer(let answer)) = action, case .failed(let error) = answer.result else {
        return nil
      }
      #expect(error.scope == .command)
      return answer.id
    }
    #expect(failed == ["a", "b"])
  }

  @Test("more than 64 waiting texts, and texts of more than 4,000 bytes, are refused")
  func limits() {
    var player = player(to: .speaking)
    for _ in 1...64 { #expect(player.play("say").isEmpty) }
    #expect(words(player.play("say")) == ["refuse"])
    let long = String(repeating: "é", count: 2_001)
    #expect(words(player.play(.command(.say(long)))) == ["refuse"])
  }

  @Test("between two texts of the session generation there is more than a second")
  func gap() {
    var player = player(.session, to: .listening)
    player.play("say")
    // The service accepts an interruption only when the text has begun.
    #expect(words(player.play(.command(.say("now", isForced: true)))) == ["interrupted local"])
    #expect(player.session.phase == .yielding)
    #expect(words(player.play("startSpeaking")) == ["> SEND_TEXT"])
    player.play("over")
    #expect(player.session.phase == .listening)
    #expect(player.session.deadline == player.now + .milliseconds(1_050))
    player.now += .milliseconds(1_049)
    #expect(player.play(.tick).isEmpty)
    player.now += .milliseconds(1)
    #expect(words(player.play(.tick)) == ["> SEND_TEXT", "state thinking"])
  }

  // MARK: Interruptions

  @Test("what the service protects is interrupted by force alone, and only when the service says so")
  func force() throws {
    var player = player(to: .thinking)
    player.play("protected")
    player.play("startSpeaking")
    #expect(words(player.play("interrupt")) == ["refuse"])
    #expect(
      words(player.play(.command(.interrupt(isForced: true), id: "i"))) == ["answerLater", "> SEND_TEXT"])
    var refused = player
    let no = refused.play(Script.push(#""Type":1,"InterruptResult":2,"InterruptMessage":"m""#, .stream))
    #expect(words(no) == ["answer"] && refused.session.phase == .speaking)
    let yes = player.play(Script.push(#""Type":1,"InterruptResult":1"#, .stream))
    #expect(words(yes) == ["answer", "cancelReply", "interrupted user"])
    #expect(words(player.play("over")) == ["uninterruptible off", "state listening"])
  }

  @Test("the end of an interrupted sentence does not end the next one")
  func staleEnd() {
    var player = player(to: .speaking)
    player.play("sayNow")
    #expect(player.session.phase == .thinking)
    #expect(player.play("over").isEmpty)
    let start = player.play(Script.push(#""Type":3,"SpeakStatus":"speak_start","SpeechId":2"#, .stream))
    #expect(words(start) == ["state responding", "replyStarted"])
    #expect(player.play("over").isEmpty && player.session.phase == .speaking)
  }

  // MARK: Losses

  @Test(
    "a channel that is lost is opened again for a session that runs, and a new session replaces one that does not"
  )
  func losses() {
    var player = player(to: .resuming)
    var gone = player
    #expect(words(player.play("created")) == ["connected", "> open"])
    #expect(words(player.play("channelOpened")) == ["conversationStarted", "state listening"])
    #expect(words(gone.play("closed")) == ["no stream", "> newsession"])
    #expect(words(gone.play("created")) == ["connected", "stream", "> open"])
  }

  @Test("after a loss of the whole wire requests are sent only when there is one again")
  func wire() {
    var player = player()
    player.play("lost")
    #expect(words(player.play("later")) == ["connect"])
    #expect(words(player.play("opened")) == ["> statsession"])
  }

  @Test("states that the service repeats for finished drives have no effect")
  func repeated() {
    var player = player(.session, to: .listening)
    func state(_ word: String) -> IVHInput {
      Script.push(#""Type":3,"SpeakStatus":"\#(word)","ReqId":"r1""#, .session)
    }
    player.play("say")
    _ = player.play(state("TextStart"))
    _ = player.play(state("TextOver"))
    player.play("finished")
    for word in ["WaitingTextStart", "TextStart", "TextOver"] { #expect(player.play(state(word)).isEmpty) }
  }

  // MARK: The end

  @Test("every way out closes the session", arguments: IVHGeneration.allCases)
  func closing(generation: IVHGeneration) {
    let phases: [IVHSession.Phase] = [
      .preparing, .arriving, .starting, .opening, .listening, .thinking, .speaking, .draining, .yielding,
      .waiting,
      .resuming,
    ]
    for phase in phases {
      var player = player(generation, to: phase)
      #expect(player.session.closingRequest != nil)
      #expect(words(player.play("hangUp")).contains("> closesession"), "\(phase)")
      #expect(words(player.play("created")).suffix(2) == ["disconnect", "end"])
    }
    // A session that was asked for is closed when its id is known.
    var early = player(generation, to: .creating)
    #expect(early.play("hangUp").isEmpty)
    #expect(words(early.play("created")) == ["> closesession"])
    var failed = player(generation, to: .starting)
    #expect(words(failed.play("quota")).contains("> closesession"))
  }

  @Test("a graph that drains lets the avatar finish, with everything that waits")
  func draining() {
    var player = player(to: .speaking)
    player.play("say")
    #expect(player.play("drain").isEmpty)
    #expect(words(player.play("over")) == ["replyEnded", "> SEND_TEXT", "state thinking"])
    _ = player.play(Script.push(#""Type":3,"SpeakStatus":"speak_start","SpeechId":2"#, .stream))
    let actions = player.play(Script.push(#""Type":3,"SpeakStatus":"speak_over","SpeechId":2"#, .stream))
    #expect(words(actions) == ["replyEnded"])
    #expect(words(player.play("finished")) == ["state listening", "> close", "> closesession"])
  }

  @Test("after the end of the user's audio the session ends in silence, and not before what waits was spoken")
  func linger() {
    var player = player { $0.linger = 2 * Script.second }
    #expect(player.play("audioEnded").isEmpty && player.session.deadline == player.now + 2 * Script.second)
    player.play("say")
    player.play("later")
    #expect(player.session.phase == .thinking)
    for name in ["startSpeaking", "over"] { player.play(name) }
    #expect(words(player.play("finished")) == ["state listening"])
    #expect(words(player.play("later")) == ["> close", "> closesession"])
  }

  @Test("another session of the same user ends this one, which does not begin again")
  func replaced() {
    for code in ["push", "answer"] {
      var player = player(.session, to: code == "push" ? .speaking : .resuming)
      let actions =
        code == "push"
        ? player.play("replaced") : player.play(.message(.refused(IVHFault(110_022), to: player.number)))
      #expect(words(actions).contains("kicked") && player.session.phase == .closed)
      #expect(!words(actions).contains("> closesession"))
    }
  }

  // MARK: What goes wrong while something is spoken

  /// A session in which a voice is being sent, and has begun to be spoken.
  private func voiced(_ change: (inout IVHRules) -> Void = { _ in }) -> Script.Player {
    var player = player(.session) { rules in
      rules.creation.driver = .originalVoice
      change(&rules)
    }
    player.play("voiceBegan")
    _ = player.play(Script.push(#""Type":3,"SpeakStatus":"AudioStart","ReqId":"v1""#, .session))
    #expect(player.session.phase == .speaking && player.session.uplink == .send)
    return player
  }

  @Test(
    "after an utterance that the service has ended, or that failed, what follows is another",
    arguments: [
      #""Type":3,"SpeakStatus":"AudioOver","FinalType":2,"ReqId":"v1""#,
      #""Type":9,"ErrorCode":-111005,"ReqId":"v1""#,
    ])
  func brokenUtterance(payload: String) {
    var player = voiced { $0.followsPlayback = false }
    #expect(words(player.play(Script.push(payload, .session))).contains("new utterance"))
    #expect(player.session.phase == .listening && player.session.uplink == .send)
    player.play("voiceBegan")
    #expect(player.session.phase == .thinking)
    #expect(words(player.play("voiceEnded")) == ["> end voice"])
  }

  @Test("after a loss of the channel the voice is another utterance")
  func lostUtterance() {
    var player = voiced()
    #expect(words(player.play("channelLost")).contains("new utterance"))
  }

  @Test("an utterance whose end is lost does not keep what follows waiting")
  func lostEnd() {
    var player = voiced()
    player.play("voiceEnded")
    player.play("say")
    #expect(player.session.uplink == .keep)
    player.now += player.session.rules.playback
    #expect(words(player.play(.tick)).contains("> SEND_TEXT"))
    // Nor does one that was over before it began.
    var early = self.player(.session) { $0.creation.driver = .originalVoice }
    early.play("voiceBegan")
    early.play("voiceEnded")
    _ = early.play(Script.push(#""Type":3,"SpeakStatus":"AudioOver","ReqId":"v1""#, .session))
    #expect(early.session.phase == .listening && early.session.uplink == .send)
  }

  @Test("a sentence that fails, or whose end is lost, opens its gates", arguments: [true, false])
  func gatesOfAFailure(isFailure: Bool) {
    var player = player(to: .speaking)
    _ = player.play(Script.push(#""Type":2,"Text":"a","Muted":true,"SpeechId":1"#, .stream))
    if isFailure {
      let actions = player.play(Script.push(#""Type":5,"SpeechId":1"#, .stream))
      #expect(words(actions).contains("muted off"), "\(words(actions))")
    } else {
      player.now += player.session.rules.playback
      #expect(words(player.play(.tick)).contains("muted off"))
    }
  }

  @Test(
    "a text that was interrupted before it began is interrupted when it begins, and its late end is not mistaken"
  )
  func interruptedEarly() {
    var player = player(.session, to: .speaking)
    _ = player.play(Script.push(#""Type":3,"SpeakStatus":"TextStart","ReqId":"a""#, .session))
    player.now += 2 * Script.second
    player.play("sayNow")
    #expect(player.session.phase == .thinking)
    #expect(words(player.play("interrupt")) == ["interrupted local"])
    // The end of the text that was interrupted first.
    _ = player.play(Script.push(#""Type":3,"SpeakStatus":"TextOver","FinalType":3,"ReqId":"a""#, .session))
    #expect(player.session.phase == .yielding)
    let began = player.play(Script.push(#""Type":3,"SpeakStatus":"TextStart","ReqId":"b""#, .session))
    #expect(words(began) == ["> SEND_TEXT"])
    _ = player.play(Script.push(#""Type":3,"SpeakStatus":"TextOver","FinalType":3,"ReqId":"b""#, .session))
    #expect(player.session.phase == .listening)
  }

  @Test("the parts of a text follow each other although a text waits, and begin again in another session")
  func parts() {
    func part(_ text: String) -> IVHInput {
      .command(.extra(name: "streamText", payload: ["text": .string(text)]))
    }
    var player = player(.session)
    #expect(words(player.play(part("one"))).first == "> SEND_STREAMTEXT")
    player.play("say")
    #expect(words(player.play(part("two"))) == ["> SEND_STREAMTEXT"])
    for name in ["channelLost", "later", "closed"] { player.play(name) }
    for name in ["created", "firstPicture", "created"] { player.play(name) }
    #expect(words(player.play("channelOpened")).contains("> SEND_TEXT"))
    _ = player.play(part("three"))
    for name in ["startSpeaking", "over", "finished"] { player.play(name) }
    player.now += 2 * Script.second
    let numbers = player.play(.tick).compactMap { action -> Int? in
      guard case .send(.command(let command)) = action else { return nil }
      return command.data.first { $0.name == "Seq" }?.value.integer
    }
    #expect(numbers == [1])
  }

  @Test("a text that is sent by a request is answered in its response")
  func answeredByHTTP() {
    var player = player(to: .speaking) { $0.sendsTextsByHTTP = true }
    player.play("protected")
    _ = player.play(.command(.interrupt(isForced: true), id: "i"))
    let answer = Script.answer(
      #""Type":1,"Text":"","InterruptResult":2,"InterruptMessage":"why""#, to: player.number)
    #expect(words(player.play(answer)) == ["answer"])
  }

  @Test(
    "a refusal that names nothing is of what was sent last", arguments: [100_001, 110_001, 110_004, 424_242])
  func unnamedRefusal(code: Int) {
    var thinking = player(.session, to: .thinking)
    #expect(words(thinking.play(Script.code(code, .session))).last == "state listening")
    var speaking = player(.session, to: .speaking)
    #expect(words(speaking.play(Script.code(code, .session))).count == 1)
    #expect(speaking.session.phase == .speaking)
    var quota = player(.session, to: .speaking)
    #expect(words(quota.play(Script.code(100_014, .session))).contains("fail"))
  }

  @Test("a graph that drains before the session is ready lets the avatar speak what waits")
  func drainedEarly() {
    var player = player(to: .idle)
    for name in ["start", "say", "drain"] { player.play(name) }
    #expect(player.session.phase == .connecting)
    for name in ["opened", "created", "channelOpened", "firstPicture"] { player.play(name) }
    #expect(words(player.play("created")).contains("> SEND_TEXT"))
    for name in ["startSpeaking", "over"] { player.play(name) }
    #expect(words(player.play("finished")).contains("> closesession"))
  }

  @Test("playback that never reports is not an interruption")
  func unheard() {
    var player = player(to: .draining)
    player.now += player.session.rules.playback
    let actions = words(player.play(.tick))
    #expect(actions.last == "state listening" && !actions.contains("interrupted local"), "\(actions)")
  }

  @Test(
    "a reply that ended in silence was heard before the service has ended it; what still sounds is awaited")
  func heardEarly() {
    var player = player(to: .speaking)
    _ = player.play(.audible)
    _ = player.play(.finished)
    var more = player
    #expect(player.session.phase == .speaking)
    player.play("over")
    #expect(player.session.deadline == player.now + player.session.rules.lag)
    player.now += player.session.rules.lag
    #expect(player.play(.tick).map(Script.word) == ["state listening"])
    // A pause within it.
    more.play("over")
    _ = more.play(.audible)
    more.now += more.session.rules.lag
    #expect(more.play(.tick).isEmpty)
    #expect(words(more.play("finished")) == ["state listening"])
  }

  @Test("what is recognised while texts drive the avatar ends with the user's audio")
  func recognised() {
    var player = player()
    player.play("voiceBegan")
    #expect(words(player.play("audioEnded")) == ["> end voice"])
    #expect(player.play("voiceEnded").isEmpty)
  }

  @Test(
    "what was kept of the user's audio beyond its end is an utterance that ends", arguments: [false, true])
  func keptBeyondTheEnd(isRecognised: Bool) {
    var player = player(.session, to: .opening) {
      $0.creation.driver = isRecognised ? .text : .originalVoice
      $0.linger = 2 * Script.second
    }
    player.play("audioEnded")
    player.play("channelOpened")
    #expect(player.session.phase == .listening && player.session.uplink == .send)
    let actions = words(player.play("voiceBegan"))
    #expect(actions == (isRecognised ? ["> end voice"] : ["state thinking", "> end voice"]))
    #expect(player.play("voiceEnded").isEmpty)
    guard !isRecognised else { return }
    _ = player.play(Script.push(#""Type":3,"SpeakStatus":"AudioStart","ReqId":"v1""#, .session))
    // It does not wait for ever for an end that was lost.
    var lost = player
    lost.now += lost.session.rules.playback
    #expect(words(lost.play(.tick)).contains("state listening"))
    _ = player.play(Script.push(#""Type":3,"SpeakStatus":"AudioOver","ReqId":"v1""#, .session))
    player.play("finished")
    #expect(words(player.play("later")).contains("> closesession"))
  }

  @Test("the request that closes the session is repeated once")
  func repeatedEnd() {
    var player = player(to: .closing)
    #expect(words(player.play("unanswered")) == ["> closesession"])
    #expect(words(player.play("unanswered")).last == "end")
  }

  @Test("a session whose creation is answered too late is closed")
  func lateCreation() {
    var player = player(to: .creating)
    let number = player.number
    player.now += player.session.rules.answer
    _ = player.play(.tick)
    player.play("later")
    player.play("opened")
    let late = player.play(Script.answer(#""SessionId":"late","SessionStatus":1"#, to: number))
    #expect(words(late) == ["> closesession"])
    #expect(player.session.session == nil && player.session.phase == .creating)
  }

  @Test("a request of the program that waits when the connection is lost is answered no")
  func lostQuery() {
    var player = player()
    _ = player.play(.command(.extra(name: "statSession", payload: .null), id: "q"))
    #expect(words(player.play("lost")).first == "answer")
  }
}
