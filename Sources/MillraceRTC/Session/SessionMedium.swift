package import MillraceRTCWire

/// A medium of a session on which both sides have agreed. Its place in `RTCSession.media` is its number: of what comes, and where to send.
package struct SessionMedium: Sendable, Hashable {
  package var mid: String
  /// Sound or pictures.
  package var kind: MediaKind
  /// Seen from this side.
  package var direction: MediaDirection
  /// The codec that is sent; nil: nothing is.
  package var sendCodec: RTPCodec?

  package init(mid: String, kind: MediaKind, direction: MediaDirection, sendCodec: RTPCodec?) {
    self.mid = mid
    self.kind = kind
    self.direction = direction
    self.sendCodec = sendCodec
  }
}

/// A medium as its engine needs it: what its m-line agrees on, and the source of this side.
struct MediaLine: Sendable {
  var mid: String
  /// Sound or pictures.
  var kind: MediaKind
  var media: AgreedMedia
  var source: LocalSource
  /// The place of its section among those of this side.
  var section = 0

  /// How the session shows it.
  var shown: SessionMedium {
    SessionMedium(
      mid: mid, kind: kind, direction: media.direction,
      sendCodec: media.direction.sends ? media.sendCodec : nil)
  }

  /// The sound and the pictures of a session, in the order of the m-lines.
  /// - Parameter places: for each m-line, the place of the section that this side has described it with; nil: refused.
  static func all(
    _ session: NegotiatedSession, _ sections: [MediaSection], _ places: [Int?]
  ) -> [MediaLine] {
    session.media.compactMap { medium in
      guard medium.kind == .audio || medium.kind == .video, places.indices.contains(medium.index),
        let place = places[medium.index], let source = sections[place].source
      else { return nil }
      return MediaLine(
        mid: medium.mid, kind: medium.kind, media: AgreedMedia(medium), source: source, section: place)
    }
  }
}
