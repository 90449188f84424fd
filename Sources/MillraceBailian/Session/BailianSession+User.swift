internal import MillraceCore
internal import MillraceDialog

/// What this side does: commands, and what playback tells.
extension BailianSession {
  mutating func obey(_ command: DialogCommand) {
    switch command {
    case .startSpeech: startSpeech()
    case .stopSpeech: stopSpeech()
    case .cancelSpeech: cancelSpeech()
    case .interrupt: interrupt()
    case .say(let text): ask(BailianRequest.Respond(.transcript, text))
    case .ask(let text, let images): ask(BailianRequest.Respond(.prompt, text, images: images))
    case .update(let values): update(values)
    case .mute(let track, let isOn):
      if track == .audio { isMuted = isOn } else { isFilmMuted = isOn }
    case .refreshAuth(let token?): actions.append(.useKey(token))
    case .hangUp: hangUp()
    case .extra(let name, let payload): obey(name, payload)
    case .refreshAuth(nil), .setRole:
      refuse("\"\(command.name)\" is nothing the service has")
    }
  }

  private mutating func refuse(_ text: String) {
    post(.error(DialogError(vendor: "bailian", category: .request, reaction: .goOn, text: text)))
  }

  /// Requests under the vendor's own names: members of `biz_params`.
  private mutating func obey(_ name: String, _ payload: JSONValue) {
    switch name {
    case "videos" where payload.array?.first?["action"]?.string == "connect":
      wantsFilm = true
      if phase == .listening { askForFilm() }
    case "videos" where payload.array?.first?["action"]?.string == "exit":
      wantsFilm = false
      leaveFilm()
    case "videos", "commands", "command_results":
      let biz: JSONValue = .object([JSONValue.Member(name, payload)])
      ask(BailianRequest.Respond(.prompt, "", biz: biz))
    default: refuse("\"\(name)\" is nothing the service has")
    }
  }

  // MARK: Speech

  mutating func startSpeech() {
    guard mode != .duplex else { return }
    switch phase {
    case .listening:
      wantsSpeech = false
      if mode == .pushToTalk { send(.sendSpeech) } else { isTapped = true }
      enter(.talking)
    case .thinking, .responding, .draining:
      wantsSpeech = true
      interrupt()
    case .talking where mode == .tapToTalk: isTapped = true
    case .talking: break
    default: wantsSpeech = true
    }
  }

  private mutating func stopSpeech() {
    wantsSpeech = false
    isTapped = false
    guard mode == .pushToTalk, phase == .talking else { return }
    send(.stopSpeech)
    reply = .none
    enter(.thinking)
  }

  private mutating func cancelSpeech() {
    wantsSpeech = false
    isTapped = false
    guard mode != .duplex, phase == .talking else { return }
    send(.cancelSpeech)
    enter(.listening)
  }

  /// The reply is to end. One request is enough: the service counts them.
  mutating func interrupt() {
    switch phase {
    case .thinking, .responding, .draining: break
    default: return
    }
    cutReply(by: nil)
    reply = .cut
    isAsked = true
    send(.requestToSpeak)
    enter(.yielding)
  }

  /// The microphone has ended: silence is sent in its place, and after a while without anything the dialogue ends.
  mutating func soundOver() {
    isSoundOver = true
    if mode == .pushToTalk { stopSpeech() }
    if phase == .listening, rules.linger > 0 { enter(.listening, limit: rules.linger) }
  }

  // MARK: Requests

  /// Asks now, or when the service listens; a newer question takes an older one's place.
  mutating func ask(_ request: BailianRequest.Respond) {
    let mayAsk = phase == .listening || phase == .talking && mode == .duplex
    guard mayAsk else {
      if question != nil { refuse("a question was not asked: another came") }
      question = request
      return
    }
    send(.requestToRespond(request))
    reply = .none
    enter(.thinking)
  }

  private mutating func update(_ values: JSONValue) {
    guard hasStarted && isOpen else {
      news = values
      return
    }
    send(.updateInfo(values))
  }

  // MARK: Film

  /// `voicechat_video_channel` is the only kind the vendor has.
  private func films(_ action: String) -> BailianRequest.Respond {
    BailianRequest.Respond(
      .prompt, "",
      biz: ["videos": [["action": .string(action), "type": "voicechat_video_channel"]]])
  }

  mutating func askForFilm() {
    guard rules.start.upstream.hasVideo else {
      wantsFilm = false
      refuse("a film needs \"AudioAndVideo\" from the start")
      return
    }
    film = .asked
    ask(films("connect"))
  }

  mutating func leaveFilm() {
    film = .off
    ask(films("exit"))
  }

  // MARK: Playback

  mutating func audible() {
    guard reply == .open else { return }
    isAudible = true
    tellAudible()
  }

  /// Sound may be heard before the service says that it responds: it is told of once it has.
  mutating func tellAudible() {
    guard isAudible, !isToldAudible, phase == .responding || phase == .draining else { return }
    isToldAudible = true
    send(.localRespondingStarted)
  }

  /// An utterance was heard to its end.
  mutating func heard() {
    guard phase == .draining, reply == .open else { return }
    tellHeard()
  }

  /// Somebody else voided the reply: nobody hears the rest of it.
  mutating func voided() {
    guard reply == .open, hasSound else { return }
    reply = .cut
    if phase == .draining { tellHeard() }
  }
}
