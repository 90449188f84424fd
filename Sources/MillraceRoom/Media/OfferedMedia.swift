internal import MillraceRTC
internal import MillraceRTCWire

/// What a hub that forwards makes of a member's offer: the sections of its answer, one for each medium that it takes.
///
/// What the member receives only becomes a slot; what it sends is received: one sound and two videos, the camera's and the screen's.
/// Further media, and data channels, are refused: messages go over the room's wire.
struct OfferedMedia: Sendable, Hashable {
  /// Media of a kind that a member receives at the same time.
  static let mostSlots = 16
  /// Media of a kind that it sends.
  static let mostSounds = 1
  static let mostVideos = 2
  /// How many media of a kind and a direction a session may have put in the place of others: what was agreed on takes memory until its end.
  static let mostReplaced = 4

  private(set) var sections: [MediaSection] = []
  private var slots: [MediaKind: Int] = [:]
  private var published: [MediaKind: Int] = [:]

  /// Those that are no longer in use, too.
  private var allSlots: [MediaKind: Int] = [:]
  private var allPublished: [MediaKind: Int] = [:]

  /// Reads an offer.
  /// - Parameters:
  ///   - present: the media that the session has; sections are made for others.
  ///   - videoCodecs: in the order of preference. A medium gets the first that the member has too, and no other: where everybody can use
  ///     the first one, everybody sees everybody.
  init(_ offer: SessionDescription, beside present: [SessionMedium] = [], videoCodecs: [RTPCodec]) {
    count(present, in: offer)
    let known = Set(present.map(\.mid))
    for medium in offer.media where !medium.isRejected && !(medium.mid.map { known.contains($0) } ?? false) {
      guard medium.kind == .audio || medium.kind == .video,
        let direction = takePlace(medium.kind, offer.direction(of: medium))
      else { continue }
      var section =
        medium.kind == .audio
        ? MediaSection.audio(direction)
        : MediaSection.video(direction, codecs: Self.chosen(videoCodecs, medium.codecs))
      section.mid = medium.mid
      sections.append(section)
    }
  }

  private mutating func count(_ present: [SessionMedium], in offer: SessionDescription) {
    let live = offer.liveMedia
    for medium in present {
      let isLive = live.contains(medium.mid)
      if medium.direction.receives {
        allPublished[medium.kind, default: 0] += 1
        if isLive { published[medium.kind, default: 0] += 1 }
      } else {
        allSlots[medium.kind, default: 0] += 1
        if isLive { slots[medium.kind, default: 0] += 1 }
      }
    }
  }

  /// What a medium is for this side; nil: there are too many, or nobody sends in it.
  private mutating func takePlace(_ kind: MediaKind, _ offered: MediaDirection) -> MediaDirection? {
    if offered.sends {
      let most = kind == .audio ? Self.mostSounds : Self.mostVideos
      let (count, all) = (published[kind] ?? 0, allPublished[kind] ?? 0)
      guard count < most, all < most + Self.mostReplaced else { return nil }
      (published[kind], allPublished[kind]) = (count + 1, all + 1)
      return .receiveOnly
    }
    guard offered.receives else { return nil }
    let (count, all) = (slots[kind] ?? 0, allSlots[kind] ?? 0)
    guard count < Self.mostSlots, all < Self.mostSlots + Self.mostReplaced else { return nil }
    (slots[kind], allSlots[kind]) = (count + 1, all + 1)
    return .sendOnly
  }

  /// The first codec of ours that is among the offered ones. All, where none is: the answer says then why the medium is refused.
  private static func chosen(_ own: [RTPCodec], _ offered: [RTPCodec]) -> [RTPCodec] {
    for codec in own where offered.contains(where: { isSame(codec, $0) }) { return [codec] }
    return own
  }

  /// The same codec in the same form. With H.264 that is baseline in packetization mode 1, as `RTPCodec.h264` says.
  private static func isSame(_ own: RTPCodec, _ offered: RTPCodec) -> Bool {
    guard own.name.uppercased() == offered.name.uppercased(), own.clockRate == offered.clockRate else {
      return false
    }
    guard own.name.uppercased() == "H264" else { return true }
    guard offered.parameters["packetization-mode"] == "1",
      let profile = H264Profile(parsing: offered.parameters["profile-level-id"] ?? "42e01f")
    else { return false }
    return profile.kind == .constrainedBaseline || profile.kind == .baseline
  }
}

extension SessionDescription {
  /// The mids of media that this offer uses: neither stopped nor inactive.
  var liveMedia: Set<String> {
    var mids: Set<String> = []
    for medium in media where !medium.isRejected && direction(of: medium) != .inactive {
      if let mid = medium.mid { mids.insert(mid) }
    }
    return mids
  }
}
