import MillraceCore
import MillraceDialog
import Testing

@testable import MillraceIVH

extension SessionTests {
  // MARK: A graph that drains

  @Test(
    "sources that have ended are a failure where the service cannot be reached, and not where it waits for another session"
  )
  func sourcesEnded() {
    for phase in [IVHSession.Phase.waiting, .resuming] {
      var unreachable = player(to: phase)
      #expect(unreachable.session.isUnreachable)
      #expect(words(unreachable.play("sourcesEnded")).last == "fail", "\(phase)")
    }
    // Also during a later attempt, but not during the first.
    for (phase, isFailure) in [(IVHSession.Phase.connecting, false), (.creating, false), (.preparing, false)]
    {
      var first = player(to: phase)
      first.play("sourcesEnded")
      #expect(words(first.play("created")).contains("fail") == isFailure, "\(phase)")
      var later = player(to: .creating)
      later.play("unanswered")
      later.play("later")
      if phase == .preparing { later.play("preparing") }
      #expect(words(later.play("sourcesEnded")).last == "fail", "\(phase)")
    }
    var ended = player(to: .ended) { $0.waitsAfterEnd = true }
    #expect(words(ended.play("sourcesEnded")) == ["disconnect", "end"])
    for (phase, interruption) in [(IVHSession.Phase.speaking, ["cancelReply"]), (.thinking, [])] {
      var lost = player(to: phase)
      #expect(lost.play("sourcesEnded").isEmpty)
      #expect(
        words(lost.play("channelLost"))
          == ["error network"] + interruption + [
            "interrupted service", "> closesession", "no stream", "state closed", "disconnect", "fail",
          ])
    }
  }

  @Test("the last reply of a graph that drains is played to its end although the channel is lost")
  func lastReply() {
    var player = player(to: .draining)
    for name in ["sourcesEnded", "channelLost"] { player.play(name) }
    #expect(player.session.phase == .draining)
    #expect(words(player.play("finished")) == ["state listening", "> closesession"])
    #expect(words(player.play("created")).last == "end")
  }

  @Test("a further part of a text whose channel is lost is refused")
  func lostParts() {
    var player = player(.session, to: .listening)
    for name in ["part", "startSpeaking", "over", "sourcesEnded", "channelLost"] { player.play(name) }
    #expect(player.session.phase == .draining)
    #expect(words(player.play("part")) == ["refuse"])
  }

  @Test("a graph that drains lets a text in parts come to its end")
  func drainedParts() {
    var player = player(.session, to: .speaking)
    player.play("part")
    player.play("sourcesEnded")
    let part = DialogCommand.extra(name: "streamText", payload: ["text": "b", "final": true])
    #expect(player.play(.command(part)).isEmpty)
    player.now += 2 * Script.second
    let sent = words(player.play("over")) + words(player.play("finished"))
    #expect(sent.count { $0 == "> SEND_STREAMTEXT" } == 2, "\(sent)")
  }

  @Test("a graph that drains while its session is closed does not wait for another")
  func drainedAtTheEnd() {
    for name in ["drain", "sourcesEnded"] {
      var player = player(to: .closing) { $0.waitsAfterEnd = true }
      #expect(player.play(name).isEmpty)
      #expect(words(player.play("created")).last == "end")
    }
  }

  @Test("inputs that end while the service cannot be reached do not discard a text")
  func drainedWhileWaiting() {
    var player = player(to: .waiting)
    player.play("say")
    #expect(player.play("drain").isEmpty)
    for name in ["later", "created"] { player.play(name) }
    #expect(words(player.play("channelOpened")).contains("> SEND_TEXT"))
  }

  // MARK: Ends

  @Test("a session that was not ready in time is a failure; one that runs ends as intended")
  func timeout() {
    for phase in [IVHSession.Phase.connecting, .preparing, .arriving, .opening, .waiting, .resuming] {
      var late = player(to: phase)
      #expect(words(late.play("timeout")).last == "fail", "\(phase)")
    }
    var running = player(to: .speaking)
    running.play("timeout")
    #expect(words(running.play("created")).last == "end")
    // The user has left.
    var left = player(to: .waiting)
    left.play("hangUp")
    #expect(words(left.play("created")).last == "end")
  }

  @Test("a timeout fails with the last error, or with the advice to raise connect")
  func timeoutText() throws {
    func failure(_ phase: IVHSession.Phase) throws -> DialogError {
      var player = player(to: phase)
      guard case .end(let error?) = player.play("timeout").last else { throw Missing() }
      return error
    }
    #expect(try failure(.waiting) == Script.loss)
    #expect(try failure(.preparing).text.contains("raise its \"connect\""))
  }

  @Test("another session does not fail with the error of the one before")
  func otherSession() {
    var player = player(to: .waiting) { $0.waitsAfterEnd = true }
    for name in ["hangUp", "created", "begin"] { player.play(name) }
    #expect(player.session.phase == .connecting)
    guard case .end(let error?) = player.play("timeout").last else {
      Issue.record("no failure")
      return
    }
    #expect(error != Script.loss)
  }

  private struct Missing: Error {}

  @Test("a close request that is refused temporarily is repeated once, a second later")
  func refusedEnd() {
    var busy = player(to: .closing)
    #expect(busy.play(.message(.refused(IVHFault(100_000), to: busy.number))).isEmpty)
    busy.now += busy.session.rules.closeAgain
    #expect(words(busy.play(.tick)) == ["> closesession"])
    #expect(words(busy.play(.message(.refused(IVHFault(100_000), to: busy.number)))).last == "end")
  }

  @Test("an end that the service does not confirm in time is reported")
  func unconfirmedEnd() {
    var silent = player(to: .closing)
    silent.now += silent.session.rules.close
    #expect(words(silent.play(.tick)).first == "error network")
    #expect(silent.session.isClosed)
  }

  // MARK: Interruptions

  @Test("a reply of which the channel is lost is cut off, but not one that the service has finished")
  func lostReply() {
    var speaking = player(to: .speaking)
    #expect(words(speaking.play("channelLost")).contains("interrupted service"))
    var thinking = player(to: .thinking)
    #expect(words(thinking.play("channelLost")).contains("interrupted service"))
    var finished = player(to: .draining)
    #expect(words(finished.play("channelLost")) == ["error network", "state reconnecting"])
  }

  @Test("what was cancelled here is interrupted by force where the service protects it")
  func cancelledProtected() {
    var cancelled = player(to: .thinking)
    for name in ["protected", "startSpeaking"] { cancelled.play(name) }
    #expect(interruptions(cancelled.play("replyCancelled")) == [true])
    // An interruption that was forced is not repeated.
    #expect(cancelled.play("force").isEmpty)
    var plain = player(to: .speaking)
    #expect(interruptions(plain.play("replyCancelled")) == [false])
    #expect(interruptions(plain.play("force")) == [true])
    #expect(plain.play("force").isEmpty)
  }

  @Test("force over a text that has not begun is kept until it begins")
  func forcedEarly() {
    var player = player(to: .thinking)
    #expect(interruptions(player.play("interrupt")).isEmpty)
    #expect(player.play("force").isEmpty)
    #expect(interruptions(player.play("startSpeaking")) == [true])
    // Also where the service has already said that it protects the text.
    var protected = self.player(to: .thinking)
    protected.play("protected")
    #expect(interruptions(protected.play("force")).isEmpty)
    #expect(interruptions(protected.play("startSpeaking")) == [true])
  }

  @Test("a voice that was sent completely before it began is interrupted when it begins")
  func spokenLater() {
    var rules = Script.rules(.stream, .originalVoice)
    rules.isBotReply = true
    var player = Script.Player(rules)
    for name in Script.way(to: .listening, .stream) + ["voiceBegan", "voiceEnded", "interrupt"] {
      player.play(name)
    }
    #expect(player.session.phase == .yielding)
    #expect(interruptions(player.play("startSpeaking")) == [false])
  }

  @Test("a text that the service discards is not awaited, although it was interrupted")
  func discardedEarly() {
    var player = player(to: .thinking)
    player.play("interrupt")
    let discarded = Script.push(#""Type":7,"Text":"words""#, .stream)
    #expect(words(player.play(discarded)).last == "state listening")
  }

  /// Whether each interruption that was sent is forced.
  private func interruptions(_ actions: [IVHAction]) -> [Bool] {
    actions.compactMap { action in
      guard case .send(.command(let command)) = action else { return nil }
      return command.data.first { $0.name == "Interrupt" }?.value.bool ?? false
    }
  }

  // MARK: Texts

  @Test("texts that interrupt keep their order")
  func forcedOrder() {
    var player = player(.session, to: .listening)
    func say(_ text: String, isForced: Bool) -> [IVHAction] {
      player.play(.command(.say(text, isForced: isForced)))
    }
    _ = say("first", isForced: false)
    _ = say("last", isForced: false)
    for text in ["a", "b", "c"] { _ = say(text, isForced: true) }
    var spoken: [String] = []
    for _ in 0..<6 {
      for name in ["later", "startSpeaking", "over", "finished"] {
        for case .send(.command(let command)) in player.play(name) {
          if let text = command.data.first(where: { $0.name == "Text" })?.value.string, !text.isEmpty {
            spoken.append(text)
          }
        }
      }
    }
    #expect(spoken == ["a", "b", "c", "last"])
  }

  @Test(
    "a text by request is refused alone, unless the service refuses the account",
    arguments: [110_001, 110_008, -101_002, -111_005])
  func refusedText(code: Int) {
    var account = player(to: .listening) { $0.sendsTextsByHTTP = true }
    account.play("say")
    #expect(words(account.play(.message(.refused(IVHFault(100_005), to: account.number)))).last == "fail")
    var large = player(to: .listening) { $0.sendsTextsByHTTP = true }
    large.play("say")
    let actions = large.play(.message(.refused(IVHFault(code), to: large.number)))
    guard case .post(.error(let error))? = actions.first else {
      Issue.record("\(words(actions))")
      return
    }
    #expect(error.reaction == .continue && large.session.phase == .listening)
  }
}
