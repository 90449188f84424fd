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

  private(set) var sections: [MediaSection] = []
  private var slots: [MediaKind: Int] = [:]
  private var published: [MediaKind: Int] = [:]

  /// Reads an offer.
  /// - Parameter videoCodecs: in the order of preference. A medium gets the first that the member has too, and no other: where everybody
  ///   can use the first one, everybody sees everybody.
  init(_ offer: SessionDescription, videoCodecs: [RTPCodec]) {
    for medium in offer.media where !medium.isRejected {
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

  /// What a medium is for this side; nil: there are too many, or nobody sends in it.
  private mutating func takePlace(_ kind: MediaKind, _ offered: MediaDirection) -> MediaDirection? {
    if offered.sends {
      let most = kind == .audio ? Self.mostSounds : Self.mostVideos
      let count = published[kind] ?? 0
      guard count < most else { return nil }
      published[kind] = count + 1
      return .receiveOnly
    }
    guard offered.receives else { return nil }
    let count = slots[kind] ?? 0
    guard count < Self.mostSlots else { return nil }
    slots[kind] = count + 1
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
