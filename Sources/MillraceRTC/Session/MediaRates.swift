internal import MillraceCore
internal import MillraceRTCWire

/// What the media of a session may send in bits a second, and what was agreed on about feedback, as the control of congestion needs it.
struct MediaRates {
  private let sound: ClosedRange<Int>
  private let video: ClosedRange<Int>

  init(sound: ClosedRange<Int>, video: ClosedRange<Int>) {
    self.sound = sound
    self.video = video
  }

  /// The settings for media.
  /// - Parameter sender: the source of feedback about them.
  func settings(_ lines: [MediaLine], sender: UInt32) -> CongestionControl.Settings {
    let videos = lines.filter { $0.kind == .video }
    var settings = CongestionControl.Settings(sender: sender)
    for line in lines.filter({ $0.kind == .audio }) + videos {
      settings.transportSequence = settings.transportSequence ?? line.media.identifiers.transportSequence
      settings.readsFeedback = settings.readsFeedback || line.media.readsFeedback(.transportCC)
      settings.sendsFeedback = settings.sendsFeedback || line.media.sendsFeedback(.transportCC)
    }
    if settings.transportSequence == nil { (settings.readsFeedback, settings.sendsFeedback) = (false, false) }
    settings.absoluteSendTime = videos.lazy.compactMap { $0.media.identifiers.absoluteSendTime }.first
    settings.sendsREMB = !settings.sendsFeedback && videos.contains { $0.media.sendsFeedback(.remb) }
    let sent = sent(lines)
    (settings.sound, settings.video) = (sent.sound, sent.video)
    (settings.sounds, settings.videos, settings.reported) = (sent.sounds, sent.videos, sent.reported)
    return settings
  }

  /// Lets a control that runs take media that came later; `lines` are all of them.
  func extend(_ congestion: CongestionControl, by lines: [MediaLine]) {
    let sent = sent(lines)
    congestion.extend(
      sound: sent.sound, video: sent.video, sounds: sent.sounds, videos: sent.videos, reported: sent.reported)
  }

  private func sent(_ lines: [MediaLine]) -> (
    sound: ClosedRange<Int>?, video: ClosedRange<Int>?, sounds: Int, videos: Int, reported: [UInt32]
  ) {
    let sending = lines.filter { $0.media.direction.sends }
    let (sounds, videos) = (sending.filter { $0.kind == .audio }, sending.filter { $0.kind == .video })
    // Pictures lose more than sound does, because they are more.
    let reported = videos.isEmpty ? sounds : videos
    return (
      sounds.isEmpty ? nil : sound, videos.isEmpty ? nil : video, sounds.count, videos.count,
      reported.map { $0.source.ssrc }
    )
  }
}
