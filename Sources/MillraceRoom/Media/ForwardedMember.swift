internal import MillraceCore
internal import MillraceRTC
internal import MillraceRTCWire
internal import MillraceRoomWire

/// A member of a room whose media are forwarded: what it receives, beside its session. On the loop's thread.
final class ForwardedMember: SessionMember {
  /// What it publishes.
  let source: ForwardedSource
  private unowned let room: ForwardedRoom
  private let context: ForwardingContext
  private var subscriptions = RoomSubscriptions()

  private var slots: [RoomTrack: [ForwardedSlot]] = [:]
  private var tables: [RoomTrack: SlotTable] = [:]
  private var budget = VideoBudget()
  /// Bits a second for each video that is sent; nil: not known.
  private var share: Int?

  init(_ peer: RoomName, role: RoomRole, in room: ForwardedRoom, _ context: ForwardingContext) {
    self.room = room
    self.context = context
    source = ForwardedSource(peer, role: role, in: room, context)
    super.init(peer, in: room, context)
  }

  // MARK: Session

  override func sections(for offer: SessionDescription) -> [MediaSection] {
    OfferedMedia(offer, videoCodecs: context.settings.videoCodecs).sections
  }

  override func addedSections(for offer: SessionDescription) -> [MediaSection] {
    OfferedMedia(offer, beside: session?.media ?? [], videoCodecs: context.settings.videoCodecs).sections
  }

  override var emptyOffer: String {
    "the offer has no sound and no video that is sent or received; offer at least one"
  }

  /// Takes what was agreed on: what this member sends, and its slots. A medium that its latest offer has stopped is not counted: the member
  /// may have put another in its place.
  override func sessionAgreed(_ session: RTCSession) {
    let live = session.remote?.liveMedia ?? []
    var known = Set((slots[.audio] ?? []).map(\.mid) + (slots[.video] ?? []).map(\.mid))
    var sound: Int?
    var videos: [Int] = []
    for (place, medium) in session.media.enumerated() {
      if medium.direction.receives, live.contains(medium.mid) {
        if medium.kind == .audio { sound = sound ?? place } else { videos.append(place) }
      }
      guard medium.direction.sends, known.insert(medium.mid).inserted else { continue }
      let slot = ForwardedSlot(medium, medium: place, of: session, context.counters)
      slots[slot.track, default: []].append(slot)
    }
    for (track, list) in slots {
      var table = tables[track] ?? SlotTable()
      table.grow(to: list.count)
      for place in list.indices { table.setOpen(live.contains(list[place].mid), place) }
      tables[track] = table
    }
    source.setMedia(sound: sound, videos: Array(videos.prefix(OfferedMedia.mostVideos)))
  }

  /// Pictures that came before the connection did not reach it, and a screen that does not change sends no others.
  override func sessionConnected(_ isConnected: Bool) {
    guard isConnected else { return }
    for slot in slots[.video] ?? [] { wantKeyFrame(slot, at: context.clock.now) }
  }

  override func sessionDropped() {
    for track in [RoomTrack.audio, .video] {
      for slot in slots[track] ?? [] where slot.peer != nil {
        context.report?(.assigned(RoomSlot(slot.mid, track), to: peer))
      }
    }
    (slots, tables, budget, share) = ([:], [:], VideoBudget(), nil)
    source.setMedia(sound: nil, videos: [])
    source.restart()
  }

  override func end() {
    slots = [:]
    super.end()
  }

  // MARK: Slots

  func subscribe(_ subscription: RoomSubscription) { subscriptions.apply(subscription) }

  func forget(_ other: RoomName) { subscriptions.forget(other) }

  /// It wants one of these, who has no slot because there are too few.
  func lacks(_ track: RoomTrack, _ speakers: [ForwardedMember]) -> Bool {
    guard let table = tables[track], table.isShort, !table.peers.isEmpty else { return false }
    return speakers.contains { other in
      other !== self && subscriptions.includes(track, of: other.peer) && !table.peers.contains(other.peer)
    }
  }

  /// Gives peers their slots. Returns true when another is in one.
  /// - Parameter publishers: who publishes the track, in the order in which they began.
  func assign(_ track: RoomTrack, _ publishers: [ForwardedMember], at now: Nanoseconds) -> Bool {
    guard var table = tables[track], let slots = slots[track] else { return false }
    let wanted = publishers.compactMap { other in
      other !== self && subscriptions.includes(track, of: other.peer)
        ? SlotTable.Candidate(peer: other.peer, speech: other.source.speech) : nil
    }
    let changed = table.assign(wanted, at: now)
    tables[track] = table
    for place in changed {
      let slot = slots[place]
      slot.assign(table.peers[place])
      context.report?(.assigned(RoomSlot(slot.mid, track, peer: slot.peer), to: peer))
      if track == .video { wantKeyFrame(slot, at: now) }
    }
    return !changed.isEmpty
  }

  /// Has those that its slots carry send to them.
  func addTargets() {
    for list in slots.values {
      for slot in list { carrier(of: slot)?.add(slot) }
    }
  }

  private func carrier(of slot: ForwardedSlot) -> ForwardedSource? {
    slot.peer.flatMap { room.member($0)?.source }
  }

  /// Has a key frame asked for: at once, or later where that was done for this slot a moment ago. Returns true for at once.
  @discardableResult
  private func wantKeyFrame(_ slot: ForwardedSlot, at now: Nanoseconds) -> Bool {
    guard let source = carrier(of: slot), let time = slot.wishTime(at: now) else { return false }
    source.wantKeyFrame(from: time)
    return time <= now
  }

  // MARK: Time

  /// Pauses the last videos that its network does not carry, and lets others go on. One that takes more than any video may, or is in
  /// another codec, has no part in what the network carries: nobody else pauses because of it.
  func fitVideos(at now: Nanoseconds) {
    guard let slots = slots[.video] else { return }
    var used: [(slot: ForwardedSlot, rate: Int)] = []
    for slot in slots {
      guard let source = carrier(of: slot) else { continue }
      let rate = source.bitrate(at: now)
      guard rate <= context.settings.mostVideoBitrate else {
        _ = slot.setPaused(true)
        continue
      }
      if slot.takes(source.videoCodec) { used.append((slot, rate)) }
    }
    var count = used.count
    if let share {
      let active = max(1, used.count(where: { $0.slot.isActive(at: now) }))
      let (total, overflow) = share.multipliedReportingOverflow(by: active)
      count = budget.fit(used.map(\.rate), into: overflow ? .max : total, at: now)
    }
    for (place, video) in used.enumerated() {
      if video.slot.setPaused(place >= count) { wantKeyFrame(video.slot, at: now) }
    }
  }

  /// Asks it for the key frame that is wanted of it. Returns when to be called again; nil: nothing is left to do.
  func requestKeyFrame(at now: Nanoseconds) -> Nanoseconds? {
    source.requestKeyFrame(of: session, at: now)
  }

  // MARK: What the session reports

  override func sessionReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    source.take(sound, payload)
  }

  override func sessionReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {
    source.take(picture, bytes)
  }

  override func sessionWantsKeyFrame(medium: Int) {
    guard let slot = slots[.video]?.first(where: { $0.medium == medium }) else { return }
    let isAsked = wantKeyFrame(slot, at: context.clock.now)
    // Where the picture itself was not sent, those behind it are of no use; otherwise they go on until a key frame is asked for.
    if isAsked || slot.isSending { slot.awaitKeyFrame() }
  }

  override func sessionAllocated(sound: Int, video: Int) {
    share = video
    room.noteMedia(at: context.clock.now)
  }
}
