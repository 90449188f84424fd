package import MillraceCore

extension JitterPlayer {
  /// What the packets carry.
  package enum Content: Sendable, Hashable {
    case opus
    /// - Parameter longest: samples per channel of the longest packet; what is beyond is cut off.
    case pcm(SampleType, longest: Int)
  }

  /// How packets are played.
  package struct Settings: Sendable, Hashable {
    /// Fraction of packets to wait for.
    package var quantile: Double
    /// Shortest delay, and longest target delay.
    package var limits: ClosedRange<Nanoseconds>
    /// Uses the copy of a lost Opus packet that the next packet may carry.
    package var recovers: Bool
    /// A source that stops becomes silent. False: its concealment continues, which is comfort noise at best.
    package var fades: Bool

    /// Creates settings; the delay is that of a good network by default.
    package init(
      quantile: Double = 0.97, limits: ClosedRange<Nanoseconds> = 20_000_000...200_000_000,
      recovers: Bool = true, fades: Bool = false
    ) {
      self.quantile = quantile
      self.limits = limits
      self.recovers = recovers
      self.fades = fades
    }
  }

  /// Outcomes of packets and of time, since the start.
  package struct Counts: Sendable, Equatable {
    package var packets = 0
    package var late = 0
    package var duplicates = 0
    package var reordered = 0
    package var damaged = 0
    package var skipped = 0
    /// Frames concealed because they were lost, recovered from copies, and concealed while no packet was there.
    package var lost: Int64 = 0
    package var recovered: Int64 = 0
    package var waited: Int64 = 0
    /// Frames of pauses that their sender did not transmit, beyond those that were waited for.
    package var paused: Int64 = 0
  }

  /// What goes with 10 ms of audio.
  package struct Hop: Sendable, Equatable {
    /// Audio is missing before it.
    package var hasJumped: Bool
    /// The last audio of an utterance is in it.
    package var endsUtterance: Bool
  }
}
