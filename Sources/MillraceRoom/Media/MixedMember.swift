internal import MillraceCore
internal import MillraceRTC
internal import MillraceRTCSound
internal import MillraceRTCWire
internal import MillraceRoomWire
internal import Synchronization

/// A member of a room whose sound is mixed: what it sends goes to its seat while it publishes, and the mix comes from there. On the loop's
/// thread; no heap request for a packet.
final class MixedMember: SessionMember {
  let seat: RoomMixSeat
  private unowned let room: MixedRoom
  private let context: MixingContext
  private var role: RoomRole
  private var isPublished = false
  /// Counts sessions: two may have chosen one number for their sources.
  private var number: UInt64 = 0
  /// Places among the session's media, of the sound that comes and of that which is sent; nil: there is none.
  private var received: Int?
  private var sent: Int?
  private var isConnected = false
  /// It publishes sound, and may.
  private var isHeard = false
  private var ceiling = SoundCeiling()

  init(
    _ peer: RoomName, role: RoomRole, in room: MixedRoom, at seat: RoomMixSeat, _ context: MixingContext
  ) {
    self.room = room
    self.role = role
    self.seat = seat
    self.context = context
    super.init(peer, in: room, context)
  }

  // MARK: What is published

  func setRole(_ role: RoomRole) {
    self.role = role
    update()
  }

  func publish(_ publication: RoomPublication) {
    guard publication.track == .audio else { return }
    isPublished = publication.isOn
    update()
  }

  private func update() {
    isHeard = role == .host && isPublished && received != nil
    if !isHeard { seat.endSource() }
  }

  /// The level of what it has said since the last call; nil: nothing.
  func takeLevel() -> RoomLevel? {
    seat.takeLevel().map { RoomLevel(peer, Int($0.rounded())) }
  }

  // MARK: Session

  override func sections(for offer: SessionDescription) -> [MediaSection] { OfferedSound.sections(offer) }

  override func addedSections(for offer: SessionDescription) -> [MediaSection] {
    OfferedSound.sections(offer, beside: session?.media ?? [])
  }

  override var emptyOffer: String { "the offer has no sound that is sent or received; offer one" }

  /// A sound that its latest offer has stopped is not counted: the member may have put another in its place.
  override func sessionAgreed(_ session: RTCSession) {
    let live = session.remote?.liveMedia ?? []
    let before = sent
    received = session.media.firstIndex { live.contains($0.mid) && $0.direction.receives }
    sent = session.media.firstIndex { live.contains($0.mid) && $0.direction.sends }
    update()
    if sent != before { listen() }
  }

  override func sessionConnected(_ isConnected: Bool) {
    self.isConnected = isConnected
    listen()
  }

  /// Hears the mix by a decoder that has heard nothing.
  private func listen() { seat.setListener(isConnected && sent != nil ? self : nil) }

  override func sessionDropped() {
    number &+= 1
    (received, sent, isConnected) = (nil, nil, false)
    seat.setListener(nil)
    update()
  }

  override func sessionReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    guard isHeard, sound.medium == received else {
      context.counters.unpublished.add(1, ordering: .relaxed)
      return
    }
    guard ceiling.admits(payload.count, at: sound.arrival) else {
      context.counters.excessive.add(1, ordering: .relaxed)
      return
    }
    // Opus is the only codec that is agreed on.
    let head = SoundDownHead(
      source: number << 32 | UInt64(sound.ssrc), sequence: sound.sequence, timestamp: sound.timestamp,
      arrival: sound.arrival, capture: sound.capture, codec: SoundCodec.opus.packed,
      level: sound.level?.attenuation ?? 255, marker: sound.marker, restarts: sound.restarts)
    room.take(head, payload, from: seat, at: sound.arrival)
  }
}

extension MixedMember: RoomMixListener {
  func mixed(_ payload: Span<UInt8>, pause: Int, level: Double) {
    guard let session, let sent else { return }
    context.counters.sounds.add(1, ordering: .relaxed)
    let attenuation = UInt8(max(0, min(127, -level.rounded())))
    session.send(
      payload, duration: RoomMixer.frame, pause: pause,
      level: RTPAudioLevel(attenuation: attenuation, hasSpeech: level > SpeechLevel.threshold), on: sent)
  }
}

/// What a hub that mixes makes of a member's offer: the section of its first sound that is used in either direction. Everything else is
/// refused.
enum OfferedSound {
  /// - Parameter present: the media that the session has; a section is made for another one where none of them is used any more.
  static func sections(_ offer: SessionDescription, beside present: [SessionMedium] = []) -> [MediaSection] {
    let (live, known) = (offer.liveMedia, Set(present.map(\.mid)))
    guard live.isDisjoint(with: known), known.count <= OfferedMedia.mostReplaced else { return [] }
    for medium in offer.media where medium.kind == .audio && !medium.isRejected {
      let direction = offer.direction(of: medium)
      guard direction != .inactive, !(medium.mid.map { known.contains($0) } ?? false) else { continue }
      var section = MediaSection.audio(direction.reversed)
      section.mid = medium.mid
      return [section]
    }
    return []
  }
}
