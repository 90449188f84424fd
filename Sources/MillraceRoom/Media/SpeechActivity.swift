internal import MillraceCore
internal import MillraceRTCWire

/// When a member has spoken, by the levels that its sender writes into packets of sound (RFC 6464). A sender that writes none never speaks.
struct SpeechActivity: Sendable, Hashable {
  /// Less than -50 dBov is the noise of a room.
  static let quietest: UInt8 = 50
  /// A shorter pause, as between words, does not end a turn.
  static let pause: Nanoseconds = .milliseconds(300)

  /// When the latest turn began, and when it was heard last; nil: it has not spoken.
  private(set) var begunAt: Nanoseconds?
  private(set) var lastAt: Nanoseconds?
  /// The sender marks speech, so that loud noise is not taken for it.
  private var marksSpeech = false
  /// The lowest attenuation since `takeLevel`; nil: it has not spoken since.
  private var loudest: UInt8?

  /// Takes note of a packet.
  mutating func note(_ level: RTPAudioLevel?, at now: Nanoseconds) {
    guard let level else { return }
    if level.hasSpeech { marksSpeech = true }
    guard level.attenuation < Self.quietest, level.hasSpeech || !marksSpeech else { return }
    if lastAt.map({ now - $0 > Self.pause }) ?? true { begunAt = now }
    lastAt = now
    loudest = min(loudest ?? level.attenuation, level.attenuation)
  }

  /// True while it speaks, and has for this long.
  func hasSpoken(for duration: Nanoseconds, at now: Nanoseconds) -> Bool {
    guard let begunAt, let lastAt else { return false }
    return now - lastAt <= Self.pause && lastAt - begunAt >= duration
  }

  /// The highest level since the last call, in dBov; nil: it has not spoken.
  mutating func takeLevel() -> Int? {
    defer { loudest = nil }
    return loudest.map { -Int($0) }
  }
}
