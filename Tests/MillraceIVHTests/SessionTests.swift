import MillraceCore
import MillraceDialog
import MillraceJSON
import Testing

@testable import MillraceIVH

@Suite("sessions of IVH") struct SessionTests {
  private typealias Script = SessionScript

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

  private func player(
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

  private func words(_ actions: [IVHAction]) -> [String] { actions.map(Script.word) }

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
    #expect(words(player.play("later")) == ["error network", "state reconnecting"])
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
    #expect(
      words(player.play(.command(.say("now", isForced: true)))) == ["interrupted local", "> SEND_TEXT"])
    #expect(player.session.phase == .yielding)
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
    #expect(words(player.play("over")) == ["replyEnded", "state listening", "> SEND_TEXT", "state thinking"])
    _ = player.play(Script.push(#""Type":3,"SpeakStatus":"speak_start","SpeechId":2"#, .stream))
    let actions = player.play(Script.push(#""Type":3,"SpeakStatus":"speak_over","SpeechId":2"#, .stream))
    #expect(words(actions) == ["replyEnded", "state listening", "> close", "> closesession"])
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
}
