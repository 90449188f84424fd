internal import MillraceDialog
internal import MillraceRTCSignal
internal import MillraceRTCWire

/// Sound or pictures that both sides have described, and that a session does not have, because one side has refused them.
struct RefusedMedium {
  /// Codecs of the peer that are named at most, and characters of each: it could fill events with them otherwise.
  private static let mostNames = 8
  private static let mostCharacters = 24

  let track: DialogTrack
  /// This side has offered to send it.
  let wasOffered: Bool
  private let isOfferer: Bool
  private let ours: String
  private let theirs: String

  /// Compares what was wanted with what was agreed on.
  /// - Parameters:
  ///   - sections: what this side has described.
  ///   - remote: the description of the peer.
  ///   - isOfferer: this side has offered.
  static func all(
    _ sections: [MediaSection], _ session: NegotiatedSession, _ remote: SessionDescription, isOfferer: Bool
  ) -> [RefusedMedium] {
    sections.compactMap { section in
      guard let track = Self.track(of: section.kind),
        !session.media.contains(where: { $0.kind == section.kind }),
        let theirs = remote.media.first(where: { $0.kind == section.kind })
      else { return nil }
      // What the peer does not offer is not refused.
      guard isOfferer || !theirs.isRejected else { return nil }
      return RefusedMedium(
        track: track, wasOffered: isOfferer && section.direction.sends, isOfferer: isOfferer,
        ours: names(section.codecs), theirs: names(theirs.codecs))
    }
  }

  var kind: RepeatedErrors.Kind { track == .audio ? .refusedSound : .refusedPictures }

  /// The error, which changes nothing about the rest of the session.
  /// - Parameter peer: the name of the other side.
  func error(_ peer: String) -> DialogError {
    let name = track.rawValue
    let text: String
    if isOfferer {
      // The formats of a refused medium are those of the offer (RFC 3264 section 6).
      text =
        "\(name) is refused by the peer, which takes none, or not \(ours); use a codec that it has"
    } else {
      text =
        "\(name) is refused: \(peer) has \(theirs), and this node has \(ours); use one codec on both sides"
    }
    return RTCError.noCommonCodec.error(text, reaction: .continue)
  }

  private static func track(of kind: MediaKind) -> DialogTrack? {
    switch kind {
    case .audio: .audio
    case .video: .video
    default: nil
    }
  }

  private static func names(_ codecs: [RTPCodec]) -> String {
    var names: [String] = []
    for codec in codecs where !codec.isAuxiliary && names.count < mostNames {
      let name = String(codec.name.prefix(mostCharacters))
      if !names.contains(name) { names.append(name) }
    }
    return names.isEmpty ? "none" : names.joined(separator: ", ")
  }
}
