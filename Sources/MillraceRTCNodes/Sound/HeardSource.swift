internal import MillraceCore
internal import MillraceRTCSound

/// An output that carries the sound of one received medium alone.
struct SoundTapRequest: Sendable {
  var output: Int
  /// As in `SoundDownHead`.
  var medium: UInt8
  var sample: SampleType
}

/// A source as it is heard.
struct HeardSource: Sendable, Equatable {
  /// As in `SoundDownHead`.
  var source: UInt64
  /// RMS of the latest 200 ms that were measured, in dBFS; -120: silence.
  var level: Double
  /// Louder than a quiet room lately.
  var isSpeaking: Bool
  /// How much later it plays than the fastest packet would allow.
  var delay: Nanoseconds
}
