internal import MillraceCore
internal import MillraceDialog
internal import MillraceRTCWire
internal import MillraceRoomWire

/// The session with the hub, number 0, which this side offers: what it publishes, and places for what it receives.
///
/// The answer of the hub has all its candidates. A new offer restarts ICE. The session may end alone, and another one is offered then: the
/// end of the media is no end of the membership.
struct RoomHubSession: RoomSessions {
  private static let session = 0
  /// From the end of a session to the next offer. A hub that stops, or removes this member, says so by the connection, and its last packets
  /// of media may come first.
  private static let pause: Nanoseconds = .milliseconds(1_000)

  private let media: SignalMedia
  private let slots: Int
  /// What every session is offered with; nil: there is none.
  private var wanted: (media: SignalMedia, servers: [SignalServer])?
  /// An offer was asked for, and its session has not ended.
  private var isOffered = false
  /// When the next one is asked for.
  private var offersAt: Nanoseconds?
  /// Of the latest description.
  private var number = 0
  private var candidates = RoomCandidates()
  /// The hub's certificates, as of its first answer, and the number that its session has there: the certificate is that of the program.
  private var fingerprints: Set<String> = []
  private var origin: String?

  init(_ settings: RoomClientSettings) {
    media = settings.media
    slots = settings.slots
  }

  var isHub: Bool { true }

  var deadline: Nanoseconds? { offersAt }

  mutating func handle(_ input: RoomSessionInput, at now: Nanoseconds) -> [RoomSessionAction] {
    switch input {
    case .joined(let room): return joined(room)
    case .describe(Self.session, let sdp), .restart(Self.session, let sdp): return offer(sdp)
    case .candidate(Self.session, let candidate): return add(candidate)
    case .taken(Self.session, let number, let answer): return taken(number, answer)
    case .refused(Self.session, let number, let error):
      guard number == self.number, isOffered else { return [] }
      return [.report(.sessionFailed(SignalSessionID(Self.session), error))]
    case .ended(Self.session):
      ended(at: now)
      return []
    case .tick:
      guard let offersAt, offersAt <= now else { return [] }
      return wantOffer()
    // Sessions between peers are not for this form.
    default: return []
    }
  }

  private mutating func joined(_ room: RoomJoined) -> [RoomSessionAction] {
    guard wanted == nil else { return [] }
    let media = wantedMedia(room.media ?? .forward)
    // Messages only.
    guard media != SignalMedia() else { return [.report(.ready(isComplete: true))] }
    guard room.media != nil else {
      let text = "this hub only carries messages; let it carry media, or use a session with one other side"
      return [
        .fail(
          DialogError(
            vendor: RTCError.vendor, name: RoomErrorName.noMedia.rawValue, category: .request,
            reaction: .refuse, text: text))
      ]
    }
    wanted = (media, room.servers.map { SignalServer($0) })
    return wantOffer()
  }

  private mutating func wantOffer() -> [RoomSessionAction] {
    offersAt = nil
    guard let wanted else { return [] }
    isOffered = true
    return [.report(.wantsOffer(SignalSessionID(Self.session), wanted.media, servers: wanted.servers))]
  }

  /// Nothing that is still to come for the session concerns the next one.
  private mutating func ended(at now: Nanoseconds) {
    guard isOffered else { return }
    isOffered = false
    offersAt = now + Self.pause
    number += 1
    candidates = RoomCandidates()
    (fingerprints, origin) = ([], nil)
  }

  /// What the session carries. A room that mixes has one sound both ways and no pictures.
  private func wantedMedia(_ mode: RoomMediaMode) -> SignalMedia {
    switch mode {
    case .mix: return SignalMedia(audio: media.audio)
    case .forward:
      return SignalMedia(
        audio: MediaDirection(sends: media.audio.sends, receives: false),
        video: MediaDirection(sends: media.video.sends, receives: false),
        audioSlots: media.audio.receives ? slots : 0, videoSlots: media.video.receives ? slots : 0)
    }
  }

  private mutating func offer(_ sdp: String) -> [RoomSessionAction] {
    guard isOffered else { return [] }
    number += 1
    let waiting = candidates.described(sdp)
    return [.describe(Self.session, number: number, RoomDescription(.offer, sdp), to: nil)]
      + waiting.map { .candidate($0, to: nil) }
  }

  private mutating func add(_ candidate: String?) -> [RoomSessionAction] {
    guard isOffered, let ready = candidates.take(candidate) else { return [] }
    return [.candidate(ready, to: nil)]
  }

  private mutating func taken(_ number: Int, _ answer: RoomDescription?) -> [RoomSessionAction] {
    // An older offer has no answer any more.
    guard number == self.number, isOffered else { return [] }
    let id = SignalSessionID(Self.session)
    guard let answer, !answer.isOffer else {
      let error = RTCError.badAnswer.error("the hub has answered the offer with something else")
      return [.report(.sessionFailed(id, error))]
    }
    let new = RoomFingerprints.of(answer.sdp)
    let session = RoomFingerprints.session(of: answer.sdp)
    guard fingerprints.isEmpty || new == fingerprints && session == origin else {
      let error = RTCError.network.error("the hub has lost the session, and begins another")
      return [.report(.sessionFailed(id, error))]
    }
    (fingerprints, origin) = (new, session)
    return [.report(.answer(id, sdp: answer.sdp))]
  }
}

extension SignalServer {
  init(_ server: RoomServer) {
    self.init(url: server.url, user: server.user, password: server.password)
  }
}
