internal import MillraceCore

/// Replies: their beginning, their end, and what cuts them off.
extension TurnMachine {
  // MARK: Beginning and end

  mutating func beginReply() {
    if state != .thinking { begun = generation }
    finishedUtterances = 0
    carriedUtterances = 0
    dueUtterances = nil
    enter(.responding)
  }

  /// Another reply begins before the last is heard.
  mutating func joinReply() {
    carriedUtterances = dueUtterances ?? carriedUtterances
    dueUtterances = nil
  }

  /// True when playback has told of every utterance's end.
  var isHeard: Bool {
    guard let due = dueUtterances else { return false }
    return !rules.followsPlayback || finishedUtterances >= due
  }

  /// All of a reply has come.
  mutating func endOfReply(_ utterances: Int) {
    if state == .thinking {
      finishedUtterances = 0
      carriedUtterances = 0
    }
    dueUtterances = carriedUtterances.addingClamped(max(0, utterances))
    if isHeard {
      yield(isCut: false)
    } else {
      enter(.draining)
    }
  }

  mutating func noteAudible(_ reply: UInt32) {
    guard !isVoid(reply) else { return }
    // A service that begins by itself, without a word.
    if state == .listening || state == .thinking { beginReply() }
  }

  mutating func noteFinished(_ reply: UInt32, _ samples: Int, _ milliseconds: Int) {
    actions.add(.heard(reply: reply, samples: samples, milliseconds: milliseconds, isWhole: true))
    guard !isVoid(reply) else { return }
    switch state {
    case .responding, .draining:
      finishedUtterances += 1
      if isHeard { yield(isCut: false) }
    case .suspecting:
      finishedUtterances += 1
      if isHeard { forgetSuspicion() }
    default: break
    }
  }

  private func isVoid(_ reply: UInt32) -> Bool {
    voided != 0 && !Packet.isNewer(reply, than: voided)
  }

  // MARK: Cutting off

  /// Voids what is left of a reply, if there is one. While the service thinks, some of its sound may be here already: it comes
  /// ahead of the word that it begins.
  mutating func endReply() {
    let isDucked = state == .suspecting
    guard isDucked || state == .responding || state == .draining || state == .thinking else { return }
    voided = generation
    // Voided again, it would take the beginning of the next with it.
    if generation == begun { actions.add(.voidReplies) }
    if isDucked { actions.add(.resume) }
    voiceSince = nil
  }

  /// Cuts a reply off from this side; `breaker` nil: nobody did, it took too long.
  mutating func breakOff(_ breaker: TurnBreaker?, pending next: Pending) {
    if let breaker, state != .thinking { actions.add(.bargedIn(by: breaker, afterMilliseconds: voiceAge)) }
    endReply()
    actions.add(.interrupt)
    serviceListens = false
    if next != .nothing {
      dropPending()
      pending = next
    }
    yield(isCut: true)
  }

  /// Somebody else on this machine has voided the reply. A service that did so itself says so next; otherwise it does not know.
  mutating func noteVoided() {
    voided = generation
    if state == .suspecting { actions.add(.resume) }
    voiceSince = nil
    yield(isCut: true)
    guard state == .yielding else { return }
    owesInterrupt = true
    setDeadline(now &+ rules.ownWord)
  }

  /// The service has cut its reply off.
  mutating func cutByService(_ next: TurnState) {
    actions.add(.bargedIn(by: .service, afterMilliseconds: voiceAge))
    endReply()
    switch next {
    case .listening: takeFloor()
    case .yielding: yield(isCut: true)
    default: enter(next)
    }
  }

  /// Milliseconds since the voice that is suspected began; 0 without one.
  private var voiceAge: Int {
    state == .suspecting ? Int((now &- suspectedAt) / 1_000_000) : 0
  }

  // MARK: A voice over a reply

  mutating func suspect(_ ago: Nanoseconds) {
    guard rules.mode == .duplex, rules.listensForVoice, !isUninterruptible, !isMuted else { return }
    suspectedIn = state
    suspectedAt = now &- max(0, ago)
    voiceSince = suspectedAt
    voiceTime = 0
    actions.add(.duck)
    enter(.suspecting)
    judgeVoice()
  }

  /// Decides whether it was a voice, or says when to look again.
  mutating func judgeVoice() {
    let spoken = voiceTime &+ (voiceSince.map { now &- $0 } ?? 0)
    if spoken >= rules.minimumSpeech {
      breakOff(.voice, pending: .nothing)
    } else if let since = voiceSince {
      setDeadline(since &+ rules.minimumSpeech &- voiceTime)
    } else if now &- suspectedAt >= rules.confirmWindow {
      forgetSuspicion()
    } else {
      setDeadline(suspectedAt &+ rules.confirmWindow)
    }
  }

  /// It was none: the reply goes on where it was.
  mutating func forgetSuspicion() {
    actions.add(.falseInterruption(milliseconds: Int((now &- suspectedAt) / 1_000_000)))
    actions.add(.resume)
    voiceSince = nil
    if isHeard {
      yield(isCut: false)
    } else {
      enter(suspectedIn)
    }
  }

  mutating func setUninterruptible(_ isOn: Bool) {
    isUninterruptible = isOn
    if isOn && state == .suspecting { forgetSuspicion() }
  }

  mutating func setMuted(_ isOn: Bool) {
    isMuted = isOn
    if isOn && state == .suspecting { forgetSuspicion() }
  }

  // MARK: Giving the floor back

  /// The reply is over here: the service is to listen again, unless it does already.
  mutating func yield(isCut: Bool) {
    self.isCut = isCut
    if serviceListens {
      takeFloor()
    } else {
      enter(.yielding)
    }
  }

  /// The service listens: what the user did meanwhile is carried out.
  mutating func takeFloor() {
    let next = pending
    pending = .nothing
    switch next {
    case .nothing: enter(.listening)
    case .speech:
      actions.add(.startSpeech)
      enter(.hearing)
    case .question:
      actions.add(.passQuestion)
      serviceListens = false
      enter(.thinking)
    }
  }

  mutating func dropPending() {
    if pending == .question { actions.add(.dropQuestion) }
    pending = .nothing
  }

  /// The button came up before the service listened.
  mutating func forgetSpeech() {
    if pending == .speech { pending = .nothing }
  }
}
