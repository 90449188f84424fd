/// What an ``EchoCanceller`` is made for.
public struct EchoSettings: Sendable, Hashable {
  /// Rates it works at, in Hz.
  public static let rates = [8_000, 16_000, 32_000, 48_000]
  /// Milliseconds of echo the filter can hold, and the longest delay it looks for.
  public static let tails = 32...512
  /// Milliseconds that the longest delay may be.
  public static let delays = 0...500

  /// Sample rate in Hz, one of ``rates``.
  public var rate: Int
  /// Milliseconds of echo after its first sound; a room rings a third to half a second.
  public var tailMilliseconds: Int
  /// Longest delay in milliseconds between the far end and its echo. 0: none is looked for.
  public var longestDelayMilliseconds: Int

  /// Settings for a rate in Hz; the rest suits a room with loudspeakers of a computer.
  public init(rate: Int, tailMilliseconds: Int = 256, longestDelayMilliseconds: Int = 500) {
    self.rate = rate
    self.tailMilliseconds = tailMilliseconds
    self.longestDelayMilliseconds = longestDelayMilliseconds
  }
}

/// What may be changed between two blocks of an ``EchoCanceller``.
public struct EchoControls: Sendable, Hashable {
  /// Whether what the filter leaves is suppressed.
  public var suppresses = true
  /// Whether noise like the background's stands in for what was suppressed.
  public var addsComfortNoise = true
  /// How likely somebody at the near end speaks, 0 to 1, from a voice detector; nil: not known.
  public var voice: Float?

  /// Suppression and comfort noise, and nothing known of a voice.
  public init() {}
}

/// What an ``EchoCanceller`` knows after a block.
public struct EchoState: Sendable, Hashable {
  /// Delay in samples at which the far end is looked at; nil: none found yet.
  public var delay: Int?
  /// False once it is sure that the microphone does not hear the loudspeaker: headphones.
  public var hasEcho = true
  /// Parts per million by which the echo runs late against the far end, as far as known: the clocks differ.
  public var driftPPM: Float = 0
  /// True while the filter makes things worse, so that the microphone is used as it is.
  public var hasDiverged = false
  /// True while the far end is loud enough to be heard.
  public var farIsActive = false
  /// How sure it is, 0 to 1, that somebody at the near end speaks.
  public var nearActivity: Float = 0
  /// Energy of microphone and output in this block, to reckon the echo return loss enhancement from.
  public var nearEnergy: Float = 0
  /// Energy of the output.
  public var outputEnergy: Float = 0

  /// Before the first block.
  public init() {}
}
