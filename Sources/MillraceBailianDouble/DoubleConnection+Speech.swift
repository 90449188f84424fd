internal import MillraceConformance
internal import MillraceCore
internal import MillraceDialog
internal import MillraceDoubles
internal import MillraceJSON
internal import MillraceNet

/// The user's speech, and the replies.
extension DoubleConnection {
  func takeAudio(_ bytes: [UInt8]) {
    guard state != .over else { return checkAfterStop("audio") }
    double.noteReceived(bytes)
    guard state != .fresh && reply > 0 else {
      return double.violate("audioBeforeListening", "audio before the first Listening")
    }
    quiet.reset()
    if mode == .duplex && !isOpusUp {
      double.note(delay: timing.delay(ofSamples: bytes.count / 2, rate: upRate, at: clock.now))
    }
    if mode == .push2talk && !hasSentSpeech {
      return double.violate("audioOutOfTurn", "audio outside of SendSpeech and StopSpeech")
    }
    let heard = ear.hear(bytes)
    double.note(heard)
    for change in heard.changes { note(change) }
  }

  private func note(_ change: EnergyDetector.Change) {
    switch (mode, change, state) {
    case (.push2talk, .began, _):
      guard !hasDetectedSpeech else { return }
      hasDetectedSpeech = true
      say("SpeechStarted")
    case (.push2talk, .ended, _): break
    case (_, .began, .listening):
      hasDetectedSpeech = true
      say("SpeechStarted")
    case (_, .ended, .listening): if hasDetectedSpeech { endSpeech() }
    case (.duplex, .began, .responding): bargeIn()
    default: break
    }
  }

  private func bargeIn() {
    double.observer.interrupted?()
    switch double.scenario.bargeIn {
    case .accepted:
      say("RequestAccepted")
      breakOff()
      say("SpeechStarted")
    case .listening:
      breakOff()
      say("SpeechStarted")
    case .speech:
      say("SpeechStarted")
      breakOff()
    case .ended:
      hasEnded = true
      say("RespondingEnded")
      breakOff()
      say("SpeechStarted")
    }
    hasDetectedSpeech = true
  }

  func endSpeech() {
    hasDetectedSpeech = false
    let turn = double.nextTurn()
    let text = turn.hears
    let half = String(text.prefix(text.count / 2))
    for (part, isLast) in [(half, false), (text, true)] {
      say(
        "SpeechContent",
        [JSONValue.Member("text", .string(part)), JSONValue.Member("finished", .bool(isLast))])
    }
    say("SpeechEnded")
    answer(turn, byVoice: true)
  }

  /// Ends the session with an error when a client that has to send audio sends none. One watch per connection.
  func watchSilence() {
    guard !isWatching else { return }
    isWatching = true
    checkSilence()
  }

  private func checkSilence() {
    double.later(1_000) { [self] in
      guard state != .over, !isStalled else { return }
      let isDue = state == .listening && (mode != .push2talk || hasSentSpeech)
      let limit = double.scenario.silence
      if quiet.tick(isDue: isDue, limit: limit) {
        double.violate("silence", "no audio for \(limit) s")
        return fail(444, "ClientAudioTimeout", "no audio for \(limit) s")
      }
      checkSilence()
    }
  }

  // MARK: Replies

  func answer(_ turn: BailianScenario.Turn, byVoice isByVoice: Bool) {
    self.turn = turn
    self.isByVoice = isByVoice
    enter(.thinking)
    reply += 1
    hasEnded = false
    firstSent = nil
    number = double.nextReply()
    if misbehave(at: .thinking) { return }
    let plan = reply
    double.prepare(turn, number: number, format: hasAudio ? format : nil, rate: downRate) { [self] spoken in
      spoke(spoken, plan)
    }
  }

  private func spoke(_ spoken: Result<SpokenReply?, SynthesisError>, _ plan: Int) {
    guard plan == reply, state == .thinking else { return }
    do throws(SynthesisError) {
      respond(try spoken.get(), plan)
    } catch {
      double.note("# \(error)")
      sendError(500, "InternalSynthesizerError", error.description)
      breakOff()
    }
  }

  private func respond(_ spoken: SpokenReply?, _ plan: Int) {
    lasts = spoken?.milliseconds ?? 0
    var messages = spoken?.messages(chunk: double.scenario.chunk) ?? []
    if double.scenario.isEarly {
      for message in messages.prefix(2) { send(message) }
      messages.removeFirst(min(2, messages.count))
    }
    isStartDue = true
    if turn.fault?.kind == .outOfOrder {
      sayContent()
      say("RespondingStarted")
      enter(.responding)
    } else {
      enter(.responding)
      say("RespondingStarted")
    }
    if misbehave(at: .responding) { return }
    if turn.fault?.kind != .outOfOrder { sayContent() }
    send(ReplyMessages(messages, milliseconds: lasts, speed: double.scenario.speed), plan)
  }

  private func sayContent() {
    guard hasDialogText else { return }
    let words = turn.says.split(separator: " ")
    for count in [(words.count + 1) / 2, words.count] {
      content(words.prefix(count).joined(separator: " "), isLast: count == words.count)
      if count == words.count { break }
    }
  }

  private func content(_ text: String, isLast: Bool) {
    var more = [
      JSONValue.Member("round_id", .string("round-\(reply)")),
      JSONValue.Member("llm_request_id", .string("request-\(reply)")),
      JSONValue.Member("text", .string(text)), JSONValue.Member("spoken", .string(text)),
      JSONValue.Member("finished", .bool(isLast)),
    ]
    if isLast && !turn.commands.isEmpty {
      more.append(
        JSONValue.Member("extra_info", ["commands": .string(JSONValue.array(turn.commands).text)]))
    }
    say("RespondingContent", more)
  }

  private func send(_ message: [UInt8]) {
    firstSent = firstSent ?? clock.now
    guard socket.send(message, isText: false) else { return double.note("# the send backlog is full") }
    double.noteSent(message, of: number)
  }

  /// - Parameters:
  ///   - messages: what remains of the reply.
  ///   - plan: the number of the reply; nothing more is sent once it was cut off.
  private func send(_ messages: ReplyMessages, _ plan: Int) {
    guard plan == reply, state == .responding, !isStalled else { return }
    if messages.isHalfway && misbehave(at: .midway) { return }
    if messages.count <= 1 && turn.fault?.kind == .outOfOrder && !hasEnded {
      hasEnded = true
      say("RespondingEnded")
    }
    var messages = messages
    guard let (message, pause) = messages.next() else {
      guard !hasEnded else { return }
      hasEnded = true
      if misbehave(at: .answered) { return }
      return say("RespondingEnded")
    }
    send(message)
    let rest = messages
    double.later(pause) { [self] in send(rest, plan) }
  }
}
