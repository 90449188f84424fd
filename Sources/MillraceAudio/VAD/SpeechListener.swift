internal import MillraceCore
internal import MillraceDSP

/// Hears a stream of any PCM format in steps of 32 ms and says how likely each holds speech.
///
/// One channel, the mean of all, is brought to the rate of the detector: 8 kHz for sound at 8 kHz, 16 kHz for any other. All
/// memory is taken in `init`.
@safe
struct SpeechListener: ~Copyable {
  /// What was heard in one step, at positions of the input.
  struct Step {
    var probability: Float
    /// The voice seems to have paused.
    var mayEnd: Bool
    var from: Int64
    var to: Int64
  }

  private let rate: Int
  private let modelRate: Int
  private var form: SampleForm
  /// nil: the input has the detector's rate.
  private var resampler: Resampler?
  /// nil: the engine is `energy`.
  private var network: SileroNetwork?
  private var energy: EnergyDetector
  private var hint: PauseHint
  private var band: SpeechBand

  /// The packet taken last, one channel, and how much of it has been used.
  private let mono: UnsafeMutableBufferPointer<Float>
  private var taken = 0
  private var used = 0
  /// The step that is being filled.
  private let step: UnsafeMutableBufferPointer<Float>
  private let stepSamples: Int
  private var filled = 0
  /// Position of the stream's start, and steps since.
  private var start: Int64 = 0
  private var steps: Int64 = 0
  /// Position after the newest sample; nil before the first.
  private(set) var end: Int64?

  /// The rate at which sound of a rate is heard.
  static func modelRate(for rate: Int) -> Int { rate == 8_000 ? 8_000 : 16_000 }

  /// Most steps that a packet of so many samples completes.
  static func steps(in frames: Int, rate: Int) -> Int { frames * 1_000 / (rate * 32) + 2 }

  /// Makes a listener for packets of up to `longest` samples per channel; without weights it goes by loudness.
  init(_ format: Format, longest: Int, weights: SileroWeights?) throws(NodeProblem) {
    guard case .pcm(let rate, _, _) = format else { fatalError("only sound can be heard") }
    self.rate = rate
    modelRate = Self.modelRate(for: rate)
    form = SampleForm(
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

  /// Takes a packet's sound, which follows what was taken before unless `restart` was called; then ask `next` until it is nil.
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

  /// The next step of what was taken; nil when the rest is too short for one.
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

  /// What comes next does not follow what came last. The floor of the noise stays known.
  mutating func restart() {
    (taken, used, filled, steps, end) = (0, 0, 0, 0, nil)
    network?.reset()
    resampler?.reset()
    band.reset()
  }

  /// Moves sound into the step; false when there is none.
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

  /// Input samples that so many steps stand for, rounded down.
  private func position(of steps: Int64) -> Int64 {
    let samples = steps &* Int64(stepSamples)
    return samples / Int64(modelRate) &* Int64(rate)
      &+ samples % Int64(modelRate) &* Int64(rate) / Int64(modelRate)
  }
}
