public import MillraceCore
internal import MillraceDSP

/// `audio.autoGain`: brings speech to a target loudness, and never above a ceiling.
///
/// - In `in`, out `out`: s16 or f32, 8 to 192 kHz, 1 to 8 channels; the format is kept, all channels get the same gain.
/// - The gain follows the loudness of speech (BS.1770, 400 ms); pauses and steady noise do not change it. It changes by at most
///   `fall` and `rise` dB per second, between -20 dB and `maxGain`.
/// - A look-ahead limiter follows: no output sample exceeds `ceiling`.
/// - Every sample keeps its position and time; latency `lookAhead`. Output begins where the input begins; what is held at the end, or
///   at a break in the stream, is emitted then.
/// - A discontinuity, or an interruption of the reply being processed, restarts the node with the present gain.
/// - NaN counts as 0, infinity as the largest float. Lost packets (without bytes) are dropped; the next one restarts the node.
public struct AudioAutoGain: ~Copyable, Node {
  public static let contract = NodeContract(
    "audio.autoGain", "brings speech to a target loudness, never above a ceiling",
    text: """
      Loudness is in LUFS, which for a single voice is a few dB above its RMS in dBFS. The ceiling holds for every sample at \
      once; the gain takes seconds to adapt.
      """,
    inputs: [PortContract("in", AudioLimits.pcm, text: "speech at any level")],
    outputs: [PortContract("out", AudioLimits.pcm, text: "the speech at the target loudness")],
    parameters: [
      ParameterContract(
        "target", .number(-60...0), unit: "LUFS", default: -20, live: true, text: "target loudness"),
      ParameterContract(
        "maxGain", .number(0...60), unit: "dB", default: 24, live: true, text: "highest gain"),
      ParameterContract(
        "fall", .number(0.1...200), unit: "dB/s", default: 12, live: true, text: "how fast the gain falls"),
      ParameterContract(
        "rise", .number(0.1...200), unit: "dB/s", default: 4, live: true, text: "how fast the gain rises"),
      ParameterContract(
        "gate", .number(-120...0), unit: "LUFS", default: -60, live: true,
        text: "audio below this loudness is not measured"),
      ParameterContract(
        "ceiling", .number(-60...0), unit: "dBFS", default: -1, text: "largest output magnitude"),
      ParameterContract(
        "lookAhead", .number(0.5...50), unit: "ms", default: 5,
        text: "how far ahead the limiter looks for peaks; the latency"),
      ParameterContract(
        "release", .number(1...5_000), unit: "ms", default: 100,
        text: "time in which the limiter recovers two thirds of a reduction"),
      ParameterContract(
        "report", .number(0...60_000), unit: "ms", default: 0,
        text: "audio per `gain` event; 0: no events"),
    ],
    events: [
      EventContract(
        "gain",
        text: """
          `gain` in dB; `loudness` of the speech before the gain in LUFS, `null` if there was none; `limited`: largest \
          reduction by the limiter since the last event, in dB; up to `position` of the input
          """)
    ],
    budget: 400,
    examples: [
      #"{ "type": "audio.autoGain" }"#,
      #"{ "type": "audio.autoGain", "target": -16, "maxGain": 30, "ceiling": -2 }"#,
    ],
    resolve: resolve)

  /// Indices of the live parameters in the contract.
  private enum Index {
    static let target = 0
    static let maxGain = 1
    static let fall = 2
    static let rise = 3
    static let gate = 4
  }

  /// Budget per sample in nanoseconds.
  private static let sampleBudget = 60

  private static func resolve(_ resolution: inout Resolution) {
    guard var shape = resolution.input, let frames = shape.frames, let rate = shape.format.rate,
      let channels = shape.format.channels
    else { return }
    let latency = AudioLimits.frames(milliseconds: resolution.parameters.number("lookAhead"), rate: rate)
    resolution.latency = .samples(Int64(latency), rate: rate)
    resolution.budget = 100 + frames * channels * sampleBudget / 1_000
    shape.burst = DelayedStream<GainStage>.burst(latency: latency, frames: frames)
    resolution.outputs["out"] = shape
  }

  private var stream: DelayedStream<GainStage>
  private var reply = HeldReply()
  /// Frames per event, and frames since the last one.
  private let interval: Int
  private let frameBytes: Int
  private var since = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let shape = setup.inputs[0].shape, case .pcm(let rate, let channels, _) = shape.format,
      let frameBytes = shape.format.frameBytes
    else { throw NodeProblem("\"\(setup.name)\" takes audio only") }
    let values = setup.parameters
    stream = DelayedStream(GainStage(rate: rate, channels: channels, values), shape: shape)
    interval = Int((values.number("report") * Double(rate) / 1_000).rounded())
    self.frameBytes = frameBytes
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    reply.follow(packet)
    let frames = Int(packet.byteCount) / frameBytes
    let end = packet.position &+ Int64(frames)
    try stream.process(packet, &ports)
    report(frames, end: end, &ports)
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try stream.flush(&ports)
    return .ended
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .set(let parameter, let value) = message else { return }
    let number = value.asNumber
    switch parameter {
    case Index.target: stream.stage.gain.settings.target = number
    case Index.maxGain: stream.stage.gain.settings.mostGain = number
    case Index.fall: stream.stage.gain.settings.fall = number
    case Index.rise: stream.stage.gain.settings.rise = number
    case Index.gate: stream.stage.gain.settings.gate = number
    default: break
    }
  }

  public mutating func interrupted(_ ports: inout Ports) {
    if reply.isStale(at: ports.generation) { stream.forget() }
  }

  private mutating func report(_ frames: Int, end: Int64, _ ports: inout Ports) {
    guard interval > 0 else { return }
    since += frames
    guard since >= interval else { return }
    since = 0
    let (gain, loudness) = (stream.stage.gain.decibels, stream.stage.gain.loudness)
    let limited = stream.stage.takeReduction()
    ports.post(0) { event in
      event.field("position", Int(end))
      event.field("gain", gain, decimals: 2)
      event.field("loudness", loudness ?? .nan, decimals: 2)
      event.field("limited", limited, decimals: 2)
    }
  }
}

/// The automatic gain followed by the limiter.
struct GainStage: ~Copyable, AudioStage {
  var gain: AutomaticGain
  private var limiter: Limiter
  private var lowest = 1.0

  init(rate: Int, channels: Int, _ values: ParameterValues) {
    gain = AutomaticGain(
      rate: rate, channels: channels,
      settings: .init(
        target: values.number("target"), mostGain: values.number("maxGain"), fall: values.number("fall"),
        rise: values.number("rise"), gate: values.number("gate")))
    limiter = Limiter(
      channels: channels, ceiling: Decibels.amplitude(decibels: values.number("ceiling")),
      lookAhead: AudioLimits.frames(milliseconds: values.number("lookAhead"), rate: rate),
      release: AudioLimits.frames(milliseconds: values.number("release"), rate: rate))
  }

  var latencyFrames: Int { limiter.latencyFrames }

  mutating func reset() {
    gain.reset()
    limiter.reset()
  }

  mutating func process(_ samples: inout MutableSpan<Float>) {
    gain.process(&samples)
    lowest = min(lowest, limiter.process(&samples))
  }

  /// Largest reduction by the limiter since the last call, in dB.
  mutating func takeReduction() -> Double {
    defer { lowest = 1 }
    return -Decibels.decibels(amplitude: lowest)
  }
}
