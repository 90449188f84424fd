internal import MillraceCore
internal import MillraceDialog

/// Beginning, loss, waits, the end.
extension BailianSession {
  mutating func begin() {
    post(.state(.connecting))
    connect()
  }

  mutating func connect() {
    enter(.connecting)
    hasListened = false
    hasStarted = false
    isAsked = false
    film = .off
    actions.append(.connect)
  }

  mutating func opened() {
    guard phase == .connecting else { return }
    post(.connected)
    enter(.starting, limit: rules.begin)
    silentAt = now &+ rules.silence
    var start = rules.start
    start.dialog = dialog
    send(.start(start))
  }

  mutating func garbled(_ text: String) {
    post(
      .error(
        DialogError(
          vendor: "bailian", category: .network, reaction: .goOn, text: "a message cannot be read: \(text)")))
  }

  /// The connection is gone.
  mutating func lost(_ error: DialogError) {
    switch phase {
    case .idle, .waiting, .closed: return
    case .stopping: finish(nil)
    default:
      let hasExpired = error.category == .auth && hadDialog
      if hasExpired { post(.authExpired) }
      post(.error(error))
      guard hasExpired && phase == .connecting && rules.renew > 0 else { return goOn(after: error) }
      expired = error
      enter(.waiting, limit: rules.renew)
    }
  }

  private var hadDialog: Bool { dialog != nil }

  /// The service says that it is the end of the connection, or this side finds so.
  mutating func fail(_ error: DialogError) {
    post(.error(error))
    actions.append(.disconnect)
    if phase == .stopping { finish(nil) } else { goOn(after: error) }
  }

  /// A new connection, or none, as the error says.
  private mutating func goOn(after error: DialogError) {
    // What has come in full may be heard to its end.
    if phase == .draining { reply = .none }
    cutReply(by: .service)
    reply = .none
    // The button is still down; what is said meanwhile is kept.
    if phase == .talking && mode == .pushToTalk || isTapped { wantsSpeech = true }
    isTapped = false
    if film != .off { wantsFilm = true }
    commands = []
    hasToldFullCommands = false
    // Nothing more will be said, and nobody is there to answer what was.
    if isSoundOver && phase == .connecting { return finish(error) }
    switch policy.decide(error.reaction, at: now) {
    case .stop(let isFailure): finish(isFailure ? error : nil)
    case .reconnect(let wait), .retry(let wait):
      post(.state(.reconnecting))
      enter(.waiting, limit: wait)
    case .goOn:
      post(.state(.reconnecting))
      enter(.waiting, limit: 0)
    }
  }

  /// Good-bye, and what has come of a reply is still heard.
  mutating func leave() {
    closeReply()
    hangUp()
  }

  /// Good-bye at once: what is still to come of a reply or to be heard of it is broken off.
  mutating func hangUp() {
    switch phase {
    case .idle: finish(nil)
    case .connecting, .waiting:
      actions.append(.disconnect)
      finish(nil)
    default:
      cutReply(by: .local)
      reply = .none
      send(.stop)
      enter(.stopping, limit: rules.close)
    }
  }

  /// Over, for good.
  mutating func finish(_ error: DialogError?) {
    if question != nil { refuse("a question was not asked: the dialogue is over") }
    question = nil
    post(.state(.closed))
    enter(.closed)
    actions.append(.end(error))
  }

  // MARK: Time

  mutating func expire() {
    if let silentAt, now >= silentAt {
      fail(
        DialogError(
          vendor: "bailian", category: .network, reaction: .reconnect,
          text: "the service has said nothing for \(rules.silence / 1_000_000_000) s"))
      return
    }
    if let beatAt, now >= beatAt {
      self.beatAt = now &+ rules.heartBeat
      send(.heartBeat)
    }
    guard let phaseEnd, now >= phaseEnd else { return }
    self.phaseEnd = nil
    switch phase {
    case .waiting:
      if let expired { finish(expired) } else { connect() }
    case .starting:
      fail(
        DialogError(
          vendor: "bailian", category: .network, reaction: .reconnect,
          text: "the service did not begin the dialogue within \(rules.begin / 1_000_000) ms"))
    case .draining:
      // Playback has not told of the end; the service must not wait for ever.
      cutReply(by: .local)
      tellHeard()
    case .listening: hangUp()
    case .stopping:
      actions.append(.disconnect)
      finish(nil)
    default: break
    }
  }
}
