internal import MillraceCore

/// What each state makes of what happens. Inputs that are not named mean nothing there.
extension TurnMachine {
  mutating func whenIdle(_ input: TurnInput) {
    switch input {
    case .start, .connected: enter(.connecting)
    case .serviceListening, .serviceThinking, .serviceResponding, .replyStarted: whenConnecting(input)
    case .ask: actions.add(.dropQuestion)
    default: break
    }
  }

  mutating func whenConnecting(_ input: TurnInput) {
    switch input {
    case .serviceListening: takeFloor()
    case .serviceThinking: enter(.thinking)
    case .serviceResponding, .replyStarted: beginReply()
    case .ask:
      pending = .question
    case .press:
      guard rules.mode != .duplex else { return }
      dropPending()
      pending = .speech
    default: break
    }
  }

  mutating func whenListening(_ input: TurnInput) {
    switch input {
    case .press:
      guard rules.mode != .duplex else { return }
      actions.add(.startSpeech)
      enter(.hearing)
    case .speechStarted: enter(.hearing)
    case .serviceThinking: enter(.thinking)
    case .serviceResponding, .replyStarted: beginReply()
    case .ask:
      actions.add(.passQuestion)
      serviceListens = false
      enter(.thinking)
    default: break
    }
  }

  mutating func whenHearing(_ input: TurnInput) {
    switch input {
    case .release where rules.mode == .pushToTalk, .press where rules.mode == .tapToTalk: stopSpeech()
    case .cancel:
      if rules.mode != .duplex { actions.add(.cancelSpeech) }
      takeFloor()
    case .speechEnded, .serviceThinking: enter(.thinking)
    case .serviceResponding, .replyStarted: beginReply()
    case .failed: takeFloor()
    case .ask:
      if rules.mode != .duplex { actions.add(.cancelSpeech) }
      actions.add(.passQuestion)
      serviceListens = false
      enter(.thinking)
    default: break
    }
  }

  private mutating func stopSpeech() {
    actions.add(.stopSpeech)
    serviceListens = false
    enter(.thinking)
  }

  mutating func whenThinking(_ input: TurnInput) {
    switch input {
    case .serviceResponding, .replyStarted: beginReply()
    case .serviceListening:
      endReply()
      takeFloor()
    case .speechStarted:
      // In push-to-talk it comes late, for the speech that is over.
      guard rules.mode != .pushToTalk else { return }
      endReply()
      enter(.hearing)
    case .replyEnded(let utterances): endOfReply(utterances)
    case .press:
      if rules.mode != .duplex { breakOff(.hand, pending: .speech) }
    case .ask: breakOff(.hand, pending: .question)
    case .interrupt: breakOff(.hand, pending: .nothing)
    case .serviceInterrupted, .failed:
      endReply()
      yield(isCut: true)
    case .voided: noteVoided()
    default: break
    }
  }

  mutating func whenReplying(_ input: TurnInput) {
    switch input {
    case .replyEnded(let utterances):
      if state == .responding { endOfReply(utterances) }
    case .replyStarted, .serviceResponding:
      // The next reply comes while this one is still heard: they are one to whoever listens.
      if state == .draining {
        joinReply()
        enter(.responding)
      }
    case .serviceListening: cutByService(.listening)
    case .speechStarted:
      guard rules.mode == .duplex, !isUninterruptible else { return }
      cutByService(.hearing)
    case .serviceInterrupted: cutByService(.yielding)
    case .failed:
      endReply()
      yield(isCut: true)
    case .voided: noteVoided()
    case .voiceStarted(let ago): suspect(ago)
    case .press:
      if rules.mode != .duplex { breakOff(.hand, pending: .speech) }
    case .ask: breakOff(.hand, pending: .question)
    case .interrupt: breakOff(.hand, pending: .nothing)
    default: break
    }
  }

  mutating func whenSuspecting(_ input: TurnInput) {
    switch input {
    case .voiceStarted(let ago):
      if voiceSince == nil { voiceSince = now &- max(0, ago) }
      judgeVoice()
    case .voiceEnded(let ago):
      if let since = voiceSince.take() { voiceTime &+= max(0, now &- max(0, ago) &- since) }
      judgeVoice()
    case .replyEnded(let utterances):
      guard suspectedIn == .responding else { return }
      dueUtterances = carriedUtterances.addingClamped(max(0, utterances))
      suspectedIn = .draining
      if isHeard { forgetSuspicion() }
    case .replyStarted, .serviceResponding:
      if suspectedIn == .draining { joinReply() }
      suspectedIn = .responding
    default: whenReplying(input)
    }
  }

  mutating func whenYielding(_ input: TurnInput) {
    switch input {
    case .serviceListening: takeFloor()
    // It knows, then, and listens soon.
    case .serviceInterrupted, .failed: if owesInterrupt { enter(.yielding) }
    case .speechStarted:
      guard rules.mode == .duplex else { return }
      dropPending()
      enter(.hearing)
    case .serviceThinking:
      // With something pending it is the old answer's, told before the service knew that it was cut off.
      if pending == .nothing { enter(.thinking) }
    case .press:
      guard rules.mode != .duplex else { return }
      dropPending()
      pending = .speech
    case .serviceResponding, .replyStarted:
      if !isCut { beginReply() }
    case .ask: pending = .question
    default: break
    }
  }

  mutating func whenOver(_ input: TurnInput) {
    switch input {
    case .start where state == .closed: enter(.connecting)
    case .closed where state == .closing: enter(.closed)
    case .ask: actions.add(.dropQuestion)
    default: break
    }
  }
}
