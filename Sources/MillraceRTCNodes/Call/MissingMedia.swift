internal import MillraceCore
internal import MillraceDialog
internal import MillraceRTCSignal
internal import MillraceRTCWire

/// Which media of a session have not come in time, although others have. A session without any is the business of `CallMachine`. Pure:
/// times come in.
///
/// Media that the peer only sends are expected from the connection on; where this side sends too, the peer may answer to that: they are
/// expected once something of this side was sent, and a medium of both directions once that medium was.
struct MissingMedia {
  private struct Medium {
    let track: DialogTrack
    /// It may be an echo of the same medium of this side.
    let isEcho: Bool
    /// Nil: not expected yet.
    var since: Nanoseconds?
  }

  private let patience: Nanoseconds
  /// Those that have not come, and were not reported.
  private var media: [Medium] = []
  /// When the first media came.
  private var receivedAt: Nanoseconds?

  /// Nothing is expected.
  init() { patience = 0 }

  /// A session has connected.
  /// - Parameter patience: how long media may be missing; 0: for ever.
  init(_ agreed: SignalMedia, patience: Nanoseconds, at now: Nanoseconds) {
    self.patience = patience
    guard patience > 0 else { return }
    let sends = agreed.audio.sends || agreed.video.sends
    for (track, direction) in [(DialogTrack.audio, agreed.audio), (.video, agreed.video)]
    where direction.receives {
      media.append(Medium(track: track, isEcho: direction.sends, since: sends ? nil : now))
    }
  }

  /// When something is to be reported; nil: never.
  var deadline: Nanoseconds? {
    guard let receivedAt else { return nil }
    return media.compactMap { $0.since }.min().map { max($0, receivedAt) + patience }
  }

  /// The first packet of a medium was sent.
  mutating func sent(_ track: DialogTrack, at now: Nanoseconds) {
    for index in media.indices
    where media[index].since == nil && (!media[index].isEcho || media[index].track == track) {
      media[index].since = now
    }
  }

  /// The first packet of a medium has come.
  mutating func received(_ track: DialogTrack, at now: Nanoseconds) {
    receivedAt = receivedAt ?? now
    media.removeAll { $0.track == track }
  }

  /// The media that are missing now; each is reported once.
  mutating func takeDue(at now: Nanoseconds) -> [DialogTrack] {
    guard let receivedAt else { return [] }
    let due = media.filter { medium in
      medium.since.map { max($0, receivedAt) + patience <= now } ?? false
    }
    guard !due.isEmpty else { return [] }
    media.removeAll { medium in due.contains { $0.track == medium.track } }
    return due.map { $0.track }
  }
}
