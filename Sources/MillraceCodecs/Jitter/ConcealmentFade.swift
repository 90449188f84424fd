internal import MillraceCore

/// Lets concealment that continues become silence: a source that stops must not hum for ever.
///
/// It begins after half a second: while nobody speaks, an Opus sender refreshes the background noise every 400 ms (libopus, `opus_encode`),
/// and that noise shall not come and go. A pure struct.
struct ConcealmentFade {
  /// When it begins, and how long it takes.
  private static let hold: Nanoseconds = .milliseconds(480)
  private static let length: Nanoseconds = .milliseconds(320)

  private let holdFrames: Int
  private let fadeFrames: Int
  /// Frames concealed without a break.
  private var concealed = 0

  init(rate: Int) {
    holdFrames = Int(Self.hold / 1_000_000) * rate / 1_000
    fadeFrames = Int(Self.length / 1_000_000) * rate / 1_000
  }

  /// The gain of the next frame.
  var gain: Float { 1 - Float(min(max(0, concealed - holdFrames), fadeFrames)) / Float(fadeFrames) }

  /// True when nothing is left of the audio.
  var isSilent: Bool { concealed >= holdFrames + fadeFrames }

  /// Audio is there again.
  mutating func reset() { concealed = 0 }

  /// Applies the gain to frames of concealment.
  mutating func apply(to samples: inout MutableSpan<Float>, channels: Int) {
    for frame in 0..<samples.count / channels {
      let gain = self.gain
      for channel in 0..<channels {
        let place = frame * channels + channel
        samples[place] = samples[place] * gain
      }
      concealed = min(concealed + 1, holdFrames + fadeFrames)
    }
  }
}
