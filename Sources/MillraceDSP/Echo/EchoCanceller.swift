/// Acoustic echo canceller: removes the loudspeaker's signal from the microphone's.
///
/// - In: microphone and far end (what the loudspeaker plays), in blocks of 8 ms at 8, 16, 32 or 48 kHz. Out: the microphone without
///   the far end's echo, ``latencyFrames`` late: 8 ms, and 10 ms above 16 kHz.
/// - The echo may arrive up to half a second after the far end; its delay is found and tracked (``EchoState/delay``).
/// - Above 16 kHz the lower 8 kHz are cancelled, and the band above follows the suppressor's gain. Where nothing is suppressed the
///   signal passes unchanged, to float rounding.
/// - Not for music production, several microphones, or a far end with more than one channel.
/// - Bad input: NaN, infinities and samples beyond eight times full scale count as 0. Clipping reduces the depth, nothing else. A
///   diverged filter is discarded and learns again.
///
/// All memory is allocated in `init`, about 500 KB at 16 kHz; a block takes neither heap nor lock. One thread at a time.
@safe public struct EchoCanceller: ~Copyable {
  /// Frames in a block: 8 ms.
  public let blockFrames: Int
  /// Output latency in frames.
  public let latencyFrames: Int
  /// Frames in a block at a given rate.
  public static func blockFrames(rate: Int) -> Int { rate / 125 }

  /// Output latency in frames at one of ``EchoSettings/rates``: a block, plus the band-split filters above 16 kHz.
  public static func latencyFrames(rate: Int) -> Int {
    blockFrames(rate: rate) + BandSplit.delayFrames(rate: rate, lowRate: min(rate, 16_000))
  }

  /// The state after the newest block.
  public var state: EchoState {
    var state = core.state
    state.delay = state.delay.map { $0 * ratio }
    return state
  }

  private let ratio: Int
  private var core: EchoCore
  private var bands: BandSplit?
  private let near: FloatBuffer
  private let far: FloatBuffer
  private let output: FloatBuffer

  /// Makes a canceller. `settings.rate` must be one of ``EchoSettings/rates``; other values are clamped. Control side only.
  public init(_ settings: EchoSettings) {
    precondition(EchoSettings.rates.contains(settings.rate), "unsupported rate")
    var settings = settings
    settings.tailMilliseconds = min(
      max(settings.tailMilliseconds, EchoSettings.tails.lowerBound), EchoSettings.tails.upperBound)
    settings.longestDelayMilliseconds = min(
      max(settings.longestDelayMilliseconds, 0), EchoSettings.delays.upperBound)
    let low = min(settings.rate, 16_000)
    ratio = settings.rate / low
    blockFrames = Self.blockFrames(rate: settings.rate)
    core = EchoCore(rate: low, settings: settings)
    near = FloatBuffer(core.block)
    far = FloatBuffer(core.block)
    output = FloatBuffer(core.block)
    bands = ratio > 1 ? BandSplit(rate: settings.rate, lowRate: low, blockFrames: blockFrames) : nil
    latencyFrames = Self.latencyFrames(rate: settings.rate)
  }

  /// Takes a block of ``blockFrames`` samples of each stream and writes as many cleaned ones.
  public mutating func process(
    near nearBlock: Span<Float>, far farBlock: Span<Float>, controls: EchoControls = EchoControls(),
    into cleaned: inout MutableSpan<Float>
  ) {
    precondition(
      nearBlock.count == blockFrames && farBlock.count == blockFrames && cleaned.count == blockFrames,
      "a block has blockFrames samples")
    if bands != nil {
      bands?.take(near: nearBlock, far: farBlock, nearLow: near, farLow: far)
    } else {
      for index in 0..<blockFrames {
        near[index] = EchoCanceller.sanitized(nearBlock[index])
        far[index] = EchoCanceller.sanitized(farBlock[index])
      }
    }
    core.process(near: near, far: far, controls: controls, into: output)
    if bands != nil {
      bands?.join(low: output, upperGain: core.upperGain, into: &cleaned)
    } else {
      for index in 0..<blockFrames { cleaned[index] = output[index] }
    }
  }

  /// The sample, or 0 if it is not valid audio.
  static func sanitized(_ sample: Float) -> Float { abs(sample) <= 8 ? sample : 0 }
}
