package import MillraceCodecs
package import MillraceCore

/// How received sound is played.
package struct SoundDownlinkSettings: Sendable {
  /// Shortest delay, and longest target delay, of the jitter buffer of each source.
  package var delays: ClosedRange<Nanoseconds> =
    Nanoseconds.milliseconds(20)...Nanoseconds.milliseconds(200)
  /// Uses the copy of a lost Opus packet that the next packet may carry.
  package var recovers = true

  package var player: JitterPlayer.Settings {
    JitterPlayer.Settings(limits: delays, recovers: recovers, fades: true)
  }

  package init() {}
}

/// What became of received sound, of all sources since the start.
package struct HeardSound: Sendable, Equatable {
  package var packets = 0
  /// Packets that came after their time, twice, or earlier than one before them.
  package var late = 0
  package var duplicates = 0
  package var reordered = 0
  /// Packets that could not be decoded, and that were too many to be played in time.
  package var damaged = 0
  package var skipped = 0
  /// Packets of sources beyond those that are heard, and of codecs that cannot be played.
  package var unheard = 0
  /// Sound that was lost and concealed, recovered from copies, and concealed while its source sent nothing.
  package var lost: Nanoseconds = 0
  package var recovered: Nanoseconds = 0
  package var concealed: Nanoseconds = 0
  /// The longest delay of a jitter buffer now.
  package var delay: Nanoseconds = 0

  package init() {}

  package mutating func add(_ counts: JitterPlayer.Counts, rate: Int) {
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
