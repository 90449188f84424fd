internal import CMillraceKernels

/// Converts the sample rate of a stream by any ratio of integer rates: a polyphase FIR low-pass with a Kaiser window.
///
/// - In: interleaved frames, float or 16-bit, in spans of any length. Out: interleaved frames at the other
///   rate.
/// - The output depends on the stream alone: however the input is chunked, the bytes are the same on one machine.
/// - Delay: exactly ``latencyFrames`` input frames, linear phase. See ``Alignment`` for how it is compensated.
/// - Not for clock drift: the ratio is fixed at `init`. Equal rates pass samples unchanged, without delay.
/// - Bad input: a NaN or an infinity affects the outputs within the filter's length and is then forgotten; 16-bit output turns NaN
///   into 0.
///
/// All memory is allocated in `init`, which also computes the coefficients, or finds them (they are shared by all resamplers of the
/// process with the same ratio and quality). Nothing else allocates or locks. One thread at a time.
@safe public struct Resampler: ~Copyable, @unchecked Sendable {
  /// Supported sample rates in Hz.
  public static let rates = 8_000...192_000
  /// Supported channel counts.
  public static let channelCounts = 1...32
  /// Largest coefficient table (4 MiB of floats): 44.1 kHz to 48 kHz needs 12,800.
  public static let maximumCoefficients = 1 << 20

  /// How steep the low-pass is. The delay is half its length: 1 / 2.5 / 5 ms where the lower rate is 16 kHz, and proportionally
  /// shorter where it is higher.
  public enum Quality: String, Sendable, Hashable, CaseIterable {
    /// 16 zero crossings either side. Passes 0.77 of the lower Nyquist band, rejects 70 dB.
    case low
    /// 40 zero crossings either side. Passes 0.88 of the lower Nyquist band, rejects 112 dB.
    case voice
    /// 80 zero crossings either side. Passes 0.93 of the lower Nyquist band, rejects 122 dB.
    case high
  }

  /// Position of the first output.
  public enum Alignment: Sendable, Hashable {
    /// The first input frame already gives output, `latencyFrames` late: output `k` represents the input at frame `k * inputRate /
    /// outputRate - latencyFrames`. After `n` frames there have been ceil(n * L / M) outputs, so 10 ms in is 10 ms out from the
    /// start. For live streams; the timestamp is the input's minus the latency.
    case delayed
    /// Output `k` represents the input at frame `k * inputRate / outputRate`; output starts once `latencyFrames` more frames are
    /// known. Input of `n` frames and a flush give exactly ceil(n * L / M) outputs. For files.
    case compensated
  }

  /// Input rate in Hz.
  public let inputRate: Int
  /// Output rate in Hz.
  public let outputRate: Int
  /// Channels, interleaved in every span.
  public let channels: Int
  /// Steepness of the low-pass.
  public let quality: Quality
  /// Position of the first output.
  public let alignment: Alignment

  let table: ResamplerTable
  /// One row of `capacity` samples per channel. Up to `filled` they hold the newest frames of the stream.
  let history: UnsafeMutablePointer<Float>
  let capacity: Int
  /// Interleaved output before rounding to 16 bits.
  let scratch: UnsafeMutablePointer<Float>
  static let scratchFrames = 256

  var filled: Int
  /// Frames to come before the next output, minus one: 0 means that the very next frame gives an output, -1 that the output had no
  /// room for everything the last frame gave.
  var wait: Int
  /// Fractional position of the next output, in 1 / phases of an input frame.
  var phase: Int
  /// Silent frames that ``flush(into:)`` has yet to feed; nil while the stream runs.
  var flushLeft: Int?

  /// Makes a resampler; allocates, may compute coefficients for some milliseconds, takes a lock. Control side only.
  ///
  /// - Throws: ``ResamplerProblem`` when a rate, the channel count or the ratio is out of bounds.
  public init(
    from inputRate: Int, to outputRate: Int, channels: Int = 1, quality: Quality = .voice,
    alignment: Alignment = .delayed
  ) throws(ResamplerProblem) {
    for rate in [inputRate, outputRate] where !Self.rates.contains(rate) {
      throw .rateOutOfRange(hertz: rate)
    }
    guard Self.channelCounts.contains(channels) else { throw .channelsOutOfRange(channels: channels) }
    table = try ResamplerTable.shared(from: inputRate, to: outputRate, quality: quality)
    self.inputRate = inputRate
    self.outputRate = outputRate
    self.channels = channels
    self.quality = quality
    self.alignment = alignment
    // Room for as many new samples as are kept each time it fills up: each sample is moved once on average.
    capacity = table.tapCount + max(table.tapCount, 512)
    unsafe history = .allocate(capacity: capacity * channels)
    unsafe scratch = .allocate(capacity: Self.scratchFrames * channels)
    unsafe scratch.initialize(repeating: 0, count: Self.scratchFrames * channels)
    (filled, wait, phase) = (0, 0, 0)
    reset()
  }

  deinit {
    unsafe history.deallocate()
    unsafe scratch.deallocate()
  }

  /// Clears the stream: the next frame is the first of a new one.
  public mutating func reset() {
    unsafe history.initialize(repeating: 0, count: capacity * channels)
    filled = table.tapCount
    wait = alignment == .delayed ? 0 : table.lookahead
    phase = 0
    flushLeft = nil
  }

  /// Delay of the filter in input frames, exact.
  public var latencyFrames: Int { table.lookahead }

  /// Delay of the filter in nanoseconds, rounded to nearest.
  public var latencyNanoseconds: Int64 {
    (Int64(table.lookahead) * 1_000_000_000 + Int64(inputRate / 2)) / Int64(inputRate)
  }

  /// Output frames that exactly `frames` more input frames will give from the present state. For 0 input frames it is 0 unless the
  /// output of the last call was too short.
  public func outputCount(forInput frames: Int) -> Int {
    guard frames > wait else { return 0 }
    return ((frames - wait) * table.phases - phase + table.step - 1) / table.step
  }

  /// Most input frames that give no more than `frames` output frames from the present state.
  public func inputCount(forOutput frames: Int) -> Int {
    max(0, wait + (phase + frames * table.step) / table.phases)
  }

  /// Upper bound, at any time, of the output of `frames` input frames. Use it to size output buffers once.
  public func maximumOutputCount(forInput frames: Int) -> Int {
    (frames * table.phases + table.step - 1) / table.step + 1
  }
}
