internal import MillraceRTC
internal import MillraceRTCSignal
internal import MillraceRTCWire

extension RTCCallSettings {
  /// What a session is described with: the media that its signalling wants, at most in the directions that the settings allow.
  /// - Parameter soundCodec: `SoundCodec.packed` of the codec that all sessions have to send; 0: any.
  func sections(for media: SignalMedia, soundCodec: UInt64) -> [MediaSection] {
    session.sections.compactMap { section in
      var section = section
      switch section.kind {
      case .audio: section.direction = section.direction.intersection(media.audio)
      case .video: section.direction = section.direction.intersection(media.video)
      case .application:
        section.maxMessageSize = UInt64(max(1, largestMessage))
        return media.hasData ? section : nil
      default: return nil
      }
      guard section.direction != .inactive else { return nil }
      if section.kind == .audio, section.direction.sends, soundCodec != 0 {
        section.codecs.removeAll { !$0.isAuxiliary && SoundCodec($0)?.packed != soundCodec }
      }
      return section
    }
  }
}

extension SoundCodec {
  /// Nil for a codec that a node does not know.
  init?(_ codec: RTPCodec) {
    let kind: Kind
    switch codec.name.lowercased() {
    case "opus": kind = .opus
    case "pcmu": kind = .pcmu
    case "pcma": kind = .pcma
    case "l16": kind = .l16
    case "telephone-event": kind = .telephone
    default: return nil
    }
    self.init(kind: kind, clockRate: codec.clockRate, channels: codec.channels)
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
