public import MillraceCore
internal import MillraceDSP

/// `audio.autoGain`: brings speech to one loudness, and never above a ceiling.
///
/// - In `in`, out `out`: s16 or f32, 8 to 192 kHz, 1 to 8 channels; the format stays, all channels get the same gain.
/// - The gain follows the loudness of speech (BS.1770, 400 ms): pauses and steady noise leave it where it is. It moves by at
///   most `fall` and `rise` dB a second, between -20 dB and `maxGain`.
/// - Behind it a limiter looks ahead: what comes out is never above `ceiling`, not by one sample.
/// - Every sample keeps its position and time; late by `lookAhead`. The output begins where the input begins, and what is
///   held at the end, or where the stream breaks, goes out then.
/// - A discontinuity, and the interruption of the reply inside, start afresh, with the gain found so far.
/// - NaN counts as 0, an infinity as the largest float. Lost packets (without bytes) are dropped; the next one starts afresh.
public struct AudioAutoGain: ~Copyable, Node {
  public static let contract = NodeContract(
    "audio.autoGain", "brings speech to one loudness, never above a ceiling",
    text: """
      Loudness is in LUFS, for speech of one voice a few dB above its RMS in dBFS. The ceiling holds for every sample, at \
      once; the gain takes seconds.
      """,
    inputs: [PortContract("in", SoundBounds.pcm, text: "speech at any level")],
    outputs: [PortContract("out", SoundBounds.pcm, text: "the speech at its loudness")],
    parameters: [
      ParameterContract(
        "target", .number(-60...0), unit: "LUFS", default: -20, live: true, text: "loudness to reach"),
      ParameterContract(
        "maxGain", .number(0...60), unit: "dB", default: 24, live: true, text: "highest gain"),
      ParameterContract(
        "fall", .number(0.1...200), unit: "dB/s", default: 12, live: true, text: "how fast the gain falls"),
      ParameterContract(
        "rise", .number(0.1...200), unit: "dB/s", default: 4, live: true, text: "how fast the gain rises"),
      ParameterContract(
        "gate", .number(-120...0), unit: "LUFS", default: -60, live: true,
        text: "sound below this loudness is not measured"),
      ParameterContract(
        "ceiling", .number(-60...0), unit: "dBFS", default: -1, text: "largest magnitude that comes out"),
      ParameterContract(
        "lookAhead", .number(0.5...50), unit: "ms", default: 5,
        text: "how long before a peak the limiter begins; the latency"),
      ParameterContract(
        "release", .number(1...5_000), unit: "ms", default: 100,
        text: "time in which the limiter gives back two thirds"),
      ParameterContract(
        "report", .number(0...60_000), unit: "ms", default: 0,
        text: "sound one `gain` event stands for; 0: none"),
    ],
    events: [
      EventContract(
        "gain",
        text: """
          `gain` in dB, `loudness` of the speech before it in LUFS (`null` while there was none), `limited` the most the \
          limiter took away since the last one, in dB; up to `position` of the input
          """)
    ],
    budget: 400,
    examples: [
      #"{ "type": "audio.autoGain" }"#,
      #"{ "type": "audio.autoGain", "target": -16, "maxGain": 30, "ceiling": -2 }"#,
    ],
    resolve: resolve)

  /// Order of the live parameters in the contract.
  private enum Index {
    static let target = 0
    static let maxGain = 1
    static let fall = 2
    static let rise = 3
    static let gate = 4
  }

  /// Nanoseconds a sample may take.
  private static let sampleBudget = 60

  private static func resolve(_ resolution: inout Resolution) {
    guard var shape = resolution.input, let frames = shape.frames, let rate = shape.format.rate,
      let channels = shape.format.channels
    else { return }
    let latency = SoundBounds.frames(milliseconds: resolution.parameters.number("lookAhead"), rate: rate)
    resolution.latency = .samples(Int64(latency), rate: rate)
    resolution.budget = 100 + frames * channels * sampleBudget / 1_000
    shape.burst = LateStream<GainStage>.burst(latency: latency, frames: frames)
    resolution.outputs["out"] = shape
  }

  private var stream: LateStream<GainStage>
  private var reply = HeldReply()
  /// Frames an event stands for, and frames since the last one.
  private let interval: Int
  private let frameBytes: Int
  private var since = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let shape = setup.inputs[0].shape, case .pcm(let rate, let channels, _) = shape.format,
      let frameBytes = shape.format.frameBytes
    else { throw NodeProblem("\"\(setup.name)\" takes sound only") }
    let values = setup.parameters
    stream = LateStream(GainStage(rate: rate, channels: channels, values), shape: shape)
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
    if reply.isVoid(at: ports.generation) { stream.forget() }
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

/// The gain and the limiter behind it.
struct GainStage: ~Copyable, SoundStage {
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
      lookAhead: SoundBounds.frames(milliseconds: values.number("lookAhead"), rate: rate),
      release: SoundBounds.frames(milliseconds: values.number("release"), rate: rate))
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

  /// The most the limiter took away since the last question, in dB.
  mutating func takeReduction() -> Double {
    defer { lowest = 1 }
    return -Decibels.decibels(amplitude: lowest)
  }
}
