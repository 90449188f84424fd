public import MillraceCore
internal import MillraceDSP

/// `audio.denoise`: reduces steady noise in speech.
///
/// - In `in`, out `out`: s16 or f32, 8 to 48 kHz, 1 to 8 channels; the format is kept, each channel is processed independently.
/// - Engine `wiener`: Millrace's own suppressor, latency 32 ms at 8, 16 and 32 kHz and 21 ms at 48; engine `speex`: libspeexdsp's,
///   latency 20 ms.
/// - Every sample keeps its position and time: output begins where the input begins; what is held at the end, or at a break in the
///   stream, is emitted then.
/// - A discontinuity restarts the suppressor; so does an interruption of the reply being processed.
/// - `reduction` limits the noise reduction and can be changed at run time.
/// - NaN counts as 0. Lost packets (without bytes) are dropped; the next one restarts the suppressor.
public struct AudioDenoise: ~Copyable, Node {
  public static let contract = NodeContract(
    "audio.denoise", "reduces steady noise in speech",
    text: """
      For listeners, and for recognisers that were not trained on noise. Many were, and do worse after any suppressor: try \
      with and without. It does not remove voices, music or clatter.
      """,
    inputs: [PortContract("in", pcm, text: "speech with noise")],
    outputs: [PortContract("out", pcm, text: "the speech with less noise")],
    parameters: [
      ParameterContract(
        "engine", .choice(["wiener", "speex"]), default: "wiener",
        text: "wiener: Millrace's own; speex: libspeexdsp's, with less latency and less quality"),
      ParameterContract(
        "reduction", .number(0...60), unit: "dB", default: 25, live: true,
        text: "largest noise reduction"),
    ],
    budget: 400,
    examples: [
      #"{ "type": "audio.denoise" }"#, #"{ "type": "audio.denoise", "engine": "speex", "reduction": 15 }"#,
    ],
    resolve: resolve)

  /// The rates supported by the suppressors.
  private static let pcm = FormatConstraint.pcm(
    rates: .range(8_000...48_000), channels: .range(AudioLimits.channels), samples: [.s16, .f32])

  /// Budget in microseconds per frame of one channel.
  private static let frameBudget = 150

  private static func resolve(_ resolution: inout Resolution) {
    guard var shape = resolution.input, let frames = shape.frames, let rate = shape.format.rate,
      let channels = shape.format.channels
    else { return }
    let latency = latency(resolution.parameters, rate: rate)
    resolution.latency = .samples(Int64(latency), rate: rate)
    resolution.budget = 100 + frameBudget * channels * (2 * frames / latency + 1)
    shape.burst = DelayedStream<DenoiseStage>.burst(latency: latency, frames: frames)
    resolution.outputs["out"] = shape
  }

  private static func latency(_ values: ParameterValues, rate: Int) -> Int {
    values.string("engine") == "speex"
      ? SpeexSuppressor.latency(rate: rate) : NoiseSuppressor.latency(rate: rate)
  }

  private var stream: DelayedStream<DenoiseStage>
  private var reply = HeldReply()

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let shape = setup.inputs[0].shape, case .pcm(let rate, let channels, _) = shape.format else {
      throw NodeProblem("\"\(setup.name)\" takes audio only")
    }
    let values = setup.parameters
    stream = DelayedStream(
      try DenoiseStage(
        rate: rate, channels: channels, usesSpeex: values.string("engine") == "speex",
        reduction: values.number("reduction")),
      shape: shape)
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    reply.follow(packet)
    try stream.process(packet, &ports)
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try stream.flush(&ports)
    return .ended
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .set(_, let value) = message else { return }
    stream.stage.setReduction(value.asNumber)
  }

  public mutating func interrupted(_ ports: inout Ports) {
    if reply.isStale(at: ports.generation) { stream.forget() }
  }
}
