internal import MillraceCore
internal import MillraceRTC
internal import MillraceRTCWire
internal import MillraceRoomWire
internal import Synchronization

/// A member of a room whose media are forwarded: its session, and what it receives. On the loop's thread.
///
/// What its session reports only sets flags, beside passing packets on: the room does the rest in its next run, because a session must be
/// neither ended nor asked for pictures within its own reports.
final class ForwardedMember {
  let peer: RoomName
  /// What it publishes.
  let source: ForwardedSource
  private unowned let room: ForwardedRoom
  private let context: ForwardingContext
  private var subscriptions = RoomSubscriptions()

  private var session: RTCSession?
  /// The session's number in `o=` of its offer: another one is another session.
  private var origin = ""
  /// The offer that is not answered.
  private var request: Int?
  private var description: String?
  /// Offer and answer fit together.
  private var isNegotiated = false
  /// The session has failed or was closed.
  private(set) var isOver = false

  private var slots: [RoomTrack: [ForwardedSlot]] = [:]
  private var tables: [RoomTrack: SlotTable] = [:]
  private var budget = VideoBudget()
  /// Bits a second for each video that is sent; nil: not known.
  private var share: Int?

  init(_ peer: RoomName, role: RoomRole, in room: ForwardedRoom, _ context: ForwardingContext) {
    self.peer = peer
    self.room = room
    self.context = context
    source = ForwardedSource(peer, role: role, in: room, context)
  }

  // MARK: Session

  /// Answers an offer, by a new session or the present one.
  func take(_ text: String, request: Int) {
    let offer: SessionDescription
    do throws(SDPProblem) { offer = try SessionDescription(parsing: text) } catch {
      return answer(request, .failure(RoomError(.badOffer, error.description)))
    }
    refuse("another offer came before this one was answered")
    let sections = OfferedMedia(offer, videoCodecs: context.settings.videoCodecs).sections
    if let session, isNegotiated, !isOver, origin == offer.origin.sessionID {
      self.request = request
      session.answer(offer, adding: sections)
      // It answers at once, unless it is over.
      return refuse("the session is over; make another one and offer it")
    }
    dropSession()
    guard !sections.isEmpty else {
      let text = "the offer has no sound and no video that is sent or received; offer at least one"
      return answer(request, .failure(RoomError(.badOffer, text)))
    }
    begin(offer, sections, request)
  }

  private func begin(_ offer: SessionDescription, _ sections: [MediaSection], _ request: Int) {
    var settings = context.settings.session
    settings.sections = sections
    let made = RTCSession(on: context.loop, settings, context.identity, observer: self)
    session = made
    context.counters.sessions.add(1, ordering: .relaxed)
    self.request = request
    origin = offer.origin.sessionID
    made.answer(offer)
  }

  /// Takes a candidate. One that cannot be read is of no use, and another may be.
  func add(_ candidate: RoomCandidate) {
    guard let session, !isOver else { return }
    // Browsers end with an empty candidate.
    guard let text = candidate.candidate, !text.isEmpty else { return session.add(nil) }
    do throws(SDPProblem) { session.add(try ICECandidate(parsing: text)) } catch {}
  }

  /// Ends the session, if there is one, and frees its slots. Not within its reports.
  func dropSession() {
    guard let session else { return }
    self.session = nil
    session.end()
    context.counters.sessions.subtract(1, ordering: .relaxed)
    for track in [RoomTrack.audio, .video] {
      for slot in slots[track] ?? [] where slot.peer != nil {
        context.report?(.assigned(RoomSlot(slot.mid, track), to: peer))
      }
    }
    (slots, tables, budget, share) = ([:], [:], VideoBudget(), nil)
    (isOver, isNegotiated, description, request) = (false, false, nil, nil)
    source.setMedia(sound: nil, videos: [])
    source.restart()
    room.noteChange()
  }

  /// The member leaves: nothing more is reported to it.
  func end() {
    request = nil
    slots = [:]
    dropSession()
  }

  private func answer(_ request: Int, _ result: Result<String, RoomError>) {
    context.report?(.answered(peer, request: request, result))
  }

  /// Refuses the offer that waits, if one does.
  private func refuse(_ text: String) { refuse(RoomError(.badOffer, text)) }

  private func refuse(_ error: RoomError) {
    guard let request else { return }
    self.request = nil
    answer(request, .failure(error))
  }

  private func answerDescribed() {
    guard isNegotiated, let request, let description else { return }
    self.request = nil
    takeMedia()
    answer(request, .success(description))
    room.noteChange()
  }

  /// Takes what was agreed on: what this member sends, and its slots.
  private func takeMedia() {
    guard let session else { return }
    var known = Set((slots[.audio] ?? []).map(\.mid) + (slots[.video] ?? []).map(\.mid))
    var sound: Int?
    var videos: [Int] = []
    for (place, medium) in session.media.enumerated() {
      if medium.direction.receives {
        if medium.kind == .audio { sound = sound ?? place } else { videos.append(place) }
      }
      guard medium.direction.sends, known.insert(medium.mid).inserted else { continue }
      let slot = ForwardedSlot(medium, medium: place, of: session, context.counters)
      slots[slot.track, default: []].append(slot)
    }
    for (track, list) in slots { tables[track, default: SlotTable()].grow(to: list.count) }
    source.setMedia(sound: sound, videos: Array(videos.prefix(OfferedMedia.mostVideos)))
  }

  // MARK: Slots

  func subscribe(_ subscription: RoomSubscription) { subscriptions.apply(subscription) }

  func forget(_ other: RoomName) { subscriptions.forget(other) }

  /// Somebody that it wants has no slot.
  var isShort: Bool { tables.values.contains { $0.isShort && !$0.peers.isEmpty } }

  /// Gives peers their slots.
  /// - Parameter publishers: who publishes the track, in the order in which they began.
  func assign(_ track: RoomTrack, _ publishers: [ForwardedMember], at now: Nanoseconds) {
    guard var table = tables[track], let slots = slots[track] else { return }
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
      if track == .video { carrier(of: slot)?.wantKeyFrame() }
    }
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

  // MARK: Time

  /// Pauses the last videos that its network does not carry, and lets others go on.
  func fitVideos(at now: Nanoseconds) {
    guard let share, let slots = slots[.video] else { return }
    let used = slots.filter { $0.peer != nil }
    let rates = used.map { carrier(of: $0)?.bitrate(at: now) ?? 0 }
    let active = max(1, used.count(where: { $0.isActive(at: now) }))
    let (total, overflow) = share.multipliedReportingOverflow(by: active)
    let count = budget.fit(rates, into: overflow ? .max : total, at: now)
    for (place, slot) in used.enumerated() {
      if slot.setPaused(place >= count) { carrier(of: slot)?.wantKeyFrame() }
    }
  }

  /// Asks it for the key frame that is wanted of it. Returns when to be called again; nil: nothing is left to do.
  func requestKeyFrame(at now: Nanoseconds) -> Nanoseconds? {
    source.requestKeyFrame(of: session, at: now)
  }
}

extension ForwardedMember: RTCSessionObserver {
  func sessionDescribed(_ description: SessionDescription) {
    self.description = description.text
    answerDescribed()
  }

  // All candidates are in the answer: a session searches them before it answers.
  func sessionFound(_ candidate: ICECandidate?) {}

  func sessionChanged(_ state: RTCSessionState) {
    switch state {
    case .signalling, .connected, .disconnected: break
    case .connecting:
      // The first answer is known to fit the offer only from here on.
      isNegotiated = true
      answerDescribed()
    case .closed: noteOver(RoomError(.badOffer, "the session was closed; make another one"))
    case .failed(let failure): noteOver(Self.error(failure))
    }
  }

  private func noteOver(_ error: RoomError) {
    isOver = true
    refuse(error)
    room.noteChange()
  }

  private static func error(_ failure: RTCSessionFailure) -> RoomError {
    switch failure {
    case .negotiation(.noCommonCodec(let medium)):
      RoomError(.noCommonCodec, NegotiationProblem.noCommonCodec(medium: medium).description)
    case .negotiation(let problem): RoomError(.badOffer, problem.description)
    case .peer(.fingerprint):
      RoomError(.badOffer, "the certificate is another one; a new session has a new number in \"o=\"")
    case .library(let problem), .peer(.library(let problem)):
      RoomError(.tooManyRequests, "the hub has no session: \(problem)", afterMilliseconds: 1_000)
    case .peer, .timeout, .lost: RoomError(.badOffer, "the session has failed; make another one")
    }
  }

  func sessionReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) { source.take(sound, payload) }

  func sessionReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) { source.take(picture, bytes) }

  // Nothing of the room is carried by them.
  func sessionReceived(_ tone: ReceivedTone) {}
  func sessionReceived(_ event: DataChannelEvent) {}
  func sessionEnded(source: UInt32, reason: String?) {}

  func sessionWantsKeyFrame(medium: Int) {
    guard let slot = slots[.video]?.first(where: { $0.medium == medium }) else { return }
    slot.awaitKeyFrame()
    carrier(of: slot)?.wantKeyFrame()
  }

  func sessionAllocated(sound: Int, video: Int) {
    share = video
    room.noteMedia(at: context.clock.now)
  }
}
