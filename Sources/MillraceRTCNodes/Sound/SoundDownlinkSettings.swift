internal import MillraceCodecs
internal import MillraceCore

/// How received sound is played.
struct SoundDownlinkSettings: Sendable {
  /// Shortest delay, and longest target delay, of the jitter buffer of each source.
  var delays: ClosedRange<Nanoseconds> =
    Nanoseconds.milliseconds(20)...Nanoseconds.milliseconds(200)
  /// Uses the copy of a lost Opus packet that the next packet may carry.
  var recovers = true

  var player: JitterPlayer.Settings {
    JitterPlayer.Settings(limits: delays, recovers: recovers, fades: true)
  }
}

/// What became of received sound, of all sources since the start.
struct HeardSound: Sendable, Equatable {
  var packets = 0
  /// Packets that came after their time, twice, or earlier than one before them.
  var late = 0
  var duplicates = 0
  var reordered = 0
  /// Packets that could not be decoded, and that were too many to be played in time.
  var damaged = 0
  var skipped = 0
  /// Packets of sources beyond those that are heard, and of codecs that cannot be played.
  var unheard = 0
  /// Sound that was lost and concealed, recovered from copies, and concealed while its source sent nothing.
  var lost: Nanoseconds = 0
  var recovered: Nanoseconds = 0
  var concealed: Nanoseconds = 0
  /// The longest delay of a jitter buffer now.
  var delay: Nanoseconds = 0

  mutating func add(_ counts: JitterPlayer.Counts, rate: Int) {
    packets += counts.packets
    late += counts.late
    duplicates += counts.duplicates
    reordered += counts.reordered
    damaged += counts.damaged
    skipped += counts.skipped
    lost += .samples(counts.lost, rate: rate)
    recovered += .samples(counts.recovered, rate: rate)
    concealed += .samples(counts.waited, rate: rate)
  }
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
