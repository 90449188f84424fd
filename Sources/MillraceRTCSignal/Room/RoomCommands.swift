internal import MillraceDialog
internal import MillraceJSON
internal import MillraceRTCWire
internal import MillraceRoomWire

/// What a command asks of the hub.
struct RoomCommandPlan: Sendable, Hashable {
  /// One request, and what it changes. The command is answered by the first of a plan.
  struct Request: Sendable, Hashable {
    var operation: RoomOperation
    var effect: RoomEffect?
  }

  var requests: [Request]

  init(_ operation: RoomOperation, _ effect: RoomEffect? = nil) {
    requests = [Request(operation: operation, effect: effect)]
  }

  init(_ subscriptions: [RoomSubscription]) {
    requests = subscriptions.map { Request(operation: .subscribe($0), effect: .subscription($0)) }
  }
}

/// The commands of a room in the words of its wire. The only table of them.
///
/// Commands `extra`: `message` (`text`, `peer`), `control` (`peer`, `command`), `kick` (`peer`, `text`) and `closeRoom` (`text`).
struct RoomCommands: Sendable {
  /// Requests for single peers in one command: the hub limits how many a member may send.
  static let mostAtOnce = 200

  /// The hub carries the media; else a session with one other side does.
  let isHub: Bool
  let media: SignalMedia
  /// The label of messages that are sent without one.
  var dataLabel = "data"

  /// Messages go by the wire of the room, and not over data channels.
  var carriesMessages: Bool { isHub || !media.hasData }

  /// True for a command that a room has something like.
  func takes(_ command: DialogCommand) -> Bool {
    switch command {
    case .setRole, .publish, .call, .answerCall: true
    case .refreshAuth(let token): token != nil
    case .hangUp(let call, _): call != nil
    // One that is not for the hub is carried out where the media are.
    case .mute(_, _, let peer): isHub && peer != nil
    case .subscribe: isHub
    case .data: carriesMessages
    case .extra(let name, _): ["message", "control", "kick", "closeRoom"].contains(name)
    default: false
    }
  }

  /// True for one that needs a login and no room.
  static func isOutsideRooms(_ command: DialogCommand) -> Bool {
    switch command {
    case .refreshAuth, .call, .answerCall, .hangUp: true
    default: false
    }
  }

  /// - Parameters:
  ///   - command: one that `takes` has allowed.
  ///   - login: of the connection.
  ///   - roster: who is in the room.
  func plan(_ command: DialogCommand, _ login: RoomLogin, _ roster: RoomRoster) throws(DialogError)
    -> RoomCommandPlan
  {
    switch command {
    case .setRole(let word):
      guard let role = RoomWords.role(word) else {
        throw Self.refusal("a room has the roles speaker and viewer, and not \"\(JanusErrors.cut(word))\"")
      }
      return RoomCommandPlan(.role(role), .role(role))
    case .publish(let track, let isOn): return try publish(track, isOn)
    case .subscribe(let peers, let track, let isOn): return try subscribe(peers, track, isOn, roster)
    case .mute(let track, let isOn, let peer?): return try subscribe(.one(peer), track, !isOn, roster)
    case .refreshAuth(let token?):
      return RoomCommandPlan(.login(RoomLogin(login.user, name: login.name, token: token)))
    case .call(let call):
      let media = Set(call.media.map { RoomWords.track($0) })
      return RoomCommandPlan(
        .call(RoomCallRequest(to: try Self.name(call.peer, "user"), media: media, text: call.message)))
    case .answerCall(let answer):
      return RoomCommandPlan(
        .answerCall(
          RoomCallAnswer(
            try Self.name(answer.call, "call"), isAccepted: answer.isAccepted, text: answer.message)))
    case .hangUp(let call?, let reason):
      return RoomCommandPlan(.hangUp(call: try Self.name(call, "call"), reason: reason))
    case .data(let data): return RoomCommandPlan(try self.data(data, roster))
    case .extra(let name, let payload): return RoomCommandPlan(try Self.extra(name, payload, roster))
    default: throw Self.refusal("\"\(command.name)\" is not supported by a room")
    }
  }

  // MARK: Parts

  private static func refusal(_ text: String) -> DialogError { RTCError.command.error(text, scope: .command) }

  private static func name(_ text: String, _ what: String) throws(DialogError) -> RoomName {
    guard let name = RoomName(text) else {
      throw refusal("\"\(JanusErrors.cut(text))\" is no name of a \(what)")
    }
    return name
  }

  private static func peer(_ text: String, _ roster: RoomRoster) throws(DialogError) -> RoomName {
    guard let name = RoomName(text), roster.contains(name) else { throw JanusParts.noPeer(text) }
    return name
  }

  private func publish(_ track: DialogTrack, _ isOn: Bool) throws(DialogError) -> RoomCommandPlan {
    let sends =
      switch track {
      case .audio: media.audio.sends
      case .video, .screen: media.video.sends
      case .data: true
      }
    guard sends || !isOn else {
      throw Self.refusal("nothing is linked that could be published as \"\(track.rawValue)\"")
    }
    let source: RoomVideoSource? = track == .screen ? .screen : track == .video ? .camera : nil
    let publication = RoomPublication(RoomWords.track(track), isOn: isOn, source: source)
    return RoomCommandPlan(.publish(publication), .publication(publication))
  }

  private func subscribe(
    _ peers: DialogPeers, _ track: DialogTrack, _ isOn: Bool, _ roster: RoomRoster
  ) throws(DialogError) -> RoomCommandPlan {
    let track = RoomWords.track(track)
    switch peers {
    case .all: return RoomCommandPlan([RoomSubscription(track, isOn: isOn)])
    case .new:
      let subscriptions = roster.forNewOnes(track, isOn: isOn)
      // The first is for those who will join.
      let others = subscriptions.count - 1
      guard others <= Self.mostAtOnce else {
        let most = Self.mostAtOnce
        throw Self.refusal("\(others) peers are to be kept as they are, more than \(most); use \"all\"")
      }
      return RoomCommandPlan(subscriptions)
    case .one(let text):
      return RoomCommandPlan([RoomSubscription(track, isOn: isOn, peer: try Self.peer(text, roster))])
    }
  }

  private func data(_ data: DialogData, _ roster: RoomRoster) throws(DialogError) -> RoomOperation {
    let content: RoomData.Content =
      switch data.content {
      case .text(let text): .text(text)
      case .bytes(let bytes): .bytes(bytes)
      }
    let label = data.label ?? dataLabel
    guard label.utf8.count <= RoomLimits.labelBytes else {
      throw Self.refusal("\"label\" must have at most \(RoomLimits.labelBytes) bytes")
    }
    let message = RoomData(label, content)
    guard message.fits else {
      let most = RoomLimits.contentBytes
      throw RTCError.tooLarge.error("a room takes \(most) bytes in JSON at most", scope: .command)
    }
    guard let peer = data.peer else { return .data(message) }
    return .data(message, to: try Self.peer(peer, roster))
  }

  private static func extra(
    _ name: String, _ payload: JSONValue, _ roster: RoomRoster
  ) throws(DialogError) -> RoomOperation {
    let form = JSONForm(payload, at: name)
    do {
      let text = form["text"] == nil ? nil : try form.string("text")
      if let text, text.unicodeScalars.count > RoomLimits.textCharacters {
        throw refusal("\"text\" must have at most \(RoomLimits.textCharacters) characters")
      }
      switch name {
      case "closeRoom": return .close(text: text)
      case "message":
        let peer = form["peer"] == nil ? nil : try Self.peer(try form.string("peer"), roster)
        return .message(try form.string("text"), to: peer)
      case "kick": return .kick(try Self.peer(try form.string("peer"), roster), text: text)
      default:
        let command = try form.object("command")
        _ = try command.string("command")
        return .control(command.json, to: try Self.peer(try form.string("peer"), roster))
      }
    } catch let problem as JSONFormProblem {
      throw refusal("invalid command: \(problem)")
    } catch let error as DialogError {
      throw error
    } catch {
      throw refusal("invalid command: \(error)")
    }
  }
}

extension RoomData {
  /// The hub takes it.
  var fits: Bool {
    switch content {
    // The quotes, and four characters for three bytes.
    case .bytes(let bytes): 2 + (bytes.count + 2) / 3 * 4 <= RoomLimits.contentBytes
    case .text(let text):
      text.utf8.count <= RoomLimits.contentBytes
        && JSONValue.string(text).bytes.count <= RoomLimits.contentBytes
    }
  }
}
