/// Settings of an ``EchoCanceller``, fixed when it is made.
public struct EchoSettings: Sendable, Hashable {
  /// Supported sample rates in Hz.
  public static let rates = [8_000, 16_000, 32_000, 48_000]
  /// Range of the echo tail in milliseconds.
  public static let tails = 32...512
  /// Range of the longest delay in milliseconds.
  public static let delays = 0...500

  /// Sample rate in Hz, one of ``rates``.
  public var rate: Int
  /// Echo tail in milliseconds after its first arrival; a room reverberates for a third to half a second.
  public var tailMilliseconds: Int
  /// Longest delay in milliseconds between the far end and its echo. 0: no search.
  public var longestDelayMilliseconds: Int

  /// Settings for a rate in Hz; the defaults suit a room with computer loudspeakers.
  public init(rate: Int, tailMilliseconds: Int = 256, longestDelayMilliseconds: Int = 500) {
    self.rate = rate
    self.tailMilliseconds = tailMilliseconds
    self.longestDelayMilliseconds = longestDelayMilliseconds
  }
}

/// What may be changed between two blocks of an ``EchoCanceller``.
public struct EchoControls: Sendable, Hashable {
  /// Whether residual echo suppression is on.
  public var suppresses = true
  /// Whether comfort noise replaces what was suppressed.
  public var addsComfortNoise = true
  /// Probability of near-end speech, 0 to 1, from a voice detector; nil: unknown.
  public var voice: Float?

  /// Suppression and comfort noise on; near-end speech unknown.
  public init() {}
}

/// State of an ``EchoCanceller`` after a block.
public struct EchoState: Sendable, Hashable {
  /// Delay of the echo in samples; nil: not found yet.
  public var delay: Int?
  /// False once the microphone certainly does not pick up the loudspeaker: headphones.
  public var hasEcho = true
  /// Clock drift in parts per million by which the echo gets later, as far as known.
  public var driftPPM: Float = 0
  /// True while the filter makes things worse, so that the microphone is used unchanged.
  public var hasDiverged = false
  /// True while the far end is loud enough to be audible.
  public var farIsActive = false
  /// Probability of near-end speech, 0 to 1.
  public var nearActivity: Float = 0
  /// Energy of the microphone in this block; with `outputEnergy` it gives the echo return loss enhancement.
  public var nearEnergy: Float = 0
  /// Energy of the output in this block.
  public var outputEnergy: Float = 0

  /// The state before the first block.
  public init() {}
}
