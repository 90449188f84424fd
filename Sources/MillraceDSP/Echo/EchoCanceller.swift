/// Removes the sound of a loudspeaker from that of a microphone.
///
/// - In: microphone and far end (what the loudspeaker plays), in blocks of 8 ms at 8, 16, 32 or 48 kHz. Out: the microphone
///   without the far end's echo, ``latencyFrames`` late: 8 ms, and 10 ms above 16 kHz.
/// - The echo may come up to half a second after the far end; where it begins is found and followed (``EchoState/delay``).
/// - Above 16 kHz the lower 8 kHz are cancelled and the band above follows the suppressor's gain. Where nothing is suppressed
///   the sound passes as it came, to the rounding of a float.
/// - Not for music production or several microphones, nor for a far end with more than one channel.
/// - Bad input: NaN, infinities and samples beyond eight times full scale count as 0. Clipping costs depth, nothing else. A
///   filter that does harm is thrown away and learns anew.
///
/// All memory is taken in `init`, about 500 KB at 16 kHz; a block takes neither heap nor lock. One thread at a time.
@safe public struct EchoCanceller: ~Copyable {
  /// Frames in a block: 8 ms.
  public let blockFrames: Int
  /// Frames by which the output is late.
  public let latencyFrames: Int
  /// Frames in a block at a rate.
  public static func blockFrames(rate: Int) -> Int { rate / 125 }

  /// Frames by which the output is late at a rate of ``EchoSettings/rates``: a block, and above 16 kHz the filters of the split.
  public static func latencyFrames(rate: Int) -> Int {
    blockFrames(rate: rate) + BandSplit.delayFrames(rate: rate, lowRate: min(rate, 16_000))
  }

  /// What is known after the newest block.
  public var state: EchoState {
    var state = core.state
    state.delay = state.delay.map { $0 * ratio }
    return state
  }

  private let ratio: Int
  private var core: EchoCore
  private var bands: BandSplit?
  private let near: FloatStore
  private let far: FloatStore
  private let output: FloatStore

  /// Makes a canceller; `settings.rate` is one of ``EchoSettings/rates``, other values are held within bounds. Control side only.
  public init(_ settings: EchoSettings) {
    precondition(EchoSettings.rates.contains(settings.rate), "no such rate")
    var settings = settings
    settings.tailMilliseconds = min(
      max(settings.tailMilliseconds, EchoSettings.tails.lowerBound), EchoSettings.tails.upperBound)
    settings.longestDelayMilliseconds = min(
      max(settings.longestDelayMilliseconds, 0), EchoSettings.delays.upperBound)
    let low = min(settings.rate, 16_000)
    ratio = settings.rate / low
    blockFrames = Self.blockFrames(rate: settings.rate)
    core = EchoCore(rate: low, settings: settings)
    near = FloatStore(core.block)
    far = FloatStore(core.block)
    output = FloatStore(core.block)
    bands = ratio > 1 ? BandSplit(rate: settings.rate, lowRate: low, blockFrames: blockFrames) : nil
    latencyFrames = Self.latencyFrames(rate: settings.rate)
  }

  /// Takes a block of ``blockFrames`` samples of each stream and writes as many of the cleaned one.
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
        near[index] = EchoCanceller.sane(nearBlock[index])
        far[index] = EchoCanceller.sane(farBlock[index])
      }
    }
    core.process(near: near, far: far, controls: controls, into: output)
    if bands != nil {
      bands?.join(low: output, upperGain: core.upperGain, into: &cleaned)
    } else {
      for index in 0..<blockFrames { cleaned[index] = output[index] }
    }
  }

  /// The sample, or 0 where it is no sound.
  static func sane(_ sample: Float) -> Float { abs(sample) <= 8 ? sample : 0 }
}
