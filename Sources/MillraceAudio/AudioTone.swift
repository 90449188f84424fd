public import MillraceCore
internal import MillraceDSP

/// `audio.tone`: generates a test signal.
///
/// - Out `out`: s16 or f32, 8 to 192 kHz, 1 to 8 channels that all carry the same sample. Whatever the graph leaves open (rate,
///   channels, sample) is chosen to suit the consumers, otherwise 48000 Hz, 1 channel, s16.
/// - Sample n depends only on n and the parameters: the same bytes in every run and at every packet length.
/// - Paced (the default): the packet that begins at position p is due p / rate after the first, computed from p and never
///   accumulated. Unpaced: as fast as the graph takes it; a `duration` is required. The last packet may be shorter.
/// - `level` is the peak: a sine of -20 dB has an RMS of -23 dBFS; white noise is about 4.8 dB below `level`, pink about 12.
/// - No latency.
public struct AudioTone: Node {
  public static let contract = NodeContract(
    "audio.tone", "generates a sine, a sweep, noise, impulses or silence",
    text: """
      A sweep goes from `frequency` to `to` logarithmically over `duration`; without a duration it takes 10 s and repeats. \
      Impulses are single samples, `frequency` of them per second. Noise is reproducible by `seed`.
      """,
    outputs: [PortContract("out", AudioLimits.pcm, text: "the signal")],
    parameters: [
      ParameterContract("kind", .choice(Kind.allCases.map(\.rawValue)), default: "sine", text: "the signal"),
      ParameterContract(
        "frequency", .number(0.01...96_000), unit: "Hz",
        text:
          "of a sine (default 1000), at the start of a sweep (default 20), impulses per second (default 1)"),
      ParameterContract("to", .number(0.01...96_000), unit: "Hz", text: "frequency at the end of a sweep"),
      ParameterContract(
        "level", .number(-120...0), unit: "dB", default: -20, text: "peak relative to full scale"),
    ] + ParameterContract.optionalFormat + [
      .frame,
      ParameterContract("duration", .number(0...86_400_000), unit: "ms", text: "duration; default: endless"),
      ParameterContract(
        "pace", .bool, default: true, text: "true: in real time; false: as fast as the graph takes it"),
      ParameterContract("seed", .integer(0...Int(Int32.max)), default: 1, text: "seed of the noise"),
    ],
    budget: 300, drive: .itself,
    examples: [
      #"{ "type": "audio.tone", "frequency": 440 }"#,
      #"{ "type": "audio.tone", "kind": "sweep", "frequency": 50, "to": 7000, "duration": 5000, "rate": 16000 }"#,
      #"{ "type": "audio.tone", "kind": "noise", "duration": 60000, "pace": false }"#,
    ],
    resolve: resolve)

  /// The signals, as the parameter names them.
  private enum Kind: String, CaseIterable {
    case sine, sweep, noise, pink, silence, impulse
  }

  /// Seconds until an endless sweep repeats.
  private static let sweepSeconds = 10.0

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    let (rate, channels, sample) = resolution.sourceFormat()
    let frames = AudioLimits.frames(milliseconds: values.number("frame"), rate: rate)
    resolution.outputs["out"] = .pcm(rate: rate, channels: channels, sample: sample, frames: frames)
    resolution.pacing = values.bool("pace") ? .paced : .waits
    if !values.bool("pace") && !values.has("duration") {
      resolution.refuse(
        "pace", "an unpaced tone without \"duration\" never ends",
        cure: "set \"duration\", or set \"pace\" to true")
    }
    switch Kind(rawValue: values.string("kind")) {
    case .sweep:
      guard values.has("to") else {
        return resolution.refuse("kind", "a sweep needs an end frequency", cure: "set \"to\"")
      }
      check("frequency", frequency(values, absent: 20), rate, &resolution)
      check("to", values.number("to"), rate, &resolution)
    case .sine: check("frequency", frequency(values, absent: 1_000), rate, &resolution)
    default: break
    }
  }

  private static func check(_ name: String, _ hertz: Double, _ rate: Int, _ resolution: inout Resolution) {
    guard hertz * 2 > Double(rate) else { return }
    resolution.refuse(
      name, "\(hertz) Hz is above half the sample rate of \(rate) Hz",
      cure: "set it to \(rate / 2) or less, or raise \"rate\"")
  }

  private static func frequency(_ values: ParameterValues, absent: Double) -> Double {
    values.has("frequency") ? values.number("frequency") : absent
  }

  private static func signal(_ values: ParameterValues, rate: Int, length: Int64?) -> SignalGenerator.Signal {
    switch Kind(rawValue: values.string("kind")) {
    case .sine, nil: return .sine(frequency: frequency(values, absent: 1_000))
    case .sweep:
      let frames = length.map(Int.init) ?? Int(sweepSeconds * Double(rate))
      return .sweep(
        .logarithmic, from: frequency(values, absent: 20), to: values.number("to"), frames: max(frames, 1),
        repeats: length == nil)
    case .noise: return .noise(.white, seed: UInt64(values.integer("seed")))
    case .pink: return .noise(.pink, seed: UInt64(values.integer("seed")))
    case .silence: return .silence
    case .impulse:
      let spacing = (Double(rate) / frequency(values, absent: 1)).rounded()
      return .impulses(everyFrames: max(1, Int(spacing)))
    }
  }

  private let sample: SampleType
  private let frameBytes: Int
  private let frames: Int
  /// Samples in total; nil: endless.
  private let length: Int64?
  private var generator: SignalGenerator
  private var pacer: Pacer

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let shape = setup.outputs[0].shape, case .pcm(let rate, let channels, let sample) = shape.format
    else {
      throw NodeProblem("\"\(setup.name)\" produces audio only")
    }
    let values = setup.parameters
    self.sample = sample
    frameBytes = channels * sample.byteCount
    frames = shape.packetBytes / frameBytes
    length =
      values.has("duration") ? Int64((values.number("duration") * Double(rate) / 1_000).rounded()) : nil
    do {
      generator = try SignalGenerator(
        Self.signal(values, rate: rate, length: length), sampleRate: rate,
        amplitude: Decibels.amplitude(decibels: values.number("level")), channels: channels)
    } catch {
      throw NodeProblem(error.description)
    }
    pacer = Pacer(rate: rate, paces: setup.pacing == .paced)
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let position = generator.position
    let count = min(frames, Int(length.map { $0 - position } ?? .max))
    guard count > 0 else { return .ended }
    if pacer.mustWait(for: position, &ports) { return .done }
    var packet = try ports.makePacket(bytes: count * frameBytes, of: .none)
    packet.timestamp = pacer.time(of: position, now: ports.now)
    packet.position = position
    packet.duration = count
    switch sample {
    case .s16:
      var samples = packet.mutableSamples(of: Int16.self)
      generator.render(into: &samples)
    case .f32:
      var samples = packet.mutableSamples(of: Float.self)
      generator.render(into: &samples)
    }
    ports.emit(packet)
    if generator.position == length { return .ended }
    return pacer.mustWait(for: generator.position, &ports) ? .done : .again
  }
}
