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
    case .refreshAuth(let token?): renew(token)
    case .hangUp: hangUp()
    case .extra(let name, let payload): obey(name, payload)
    case .refreshAuth(nil):
      refuse("\"refreshAuth\" needs a \"token\": the node has nothing to get a key with")
    case .setRole: refuse("\"setRole\" is nothing the service has: there is one user, and no room")
    }
  }

  /// A key for the next connection; at once, when the last was not taken any more.
  private mutating func renew(_ key: String) {
    guard !key.isEmpty, !key.utf8.contains(where: BailianKey.isControl) else {
      return refuse("the \"token\" of \"refreshAuth\" is empty or holds a line break; send the key alone")
    }
    actions.append(.useKey(key))
    guard expired != nil else { return }
    expired = nil
    connect()
  }

  mutating func refuse(_ text: String) {
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
    case "RequestToRespond": request(payload)
    default: refuse("\"\(name)\" is nothing the service has")
    }
  }

  /// The vendor's whole request: `type`, `text`, and `parameters` as they are, for this request only.
  private mutating func request(_ payload: JSONValue) {
    guard let kind = BailianRequest.Respond.Kind(rawValue: payload["type"]?.string ?? "prompt") else {
      return refuse("\"RequestToRespond\": \"type\" is neither prompt nor transcript")
    }
    let parameters = payload["parameters"]
    guard parameters == nil || parameters?.members != nil else {
      return refuse("\"RequestToRespond\": \"parameters\" has to be an object")
    }
    ask(BailianRequest.Respond(kind, payload["text"]?.string ?? "", parameters: parameters))
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
    if let problem = request.problem { return refuse("a question was not asked: \(problem)") }
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

  /// Tells the service now, and again when a new connection begins. Without a dialogue all of it waits for one, each member's newest
  /// value; pictures do not, as what they show has passed.
  private mutating func update(_ values: JSONValue) {
    let images = values["images"]
    standing = Self.merged(standing, values.members?.filter { $0.name != "images" } ?? [])
    guard hasStarted && isOpen else {
      if images != nil { refuse("a picture was not sent: there is no dialogue") }
      return
    }
    send(.updateInfo(values))
  }

  /// As the service merges them: of `biz_params` and its like each child takes the place of the one of its name.
  private static func merged(_ old: JSONValue?, _ new: [JSONValue.Member]) -> JSONValue? {
    var members = old?.members ?? []
    for member in new {
      let before = members.last { $0.name == member.name }?.value.members
      members.removeAll { $0.name == member.name }
      guard let before, let children = member.value.members else {
        members.append(member)
        continue
      }
      let kept = before.filter { child in !children.contains { $0.name == child.name } }
      members.append(JSONValue.Member(member.name, .object(kept + children)))
    }
    return members.isEmpty ? nil : .object(members)
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

  /// Somebody else voided the reply: nobody hears the rest of it. The service is told what it is, an interruption, and not that the
  /// reply was heard; the `interrupt` that may follow from whoever voided it finds it told.
  mutating func voided() {
    guard reply == .open, hasSound else { return }
    reply = .cut
    interrupt()
  }
}
