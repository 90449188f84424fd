internal import Glibc

/// Automatic gain control for speech: slow, gated, driven by the audio itself rather than a clock.
///
/// Loudness is measured as in ITU-R BS.1770-4: K-weighted over 400 ms, every 100 ms, over all channels. A measurement counts when it
/// is above an absolute gate and 8 dB above the floor of ``NoiseFloor``: pauses and steady noise neither raise nor lower the gain.
/// The gain changes at a limited rate in dB per second, down faster than up, and stays between limits.
///
/// `init` allocates all memory; nothing else allocates or locks. One thread at a time.
public struct AutomaticGain: ~Copyable, Sendable {
  /// Settings; may be changed at any time.
  public struct Settings: Sendable, Equatable {
    /// Target loudness in LUFS.
    public var target: Double
    /// Highest gain in dB.
    public var mostGain: Double
    /// Lowest gain in dB.
    public var leastGain: Double
    /// How fast the gain falls, in dB per second.
    public var fall: Double
    /// How fast it rises, in dB per second.
    public var rise: Double
    /// Blocks below this loudness, in LUFS, are not measured.
    public var gate: Double

    /// Settings; the defaults suit a voice on its way to a service.
    public init(
      target: Double = -20, mostGain: Double = 24, leastGain: Double = -20, fall: Double = 12,
      rise: Double = 4,
      gate: Double = -60
    ) {
      self.target = target
      self.mostGain = mostGain
      self.leastGain = leastGain
      self.fall = fall
      self.rise = rise
      self.gate = gate
    }
  }

  /// Blocks in a window of 400 ms, and milliseconds between two measurements.
  private static let blocks = 4
  private static let interval = 100.0
  /// dB above the noise floor from which a block is speech.
  private static let aboveFloor = 8.0
  /// Weight of a new measurement: a time constant of half a second.
  private static let weight = 0.2

  /// Present settings; may be changed between two calls.
  public var settings: Settings
  /// Measured loudness in LUFS before the gain; nil until something was measured.
  public private(set) var loudness: Double?
  /// Present gain in dB.
  public private(set) var decibels = 0.0

  private let channels: Int
  private let blockFrames: Int
  private var filters: [KWeighting]
  private var powers = InlineArray<4, Double>(repeating: 0)
  private var block = 0
  private var sum = 0.0
  private var measured = 0
  private var floor = NoiseFloor(every: interval)
  /// Ramp from the gain at the start of the next block to that at its end.
  private var ramp = GainRamp()

  /// Makes a gain of 0 dB for interleaved frames of `channels` samples at `rate` Hz.
  public init(rate: Int, channels: Int, settings: Settings = Settings()) {
    self.settings = settings
    self.channels = channels
    blockFrames = rate / 10
    filters = (0..<channels).map { _ in KWeighting(rate: rate) }
  }

  /// Clears the stream but keeps the gain: the next stream is probably as loud.
  public mutating func reset() {
    for channel in filters.indices { filters[channel].reset() }
    powers = InlineArray(repeating: 0)
    (sum, measured) = (0, 0)
  }

  /// Measures interleaved frames and applies the gain in place. NaN counts as 0.
  public mutating func process(_ samples: inout MutableSpan<Float>) {
    var start = 0
    while start < samples.count {
      let frames = min(blockFrames - measured, (samples.count - start) / channels)
      guard frames > 0 else { return }
      var piece = samples._mutatingExtracting(start..<start + frames * channels)
      measure(&piece)
      ramp.apply(to: &piece, channels: channels)
      start += frames * channels
      measured += frames
      if measured == blockFrames { conclude() }
    }
  }

  private mutating func measure(_ samples: inout MutableSpan<Float>) {
    for channel in 0..<channels {
      for index in stride(from: channel, to: samples.count, by: channels) {
        if samples[index].isNaN { samples[index] = 0 }
        let weighted = filters[channel].filter(Double(max(-8, min(8, samples[index]))))
        sum += weighted * weighted
      }
    }
  }

  /// Ends a block of 100 ms: measures it, and sets the target gain for the end of the next one.
  private mutating func conclude() {
    powers[block % Self.blocks] = sum / Double(blockFrames)
    // Uses the last 100 ms alone, where the gaps between words show.
    let quietest = floor.follow(Self.loudness(of: powers[block % Self.blocks]))
    block += 1
    (sum, measured) = (0, 0)
    var power = 0.0
    for index in 0..<Self.blocks { power += powers[index] / Double(Self.blocks) }
    let now = Self.loudness(of: power)
    if now > settings.gate && now > quietest + Self.aboveFloor {
      loudness = loudness.map { $0 + (now - $0) * Self.weight } ?? now
    }
    guard let loudness else { return }
    let wanted = max(settings.leastGain, min(settings.mostGain, settings.target - loudness))
    let seconds = Self.interval / 1_000
    decibels += max(-settings.fall * seconds, min(settings.rise * seconds, wanted - decibels))
    ramp.ramp(to: Decibels.amplitude(decibels: decibels), frames: blockFrames)
  }

  /// Weighted power in LUFS. BS.1770-4: a full-scale sine of 997 Hz in one channel is -3.01.
  private static func loudness(of power: Double) -> Double {
    max(Decibels.decibels(power: power) - 0.691, Decibels.floor)
  }
}

/// K-weighting of BS.1770-4: a shelf that models the head, and a high-pass. Coefficients for any rate by the bilinear transform of
/// the analogue prototype behind the standard's 48 kHz table.
struct KWeighting: Sendable {
  private var shelf: Section
  private var highPass: Section

  init(rate: Int) {
    // Frequency, Q and gain of the prototype: derived from the table by libebur128 (MIT).
    let gain = pow(10, 3.999843853973347 / 20)
    shelf = Section(frequency: 1_681.974450955533, quality: 0.7071752369554196, rate: rate) { k, q in
      (
        gain + pow(gain, 0.4996667741545416) * k / q + k * k, 2 * (k * k - gain),
        gain - pow(gain, 0.4996667741545416) * k / q + k * k
      )
    }
    highPass = Section(frequency: 38.13547087602444, quality: 0.5003270373238773, rate: rate) { k, q in
      let scale = 1 + k / q + k * k
      return (scale, -2 * scale, scale)
    }
  }

  mutating func filter(_ input: Double) -> Double { highPass.filter(shelf.filter(input)) }

  mutating func reset() {
    shelf.reset()
    highPass.reset()
  }

  /// A second-order filter in double precision: at 192 kHz the high-pass lies at 0.0002 of the rate.
  struct Section: Sendable {
    private let gains: (Double, Double, Double)
    private let feedback: (Double, Double)
    private var first = 0.0
    private var second = 0.0

    init(
      frequency: Double, quality: Double, rate: Int,
      _ numerator: (_ k: Double, _ q: Double) -> (Double, Double, Double)
    ) {
      let k = tan(Double.pi * frequency / Double(rate))
      let scale = 1 / (1 + k / quality + k * k)
      let zeros = numerator(k, quality)
      gains = (zeros.0 * scale, zeros.1 * scale, zeros.2 * scale)
      feedback = (2 * (k * k - 1) * scale, (1 - k / quality + k * k) * scale)
    }

    mutating func filter(_ input: Double) -> Double {
      let output = gains.0 * input + first
      first = gains.1 * input - feedback.0 * output + second
      second = gains.2 * input - feedback.1 * output
      return output
    }

    mutating func reset() { (first, second) = (0, 0) }
  }
}
