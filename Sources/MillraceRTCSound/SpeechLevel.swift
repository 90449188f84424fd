/// Tells from levels whether somebody speaks: at once when it gets louder than a quiet room, and for a while after. A pure struct.
///
/// It knows no noise from speech: that is the task of `audio.vad`.
package struct SpeechLevel: Sendable, Equatable {
  /// The noise of a quiet room at a headset, in dBFS.
  package static let threshold = -50.0
  /// Pauses between words, in milliseconds.
  private static let hangover = 200

  package private(set) var isSpeaking = false
  private var quiet = 0

  package init() {}

  /// Notes the level of a stretch of sound.
  /// - Parameter milliseconds: its length.
  package mutating func note(_ level: Double, milliseconds: Int) {
    if level > Self.threshold {
      (isSpeaking, quiet) = (true, 0)
    } else {
      quiet = min(quiet + milliseconds, Self.hangover)
      if quiet >= Self.hangover { isSpeaking = false }
    }
  }
}
