internal import MillraceRTC
internal import MillraceRTCSignal
internal import MillraceRTCSound
internal import MillraceRTCWire

extension RTCCallSettings {
  /// What a session is described with: the media that its signalling wants, at most in the directions that the settings allow.
  /// - Parameter soundCodec: `SoundCodec.packed` of the codec that all sessions have to send; 0: any.
  func sections(for media: SignalMedia, soundCodec: UInt64) -> [MediaSection] {
    session.sections.flatMap { section -> [MediaSection] in
      switch section.kind {
      case .audio: sections(like: section, media.audio, slots: media.audioSlots, soundCodec)
      case .video: sections(like: section, media.video, slots: media.videoSlots, 0)
      case .application: media.hasData ? [data(like: section)] : []
      default: []
      }
    }
  }

  /// The first medium of a kind, unless nothing goes through it, and its slots.
  private func sections(
    like section: MediaSection, _ direction: MediaDirection, slots: Int, _ soundCodec: UInt64
  ) -> [MediaSection] {
    var first = section
    first.direction = section.direction.intersection(direction)
    if first.direction.sends, soundCodec != 0 {
      first.codecs.removeAll { !$0.isAuxiliary && SoundCodec($0)?.packed != soundCodec }
    }
    var slot = section
    slot.direction = .receiveOnly
    let all = [first] + [MediaSection](repeating: slot, count: section.direction.receives ? slots : 0)
    return first.direction == .inactive ? Array(all.dropFirst()) : all
  }

  private func data(like section: MediaSection) -> MediaSection {
    var section = section
    section.maxMessageSize = UInt64(max(1, largestMessage))
    return section
  }
}

extension PictureCodec {
  init?(_ codec: RTPCodec) {
    switch codec.name.lowercased() {
    case "h264": self = .h264
    case "vp8": self = .vp8
    default: return nil
    }
  }
}
