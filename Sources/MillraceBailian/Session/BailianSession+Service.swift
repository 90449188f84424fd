internal import MillraceCore
internal import MillraceDialog

/// What the service says.
extension BailianSession {
  mutating func take(_ message: BailianMessage) {
    silentAt = now &+ rules.silence
    if let usage = message.usage { post(.usage(usage)) }
    // Before what the event does: it may be the end, after which nothing is told.
    for member in message.rest { post(.extra(name: member.name, payload: member.value)) }
    switch message.event {
    case .heartBeat, .taskStarted: break
    case .started: started(message)
    case .state(let state): if phase != .stopping { take(state) }
    case .speechStarted: if phase != .stopping { speechStarted() }
    case .speechContent(let text, let isFinished): post(.transcript(text: text, isFinal: isFinished))
    case .speechEnded: if phase != .stopping { speechEnded() }
    case .respondingStarted: if phase != .stopping { respondingStarted() }
    case .respondingContent(let content): take(content)
    case .respondingEnded: if phase != .stopping { respondingEnded() }
    case .requestAccepted: if phase != .stopping { accepted() }
    case .error(let fault): take(fault)
    case .stopped: if phase != .stopping { ended() }
    case .taskFinished: ended()
    case .unknown: post(.unknown(message.raw))
    }
  }

  private mutating func started(_ message: BailianMessage) {
    guard phase != .stopping else { return }
    if let id = message.dialog {
      dialog = id
      post(.conversationStarted(id: id))
    }
    beatAt = now &+ rules.heartBeat
    if let standing, !hasStarted { send(.updateInfo(standing)) }
    hasStarted = true
  }

  /// The service has ended the dialogue.
  private mutating func ended() {
    // What has come may be heard; an answer of which nothing has come will not.
    if hasSound { closeReply() } else { cutReply(by: .service) }
    actions.append(.disconnect)
    finish(nil)
  }

  private mutating func take(_ state: BailianMessage.State) {
    switch state {
    case .listening: listening()
    case .thinking: thinking()
    case .responding: responding()
    }
  }

  private mutating func listening() {
    hasListened = true
    if beatAt == nil { beatAt = now &+ rules.heartBeat }
    // Repeated while the user speaks by hand it means nothing new.
    guard phase != .talking else {
      post(.state(.listening))
      return
    }
    cutReply(by: .service)
    reply = .none
    isStartTold = false
    isAsked = false
    hasToldStray = false
    enter(.listening, limit: isSoundOver && rules.linger > 0 ? rules.linger : nil)
    post(.state(.listening))
    if film == .asked { film = .on }
    takeTurn()
  }

  /// The service listens: what waited for it happens now.
  private mutating func takeTurn() {
    let waiting = commands
    commands = []
    hasToldFullCommands = false
    for command in waiting {
      post(.command(name: command.name, payload: command.payload))
      if rules.live != .never { noteFilm(command.name) }
    }
    if wantsSpeech {
      startSpeech()
    } else if let next = question {
      question = nil
      ask(next)
    } else if wantsFilm && film == .off {
      askForFilm()
    }
  }

  private mutating func noteFilm(_ command: String) {
    switch command {
    case "open_videochat": wantsFilm = true
    case "send_video_stream": film = .on
    case "quit_videochat":
      wantsFilm = false
      if film != .off { leaveFilm() }
    case "stop_video_stream": film = .off
    default: break
    }
  }

  private mutating func thinking() {
    post(.state(.thinking))
    // Told before the service knew that the user wants to speak.
    guard !isAsked else { return }
    if phase == .responding || phase == .draining { cutReply(by: .service) }
    if reply != .open || phase != .thinking { openReply() }
    enter(.thinking)
  }

  private mutating func responding() {
    post(.state(.responding))
    beginReply()
  }

  private mutating func respondingStarted() {
    if !isStartTold { post(.replyStarted(round: nil)) }
    beginReply()
    isStartTold = true
    if !rules.followsPlayback { audible() }
  }

  private mutating func beginReply() {
    // All of it has come: what is told late or twice must not begin a wait for more.
    guard !isAsked, reply != .cut, phase != .draining else { return }
    if reply == .none { openReply() }
    enter(.responding)
    tellAudible()
  }

  private mutating func take(_ content: BailianMessage.Content) {
    keep(content.commands)
    post(
      .reply(
        DialogReply(
          text: content.text, spoken: content.spoken, isFinal: content.isFinished,
          mode: rules.start.downstream.isIncremental ? .append : .replace, round: content.round)))
    for member in content.extra { post(.extra(name: member.name, payload: member.value)) }
  }

  private mutating func keep(_ new: [BailianMessage.Command]) {
    let room = Self.mostCommands - commands.count
    commands += new.prefix(room)
    guard new.count > room, !hasToldFullCommands else { return }
    // Once is enough to know.
    hasToldFullCommands = true
    post(
      .error(
        DialogError(
          vendor: "bailian", category: .internal, reaction: .goOn,
          text:
            "the service sends commands and does not listen; \(Self.mostCommands) are kept, the rest is dropped"
        )))
  }

  private mutating func respondingEnded() {
    guard phase != .draining && !isEndTold else { return }
    isEndTold = true
    guard reply == .open else {
      return post(.replyEnded(round: nil, utterances: 0))
    }
    if hasSound {
      actions.append(.endUtterance)
      post(.replyEnded(round: nil, utterances: 1))
      enter(.draining, limit: rules.playback)
    } else {
      post(.replyEnded(round: nil, utterances: 0))
      tellHeard()
    }
  }

  private mutating func speechStarted() {
    post(.speechStarted)
    // By hand, only the hand begins: nothing is sent unless the user presses.
    if phase == .listening && mode != .pushToTalk { enter(.talking) }
    // While the service thinks, the same user goes on with the same words.
    guard mode == .duplex, phase == .responding || phase == .draining else { return }
    if cutReply(by: .user) { enter(.yielding) }
  }

  private mutating func speechEnded() {
    post(.speechEnded)
    isTapped = false
    guard phase == .talking else { return }
    reply = .none
    enter(.thinking)
  }

  private mutating func accepted() {
    let hadReply = cutReply(by: .user)
    if !hadReply { post(.interrupted(by: .user)) }
    switch phase {
    case .thinking, .responding, .draining: enter(.yielding)
    default: break
    }
  }

  private mutating func take(_ fault: BailianFault) {
    guard !fault.isFatal else { return fail(fault.error) }
    post(.error(fault.error))
    cutReply(by: nil)
    switch phase {
    case .talking, .thinking, .responding, .draining:
      isTapped = false
      enter(.yielding)
    default: break
    }
  }

  // MARK: Sound

  mutating func takeSound() {
    silentAt = now &+ rules.silence
    switch (phase, reply) {
    case (.thinking, .none), (.responding, .none): openReply()
    case (.thinking, .open), (.responding, .open): break
    case (_, .cut), (.stopping, _), (.yielding, _): return
    default:
      // Once is enough to know.
      guard !hasToldStray else { return }
      hasToldStray = true
      post(
        .error(
          DialogError(
            vendor: "bailian", category: .internal, reaction: .goOn,
            text: "sound came while nothing was being answered; it is not played")))
      return
    }
    hasSound = true
    actions.append(.deliver)
  }
}
