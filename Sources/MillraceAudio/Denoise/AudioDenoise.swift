public import MillraceCore
internal import MillraceDSP

/// `audio.denoise`: takes steady noise out of speech.
///
/// - In `in`, out `out`: s16 or f32, 8 to 48 kHz, 1 to 8 channels; the format stays, each channel is cleaned by itself.
/// - Engine `wiener`: Millrace's own suppressor, late by 32 ms at 8, 16 and 32 kHz and by 21 ms at 48; engine `speex`:
///   libspeexdsp's, late by 20 ms.
/// - Every sample keeps its position and time: the output begins where the input begins, and what is held at the end, or where
///   the stream breaks, goes out then.
/// - A discontinuity starts afresh; so does the interruption of the reply whose sound is inside.
/// - `reduction` says how far noise is turned down at most, and changes while running.
/// - NaN counts as 0. Lost packets (without bytes) are dropped; the next one starts afresh.
public struct AudioDenoise: ~Copyable, Node {
  public static let contract = NodeContract(
    "audio.denoise", "takes steady noise out of speech",
    text: """
      For ears, and for recognisers that were not trained on noise; many were, and hear worse behind any suppressor: try \
      with and without. It does not remove voices, music or clatter.
      """,
    inputs: [PortContract("in", pcm, text: "speech with noise")],
    outputs: [PortContract("out", pcm, text: "the speech, with less noise")],
    parameters: [
      ParameterContract(
        "engine", .choice(["wiener", "speex"]), default: "wiener",
        text: "wiener: Millrace's own; speex: libspeexdsp's, a little sooner, a little less clean"),
      ParameterContract(
        "reduction", .number(0...60), unit: "dB", default: 25, live: true,
        text: "how far noise is turned down, at most"),
    ],
    budget: 400,
    examples: [
      #"{ "type": "audio.denoise" }"#, #"{ "type": "audio.denoise", "engine": "speex", "reduction": 15 }"#,
    ],
    resolve: resolve)

  /// The rates at which the suppressors were made to work.
  private static let pcm = FormatConstraint.pcm(
    rates: .range(8_000...48_000), channels: .range(SoundBounds.channels), samples: [.s16, .f32])

  /// Microseconds a frame of one channel may take.
  private static let frameBudget = 150

  private static func resolve(_ resolution: inout Resolution) {
    guard var shape = resolution.input, let frames = shape.frames, let rate = shape.format.rate,
      let channels = shape.format.channels
    else { return }
    let latency = latency(resolution.parameters, rate: rate)
    resolution.latency = .samples(Int64(latency), rate: rate)
    resolution.budget = 100 + frameBudget * channels * (2 * frames / latency + 1)
    shape.burst = LateStream<DenoiseStage>.burst(latency: latency, frames: frames)
    resolution.outputs["out"] = shape
  }

  private static func latency(_ values: ParameterValues, rate: Int) -> Int {
    values.string("engine") == "speex"
      ? SpeexSuppressor.latency(rate: rate) : NoiseSuppressor.latency(rate: rate)
  }

  private var stream: LateStream<DenoiseStage>
  private var reply = HeldReply()

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let shape = setup.inputs[0].shape, case .pcm(let rate, let channels, _) = shape.format else {
      throw NodeProblem("\"\(setup.name)\" takes sound only")
    }
    let values = setup.parameters
    stream = LateStream(
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
    if reply.isVoid(at: ports.generation) { stream.forget() }
  }
}
