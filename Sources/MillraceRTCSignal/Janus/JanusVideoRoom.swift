internal import MillraceDialog
internal import MillraceJSON
internal import MillraceRTCWire

/// The plugin `videoroom`: joins as a publisher, offers session 0 where something is sent, and takes one session from Janus for each
/// publisher that is wanted.
struct JanusVideoRoom: JanusPlugin {
  /// Publishers that are received at the same time at most.
  static let mostSessions = 64

  private let settings: JanusSettings
  private var roster = JanusRoster()
  private var hasJoined = false
  private var isPublished = false
  private var privateID: JSONValue?
  private var feeds: [JanusID: JanusFeed] = [:]
  /// The publisher of a session.
  private var sessions: [Int: JanusID] = [:]
  private var nextSession = 1
  /// What is wanted of those who join.
  private var wantedOfNew: Set<DialogTrack>

  init(_ settings: JanusSettings) {
    self.settings = settings
    wantedOfNew = settings.subscribe == .all ? Self.receivable(settings.media) : []
  }

  private static func receivable(_ media: SignalMedia) -> Set<DialogTrack> {
    var tracks: Set<DialogTrack> = []
    if media.audio.receives { tracks.insert(.audio) }
    if media.video.receives { tracks.insert(.video) }
    return tracks
  }

  var leaveRequest: JSONValue? { hasJoined ? ["request": "leave"] : nil }

  func survivesRefusal(of session: Int) -> Bool { true }

  mutating func handle(_ input: JanusInput) -> [JanusAction] {
    switch input {
    case .attached(0): return [join()]
    case .attached(let session): return subscribe(session)
    case .describe(let session, let sdp): return describe(session, sdp)
    case .restart(0, let sdp): return describe(0, sdp)
    case .restart(let session, _):
      guard sessions[session] != nil else { return [] }
      return [.send(session, ["request": "configure", "restart": true], nil, .describe)]
    case .event(0, let data, _): return event(data)
    case .event(let session, let data, let description): return event(of: session, data, description)
    case .refused(_, .command, _): return []
    case .refused(let session, _, let error):
      release(session)
      let failed = JanusAction.report(.sessionFailed(SignalSessionID(session), error))
      return session == 0 ? [failed] : [failed, .detach(session)]
    case .command(let number, let command): return perform(number, command)
    case .ended(let session), .hungUp(let session):
      if session == 0 { isPublished = false }
      release(session)
      return []
    }
  }

  private func join() -> JanusAction {
    let body = JSONValue.object([
      "request": "join", "ptype": "publisher", "room": settings.room?.json,
      "pin": settings.pin.map { .string($0) }, "display": settings.display.map { .string($0) },
    ])
    return .send(0, body, nil, .join)
  }

  private mutating func describe(_ session: Int, _ sdp: String) -> [JanusAction] {
    guard session == 0 else {
      return [.send(session, ["request": "start"], JanusDescription(.answer, sdp), .describe)]
    }
    // `publish` is refused where something is published already, and `configure` renegotiates it.
    let name = isPublished ? "configure" : "publish"
    isPublished = true
    return [.send(0, ["request": .string(name)], JanusDescription(.offer, sdp), .describe)]
  }

  /// A session is not there any more; its publisher is not tried again by itself.
  private mutating func release(_ session: Int) {
    guard let id = sessions.removeValue(forKey: session), var feed = feeds[id] else { return }
    (feed.session, feed.isOffered, feed.hasFailed) = (nil, false, true)
    feeds[id] = feed
  }

  // MARK: The room

  private mutating func event(_ data: JSONValue) -> [JanusAction] {
    switch data["videoroom"]?.string {
    case "joined": return joined(data)
    case "event": return changed(data)
    case "talking", "stopped-talking":
      guard let id = JanusID(data["id"]) else { return [] }
      return JanusParts.events(
        roster.speak(
          id, isOn: data["videoroom"]?.string == "talking", level: data["audio-level-dBov-avg"]?.double))
    case "destroyed": return JanusParts.removed(.ended, "the room was destroyed")
    case "success": return []
    default: return [JanusParts.extra(.videoroom, data)]
    }
  }

  private mutating func joined(_ data: JSONValue) -> [JanusAction] {
    guard !hasJoined else { return [] }
    hasJoined = true
    roster.own = JanusID(data["id"])
    privateID = data["private_id"]
    var actions: [JanusAction] = []
    for entry in data["attendees"]?.array ?? [] { actions += attendee(entry) }
    if settings.media.audio.sends || settings.media.video.sends || settings.media.hasData {
      var media = settings.media
      media.audio = MediaDirection(sends: media.audio.sends, receives: false)
      media.video = MediaDirection(sends: media.video.sends, receives: false)
      actions.append(.report(.wantsOffer(SignalSessionID(0), media, servers: [])))
    }
    return actions + publishers(data)
  }

  private mutating func attendee(_ entry: JSONValue) -> [JanusAction] {
    guard let id = JanusID(entry["id"]) else { return [] }
    return JanusParts.events(
      roster.see(id, name: entry["display"]?.string, audio: nil, video: nil, isMuted: nil))
  }

  private mutating func changed(_ data: JSONValue) -> [JanusAction] {
    var actions = publishers(data)
    if let entry = data["joining"] { actions += attendee(entry) }
    if let id = JanusID(data["unpublished"]) { actions += unpublished(id) }
    if data["leaving"]?.string == "ok" {
      guard data["reason"]?.string != "kicked" else {
        return actions + JanusParts.removed(.removed, "this client was removed from the room")
      }
    } else if let id = JanusID(data["leaving"]) {
      actions += left(id, reason: data["reason"]?.string)
    }
    if let id = JanusID(data["kicked"]) {
      guard id != roster.own else {
        return actions + JanusParts.removed(.removed, "this client was removed from the room")
      }
      actions += left(id, reason: "kicked")
    }
    return actions
  }

  private mutating func left(_ id: JanusID, reason: String?) -> [JanusAction] {
    drop(id) + JanusParts.events(roster.lose(id, reason: reason))
  }

  private mutating func unpublished(_ id: JanusID) -> [JanusAction] {
    guard let feed = feeds[id] else { return [] }
    return drop(id)
      + JanusParts.events(
        roster.speak(id, isOn: false, level: nil)
          + (feed.streams.isEmpty ? [] : roster.see(id, name: nil, audio: false, video: false, isMuted: nil)))
  }

  /// A publisher is gone, and so is its session.
  private mutating func drop(_ id: JanusID) -> [JanusAction] {
    guard let session = feeds.removeValue(forKey: id)?.session else { return [] }
    sessions[session] = nil
    return [.report(.sessionEnded(SignalSessionID(session))), .detach(session)]
  }

  // MARK: Publishers

  private mutating func publishers(_ data: JSONValue) -> [JanusAction] {
    var actions: [JanusAction] = []
    for entry in data["publishers"]?.array ?? [] {
      guard let id = JanusID(entry["id"]), id != roster.own else { continue }
      actions += attendee(entry)
      guard roster.members[id] != nil else { continue }
      let streams = JanusFeed.streams(entry)
      actions += JanusParts.events(
        roster.see(
          id, name: nil, audio: streams.contains { $0.track == .audio },
          video: streams.contains { $0.track == .video }, isMuted: nil))
      var feed = feeds[id] ?? JanusFeed(wanted: wanted(of: id))
      (feed.streams, feed.hasFailed) = (streams, false)
      feeds[id] = feed
      actions += reconcile(id)
    }
    return actions
  }

  private func wanted(of id: JanusID) -> Set<DialogTrack> {
    if case .list(let ids) = settings.subscribe, ids.contains(id.description) {
      return Self.receivable(settings.media)
    }
    return wantedOfNew
  }

  /// Brings what is received of a publisher in line with what is wanted.
  private mutating func reconcile(_ id: JanusID) -> [JanusAction] {
    guard var feed = feeds[id] else { return [] }
    defer { feeds[id] = feed }
    let wishes = feed.wishes
    guard let session = feed.session else {
      guard !wishes.isEmpty, !feed.hasFailed else { return [] }
      guard sessions.count < Self.mostSessions else {
        return [.report(.event(.error(Self.tooMany)))]
      }
      feed.session = nextSession
      sessions[nextSession] = id
      nextSession += 1
      return [.attach(nextSession - 1)]
    }
    guard !wishes.isEmpty else {
      (feed.session, feed.isOffered, feed.subscribed) = (nil, false, [])
      sessions[session] = nil
      return [.report(.sessionEnded(SignalSessionID(session))), .detach(session)]
    }
    // Before the offer it is done as soon as that has come.
    guard feed.isOffered else { return [] }
    let added = wishes.filter { !feed.subscribed.contains($0) }
    // Of a stream that is gone Janus itself takes leave.
    let removed = feed.streams.filter { feed.subscribed.contains($0) && !wishes.contains($0) }
    feed.subscribed = Set(wishes)
    guard !added.isEmpty || !removed.isEmpty else { return [] }
    let body = JSONValue.object([
      "request": "update",
      "subscribe": added.isEmpty ? nil : .array(added.map { JanusFeed.json(id, $0) }),
      "unsubscribe": removed.isEmpty ? nil : .array(removed.map { JanusFeed.json(id, $0) }),
    ])
    return [.send(session, body, nil, .describe)]
  }

  private static let tooMany = RTCError.tooManyRequests.error(
    "\(Self.mostSessions) participants are received already; unsubscribe from one first", reaction: .continue,
    scope: .command)

  // MARK: Sessions of publishers

  private mutating func subscribe(_ session: Int) -> [JanusAction] {
    guard let id = sessions[session], var feed = feeds[id] else { return [] }
    let wishes = feed.wishes
    feed.subscribed = Set(wishes)
    feeds[id] = feed
    let body = JSONValue.object([
      "request": "join", "ptype": "subscriber", "room": settings.room?.json,
      "pin": settings.pin.map { .string($0) }, "private_id": privateID,
      "streams": .array(wishes.map { JanusFeed.json(id, $0) }),
    ])
    return [.send(session, body, nil, .join)]
  }

  private mutating func event(
    of session: Int, _ data: JSONValue, _ description: JanusDescription?
  ) -> [JanusAction] {
    guard let id = sessions[session], var feed = feeds[id] else { return [] }
    if data["streams"] != nil { feed.received = JanusFeed.received(data) }
    guard let description, description.kind == .offer else {
      feeds[id] = feed
      return []
    }
    feed.isOffered = true
    feeds[id] = feed
    let offer = SignalEvent.offer(
      SignalSessionID(session), sdp: description.sdp, JanusParts.media(offered: description.sdp),
      peer: id.description)
    return [.report(offer)] + reconcile(id)
  }

  // MARK: Commands

  private mutating func perform(_ number: Int, _ command: DialogCommand) -> [JanusAction] {
    switch command {
    case .subscribe(let peers, let track, let isOn): return subscribe(number, peers, track, isOn)
    case .mute(let track, let isOn, let peer?): return mute(number, track, isOn, peer)
    case .extra(_, let payload):
      guard let name = JanusID(payload["id"])?.description else {
        return [.answer(number, RTCError.command.error("kick needs an \"id\"", scope: .command))]
      }
      guard let id = roster.id(name) else { return [.answer(number, JanusParts.noPeer(name))] }
      return [.send(0, JanusParts.kick(id, settings), nil, .command(number))]
    default: return [.answer(number, RTCError.command.error("not supported", scope: .command))]
    }
  }

  private mutating func subscribe(
    _ number: Int, _ peers: DialogPeers, _ track: DialogTrack, _ isOn: Bool
  ) -> [JanusAction] {
    var concerned: [JanusID] = []
    switch peers {
    case .new:
      if isOn { wantedOfNew.insert(track) } else { wantedOfNew.remove(track) }
    case .all: concerned = feeds.keys.sorted { $0.description < $1.description }
    case .one(let name):
      guard let id = feeds.keys.first(where: { $0.description == name }) else {
        guard roster.id(name) != nil else { return [.answer(number, JanusParts.noPeer(name))] }
        return [
          .answer(
            number,
            RTCError.command.error(
              "\"\(JanusErrors.cut(name))\" publishes nothing now; try again when it does", scope: .command))
        ]
      }
      concerned = [id]
    }
    var actions: [JanusAction] = []
    for id in concerned {
      guard var feed = feeds[id] else { continue }
      if isOn { feed.wanted.insert(track) } else { feed.wanted.remove(track) }
      if isOn { feed.hasFailed = false }
      feeds[id] = feed
      actions += reconcile(id)
    }
    return actions + [.answer(number, nil)]
  }

  /// What a publisher sends is not relayed to this side for a while.
  private func mute(
    _ number: Int, _ track: DialogTrack, _ isOn: Bool, _ peer: String
  ) -> [JanusAction] {
    let feed = feeds.first { $0.key.description == peer }?.value
    let mids = (feed?.received ?? []).filter { $0.track == track }.compactMap(\.mid)
    guard let session = feed?.session, !mids.isEmpty else {
      guard feed != nil || roster.id(peer) != nil else { return [.answer(number, JanusParts.noPeer(peer))] }
      return [
        .answer(
          number,
          RTCError.command.error(
            "no \(track.rawValue) is received from \"\(JanusErrors.cut(peer))\"; subscribe to it first",
            scope: .command))
      ]
    }
    let streams = mids.map { JSONValue.object(["mid": .string($0), "send": .bool(!isOn)]) }
    return [.send(session, ["request": "configure", "streams": .array(streams)], nil, .command(number))]
  }
}
