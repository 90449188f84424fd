internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON

// What the cloud reports during a dialogue.
extension TuyaSession {
  // MARK: Events of the cloud

  mutating func take(_ event: TuyaCloudEvent) {
    if rules.postsRaw { post(.extra(name: "raw", payload: event.json)) }
    // What is still under way of an event that was broken off.
    if turns.isBroken(event.id) && event.type != .mcpCommand { return }
    switch event.type {
    case .start:
      // Rounds that nobody has asked for come between those of a long event.
      guard !turns.isForeign(event.id) || rules.isLong && (phase == .listening || phase == .draining) else {
        return
      }
      turns.announce(event.id)
      reply.forgive()
      if phase == .thinking { beginReply(turns.current ?? (event.id.isEmpty ? nil : event.id)) }
    case .payloadsEnd: post(.extra(name: "EventPayloadsEnd", payload: event.json))
    case .end: ended(event.id)
    case .chatBreak: broken(event.id)
    case .serverVAD: speechEnded(event.id)
    case .mcpCommand: takeToolRequest(event)
    case .serverTimeover: timedOut(event.id)
    case .sleep:
      guard !speech.isAsleep else { return }
      speech.isAsleep = true
      post(.gate(.muted, isOn: true, round: event.id.isEmpty ? nil : event.id))
    case .oneShot, .clearDataCache, .updateContext, .trigger: post(.extra(name: "event", payload: event.json))
    default: post(.unknown(event.json))
    }
  }

  /// The cloud has ended a round, or an event.
  mutating func ended(_ id: String) {
    let isOpenEvent = turns.open.map { $0.id == id || !rules.isLong && turns.isOwn(id) } ?? false
    guard isOpenEvent || !turns.isForeign(id) else { return }
    // An earlier round than the one that is prepared, or answered.
    let isLate = rules.isLong && !isOpenEvent && !id.isEmpty && turns.round.map { $0 != id } ?? false
    let isReply = id.isEmpty || reply.round == nil || id == reply.round || !rules.isLong
    wake()
    if isOpenEvent {
      endHeard()
      send(turns.abandon())
      voiceAt = now &+ Self.eventGap
    }
    turns.ended(id)
    switch phase {
    case .responding where isReply || isOpenEvent: closeReply()
    case .thinking where !isLate: listen()
    case .talking where isOpenEvent: listen()
    case .listening, .draining: beginVoiceEvent()
    default: break
    }
  }

  /// The cloud breaks a round off.
  mutating func broken(_ id: String) {
    let isReply = reply.state == .open || phase == .thinking || phase == .draining
    let round = phase == .draining || reply.state == .open ? reply.round : turns.current
    let isHere = isReply && (id.isEmpty || round == nil || id == round || id == turns.open?.id)
    if let open = turns.open, open.id == id, open.owner != .voice || !rules.isLong {
      // An event of a turn: this side stops sending, too.
      send(turns.abandon())
      turns.breakOff(id, isWhole: true)
      speech.isWanted = false
      guard !isHere else { return interruptedByCloud(round ?? id) }
      post(.interrupted(by: .service, round: id))
      return listen()
    }
    guard isHere else {
      if !id.isEmpty && id != turns.open?.id { turns.breakOff(id, isWhole: false) }
      return post(.extra(name: "EventChatBreak", payload: ["eventId": .string(id)]))
    }
    if let own = turns.awaited ?? round, own != turns.open?.id {
      turns.breakOff(own, isWhole: own == turns.awaited || turns.open == nil)
    }
    interruptedByCloud(round ?? (id.isEmpty ? nil : id))
  }

  mutating func interruptedByCloud(_ round: String?) {
    cutReply(by: .service, round: round)
    guard speech.isHeard && turns.hasVoice else { return listen() }
    enter(.talking, limit: rules.answer)
  }

  /// The cloud heard the end of speech.
  private mutating func speechEnded(_ id: String) {
    guard !turns.isForeign(id) || rules.isLong else { return }
    if rules.isLong { turns.note(id) }
    // It may repeat it.
    if speech.isHeard || phase != .thinking { post(.speechEnded) }
    speech.isHeard = false
    guard phase == .listening || phase == .talking, turns.hasVoice else { return }
    if rules.isLong { think() } else { endSpeech(isHeard: true) }
  }

  mutating func endHeard() {
    guard speech.isHeard else { return }
    speech.isHeard = false
    post(.speechEnded)
  }

  /// The cloud has waited too long.
  private mutating func timedOut(_ id: String) {
    guard !turns.isForeign(id) else { return }
    let round = id.isEmpty ? turns.current : id
    post(
      .common, "the cloud has waited too long for this turn", category: .internal, of: .reply,
      name: "ServerTimeover", round: round)
    if let open = turns.open, open.id == id || id.isEmpty || !rules.isLong {
      send(turns.abandon())
    }
    if !id.isEmpty { turns.ended(id) }
    guard phase != .draining else { return beginVoiceEvent() }
    cutReply(by: nil)
    wake()
    endHeard()
    listen()
  }

  // MARK: Texts

  mutating func take(_ text: TuyaText) {
    if rules.postsRaw { post(.extra(name: "raw", payload: text.raw)) }
    let id = text.bizID ?? ""
    guard !turns.isBroken(text: id) else { return }
    switch text.content {
    case .unknown: return post(.unknown(text.raw))
    case .speech(let words): return recognised(words, id, isFinal: text.isFinal)
    case .reply, .emotion, .skill: break
    }
    guard acceptsReply(id) else { return }
    // What comes late of a reply that has ended begins no other.
    let isLate = reply.state == .none && turns.hasEnded(text: id)
    let round = turns.round(ofText: id)
    switch text.content {
    case .reply(let part):
      if !part.isEmpty && !isLate { beginReply(round) }
      for event in part.events(isFinal: text.isFinal, round: round) { post(event) }
    case .emotion(let step, let sequence):
      if let steps = emotions.add(step, sequence: sequence, isLast: text.isFinal) {
        post(.emotion(steps, round: round))
      }
    case .skill(let code, let data): for event in TuyaSkill.events(code, data, round: round) { post(event) }
    case .speech, .unknown: break
    }
  }

  /// False for a text that belongs to the reply that was cut off.
  private mutating func acceptsReply(_ id: String) -> Bool {
    guard reply.state == .cut else { return true }
    // Its id names another round than the one that is broken.
    guard turns.isOwn(id), turns.isOther(id, than: reply.round) else {
      turns.breakText(id)
      return false
    }
    reply.forgive()
    return true
  }

  /// The user's words, as far as they were recognised.
  mutating func recognised(_ words: String, _ id: String, isFinal: Bool) {
    // Before the words of a round are final, all that come are of that round, unless their id says something else.
    let isOther = turns.isOther(
      id, than: phase == .thinking ? turns.round : reply.round,
      isTranscribed: speech.isTranscribed || phase == .draining)
    let begins = !words.isEmpty && speech.begins(id, isFinal: isFinal)
    if begins { speechBegan(isOther: isOther) }
    post(.transcript(text: words, isFinal: isFinal, round: turns.round(ofText: id)))
    guard isFinal else {
      if phase == .talking && rules.mode == .duplex { phaseEnd = now &+ rules.answer }
      return
    }
    if rules.isLong { endHeard() }
    defer { speech.isTranscribed = true }
    switch phase {
    // Nothing was understood, or nothing is answered.
    case .thinking where words.isEmpty || rules.onlyASR: listen()
    case .talking where rules.isLong, .listening where rules.isLong:
      if words.isEmpty || rules.onlyASR {
        if phase == .talking { listen() }
      } else {
        think()
      }
    default: break
    }
  }

  /// The first text of an utterance.
  /// - Parameter isOther: it belongs to another round than the reply.
  private mutating func speechBegan(isOther: Bool) {
    switch phase {
    case .listening where rules.mode == .duplex && turns.hasVoice: break
    case .talking: break
    // In a long event the user may speak over a reply. The cloud breaks it off, if it still arrives.
    case .responding where rules.isLong && rules.interrupt && isOther,
      .draining where rules.isLong && rules.interrupt && isOther:
      // A question is an event of its own, with which the cloud does not connect what is said.
      let broken = turns.breakAwaited()
      if broken.isEmpty, let round = reply.round, phase == .responding {
        turns.breakOff(round, isWhole: false)
      }
      cutReply(by: .user)
      send(broken)
    case .thinking where rules.isLong && isOther && turns.awaited != nil:
      cutReply(by: .user)
      send(turns.breakAwaited())
    case .thinking where rules.isLong && isOther && turns.round != nil: break
    default: return
    }
    speech.isHeard = true
    post(.speechStarted)
    enter(.talking, limit: rules.mode == .duplex ? rules.answer : nil)
    sendHeldImage()
  }

  // MARK: The reply

  private mutating func beginReply(_ round: String?) {
    guard reply.state != .cut else { return }
    if reply.state == .open {
      if phase == .responding { phaseEnd = now &+ rules.answer }
      guard let round, let old = reply.round, round != old else { return }
      // The next round begins without an end of this one.
      completeReply()
    }
    switch phase {
    case .thinking, .listening, .responding, .draining: break
    case .talking where rules.mode == .duplex: break
    case .talking where rules.hasVAD: send(turns.endVoice(isCut: true))
    default: return
    }
    reply.begin(round)
    post(.state(.responding))
    post(.replyStarted(round: round))
    enter(.responding, limit: rules.answer)
  }

  mutating func streamBegan(_ start: TuyaStreamStart) {
    guard case .audio = start else { return }
    reply.isStreaming = true
    beginReply(turns.current)
  }

  mutating func takeSound() {
    switch reply.state {
    case .cut: return
    case .open: break
    case .none:
      if reply.isStreaming || phase == .thinking { beginReply(turns.current) }
      guard reply.state == .open else {
        // Reported once a session.
        guard !isStrayReported else { return }
        isStrayReported = true
        return post(.common, "sound arrived without a reply; it is discarded", of: .reply)
      }
    }
    if phase == .responding { phaseEnd = now &+ rules.answer }
    reply.soundArrived()
    actions.append(.deliver)
  }

  mutating func endUtterance() {
    if reply.endUtterance() { actions.append(.endUtterance) }
  }

  /// The reply has arrived completely.
  mutating func completeReply() {
    guard reply.state == .open else { return }
    endUtterance()
    post(.replyEnded(round: reply.round, utterances: reply.utterances))
    reply.end()
    policy.noteSuccess()
    hasRenewed = false
  }

  /// The reply has arrived completely, and nothing follows it.
  private mutating func closeReply() {
    completeReply()
    guard phase == .responding else { return }
    guard reply.unplayed > 0 else { return listen() }
    enter(.draining, limit: rules.playback)
    // The user may speak over what is still played.
    if rules.isLong { beginVoiceEvent() }
  }

  /// Cuts off the reply that is prepared, arrives or is played. Does nothing when there is none.
  /// - Parameter isCancelled: by the graph already, which must not do it again.
  mutating func cutReply(
    by source: InterruptionSource?, round: String? = nil, isCancelled: Bool = false
  ) {
    guard reply.state == .open || reply.isAudible || phase == .thinking else { return }
    let round = round ?? (phase == .thinking ? turns.current : reply.round)
    if reply.isAudible && !isCancelled { actions.append(.cancelReply) }
    reply.cut()
    emotions.clear()
    if let source { post(.interrupted(by: source, round: round)) }
  }

  mutating func played(all: Bool) {
    if all { reply.playedAll() } else { reply.played() }
    if phase == .draining && reply.unplayed == 0 { listen() }
  }

  /// Interrupts what is prepared, arrives or is played.
  mutating func interrupt(by source: InterruptionSource) {
    wake()
    switch phase {
    case .thinking, .responding, .draining: break
    default: return
    }
    let round = reply.state == .open || phase == .draining ? reply.round : turns.current
    let isArriving = phase != .draining
    cutReply(by: source, round: round, isCancelled: source == .local)
    if isArriving { breakRound() }
    listen()
  }
}
