internal import MillraceDialog
internal import MillraceJSON

/// The plugin `audiobridge`: joins a room that mixes, then one session, offered by this side.
struct JanusAudioBridge: JanusPlugin {
  private let settings: JanusSettings
  private var roster = JanusRoster()
  private var hasJoined = false
  private var isMuted: Bool
  /// The latest command that changes it, and what it was before: the room may refuse.
  private var muting: (command: Int, before: Bool)?

  init(_ settings: JanusSettings) {
    self.settings = settings
    isMuted = settings.muted
  }

  var leaveRequest: JSONValue? { hasJoined ? ["request": "leave"] : nil }

  mutating func handle(_ input: JanusInput) -> [JanusAction] {
    switch input {
    case .attached: return [join()]
    case .describe(let session, let sdp), .restart(let session, let sdp):
      let body: JSONValue = ["request": "configure", "muted": .bool(isMuted)]
      return [.send(session, body, JanusDescription(.offer, sdp), .describe)]
    case .event(_, let data, _): return event(data)
    case .command(let number, let command): return perform(number, command)
    case .refused(_, .command(let number), _):
      if let muting, muting.command == number { isMuted = muting.before }
      return []
    case .refused, .ended, .hungUp: return []
    }
  }

  private func join() -> JanusAction {
    let body = JSONValue.object([
      "request": "join", "room": settings.room?.json, "pin": settings.pin.map { .string($0) },
      "secret": settings.secret.map { .string($0) }, "display": settings.display.map { .string($0) },
      "muted": .bool(isMuted), "codec": "opus",
    ])
    return .send(0, body, nil, .join)
  }

  private mutating func perform(_ number: Int, _ command: DialogCommand) -> [JanusAction] {
    switch command {
    case .mute(_, let isOn, _):
      muting = (number, isMuted)
      isMuted = isOn
      let body: JSONValue = ["request": "configure", "muted": .bool(isOn)]
      return [.send(0, body, nil, .command(number))]
    case .extra(_, let payload):
      guard let id = JanusID(payload["id"]) else {
        return [.answer(number, RTCError.command.error("kick needs an \"id\"", scope: .command))]
      }
      guard let known = roster.id(id.description) else {
        return [.answer(number, JanusParts.noPeer(id.description))]
      }
      return [.send(0, JanusParts.kick(known, settings), nil, .command(number))]
    default: return [.answer(number, RTCError.command.error("not supported", scope: .command))]
    }
  }

  private mutating func event(_ data: JSONValue) -> [JanusAction] {
    switch data["audiobridge"]?.string {
    case "joined": return joined(data)
    case "event": return changed(data)
    case "talking", "stopped-talking":
      guard let id = JanusID(data["id"]) else { return [] }
      return JanusParts.events(
        roster.speak(
          id, isOn: data["audiobridge"]?.string == "talking", level: data["audio-level-dBov-avg"]?.double))
    case "destroyed": return JanusParts.removed(.ended, "the room was destroyed")
    case "left", "success": return []
    default: return [JanusParts.extra(.audiobridge, data)]
    }
  }

  private mutating func joined(_ data: JSONValue) -> [JanusAction] {
    var actions: [JanusAction] = []
    let isFirst = !hasJoined && JanusID(data["id"]) != nil
    if isFirst {
      hasJoined = true
      roster.own = JanusID(data["id"])
    }
    actions += participants(data)
    if isFirst {
      actions.append(.report(.wantsOffer(SignalSessionID(0), settings.media, servers: [])))
    }
    return actions
  }

  private mutating func participants(_ data: JSONValue) -> [JanusAction] {
    var actions: [JanusAction] = []
    for entry in data["participants"]?.array ?? [] {
      guard let id = JanusID(entry["id"]) else { continue }
      if id == roster.own {
        actions += mutedByRoom(entry["muted"]?.bool)
        continue
      }
      actions += JanusParts.events(
        roster.see(
          id, name: entry["display"]?.string, audio: entry["setup"]?.bool, video: nil,
          isMuted: entry["muted"]?.bool))
      if entry["talking"]?.bool == true {
        actions += JanusParts.events(roster.speak(id, isOn: true, level: nil))
      }
    }
    return actions
  }

  /// A manager of the room has muted this client, or no longer does.
  private mutating func mutedByRoom(_ isOn: Bool?) -> [JanusAction] {
    guard let isOn, isOn != isMuted else { return [] }
    isMuted = isOn
    return [.report(.event(.gate(.muted, isOn: isOn)))]
  }

  private mutating func changed(_ data: JSONValue) -> [JanusAction] {
    var actions = participants(data)
    if let id = JanusID(data["leaving"]) { actions += JanusParts.events(roster.lose(id)) }
    // `kicked_all` goes to each participant, with that participant's own id.
    for name in ["kicked", "kicked_all"] {
      guard let id = JanusID(data[name]) else { continue }
      guard id != roster.own else {
        return actions + JanusParts.removed(.removed, "this client was removed from the room")
      }
      actions += JanusParts.events(roster.lose(id, reason: "kicked"))
    }
    return actions
  }
}
