internal import MillraceCore
internal import MillraceDSP

/// Splits a stream of any PCM format into steps of 32 ms and returns the probability of speech in each.
///
/// One channel, the mean of all, is resampled to the detector's rate: 8 kHz for audio at 8 kHz, 16 kHz for any other. All memory is
/// allocated in `init`.
@safe
struct SpeechDetector: ~Copyable {
  /// The result of one step, at positions of the input.
  struct Step {
    var probability: Float
    /// The talker seems to have paused.
    var mayEnd: Bool
    var from: Int64
    var to: Int64
  }

  private let rate: Int
  private let modelRate: Int
  private var form: FormatConverter
  /// nil: the input has the detector's rate.
  private var resampler: Resampler?
  /// nil: the engine is `energy`.
  private var network: SileroNetwork?
  private var energy: EnergyDetector
  private var hint: PauseHint
  private var band: SpeechBand

  /// The last packet as one channel, its length, and how much of it has been used.
  private let mono: UnsafeMutableBufferPointer<Float>
  private var taken = 0
  private var used = 0
  /// The step being filled.
  private let step: UnsafeMutableBufferPointer<Float>
  private let stepSamples: Int
  private var filled = 0
  /// Position of the stream's start, and steps since.
  private var start: Int64 = 0
  private var steps: Int64 = 0
  /// Position after the newest sample; nil before the first.
  private(set) var end: Int64?

  /// The detector's rate for audio at a rate.
  static func modelRate(for rate: Int) -> Int { rate == 8_000 ? 8_000 : 16_000 }

  /// Most steps that a packet completes.
  static func steps(in frames: Int, rate: Int) -> Int { frames * 1_000 / (rate * 32) + 2 }

  /// Makes a detector for packets of up to `longest` samples per channel; without weights it uses the level.
  init(_ format: Format, longest: Int, weights: SileroWeights?) throws(NodeProblem) {
    guard case .pcm(let rate, _, _) = format else { fatalError("only audio can be analysed") }
    self.rate = rate
    modelRate = Self.modelRate(for: rate)
    form = FormatConverter(
      from: format, to: .pcm(rate: rate, channels: 1, sample: .f32), matrix: nil, longest: longest)
    do {
      resampler = rate == modelRate ? nil : try Resampler(from: rate, to: modelRate, alignment: .compensated)
    } catch { throw NodeProblem(error.description) }
    if let weights { network = SileroNetwork(weights) } else { network = nil }
    band = SpeechBand(rate: modelRate)
    let block = Double(band.blockSamples) * 1_000 / Double(modelRate)
    energy = EnergyDetector(every: block)
    hint = PauseHint(every: block)
    unsafe mono = .allocate(capacity: longest)
    unsafe mono.initialize(repeating: 0)
    stepSamples = modelRate * 32 / 1_000
    unsafe step = .allocate(capacity: stepSamples)
    unsafe step.initialize(repeating: 0)
  }

  deinit {
    unsafe mono.deallocate()
    unsafe step.deallocate()
  }

  /// Takes a packet, which follows the last one unless `restart` was called; then call `next` until it returns nil.
  mutating func take(_ packet: borrowing Packet) {
    taken = Int(packet.byteCount) / form.inputFrameBytes
    used = 0
    if end == nil { start = packet.position }
    end = (end ?? packet.position) &+ Int64(taken)
    unsafe UnsafeMutableRawBufferPointer(mono.extracting(0..<taken)).withMemoryRebound(to: UInt8.self) {
      raw in
      var bytes = unsafe MutableSpan(_unsafeElements: raw)
      form.convert(packet, into: &bytes)
    }
  }

  /// The next step of the audio taken; nil when the rest is too short.
  mutating func next() -> Step? {
    while filled < stepSamples {
      guard fill() else { return nil }
    }
    filled = 0
    let from = start &+ position(of: steps)
    steps &+= 1
    var result = Step(probability: 0, mayEnd: false, from: from, to: start &+ position(of: steps))
    listen(&result)
    return result
  }

  /// Marks a break: the next packet does not follow the last. The noise floor is kept.
  mutating func restart() {
    (taken, used, filled, steps, end) = (0, 0, 0, 0, nil)
    network?.reset()
    resampler?.reset()
    band.reset()
  }

  /// Moves audio into the step; false if there is none.
  private mutating func fill() -> Bool {
    let input = unsafe Span(_unsafeElements: mono.extracting(used..<taken))
    var room = unsafe MutableSpan(_unsafeElements: step.extracting(filled..<stepSamples))
    guard resampler != nil else {
      let count = min(input.count, room.count)
      for index in 0..<count { room[index] = input[index] }
      used += count
      filled += count
      return count > 0
    }
    let progress = resampler!.process(input, into: &room)
    used += progress.consumed
    filled += progress.produced
    return progress.consumed + progress.produced > 0
  }

  private mutating func listen(_ result: inout Step) {
    let samples = unsafe Span(_unsafeElements: step)
    var loudest: Float = 0
    for offset in stride(from: 0, to: samples.count, by: band.blockSamples) {
      let level = band.level(samples.extracting(offset..<offset + band.blockSamples))
      loudest = max(loudest, energy.probability(level))
      if hint.take(level) { result.mayEnd = true }
    }
    result.probability = network?.probability(samples) ?? loudest
  }

  /// Input samples in `steps` steps, rounded down.
  private func position(of steps: Int64) -> Int64 {
    let samples = steps &* Int64(stepSamples)
    return samples / Int64(modelRate) &* Int64(rate)
      &+ samples % Int64(modelRate) &* Int64(rate) / Int64(modelRate)
  }
}
