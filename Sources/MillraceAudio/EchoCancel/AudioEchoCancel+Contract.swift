public import MillraceCore
internal import MillraceDSP

extension AudioEchoCancel {
  private static let sound = FormatConstraint.pcm(
    rates: .oneOf(EchoSettings.rates), channels: .only(1), samples: [.s16, .f32])

  public static let contract = NodeContract(
    "audio.echoCancel", "removes the loudspeaker's echo from the microphone",
    text: """
      `millrace` estimates the delay, subtracts the echo with a Kalman filter and suppresses the residual, with comfort noise in \
      its place; the near-end talker is preserved. `speex` is libspeexdsp's canceller with its noise suppression; it does not \
      search for delays beyond its tail.
      """,
    inputs: [
      PortContract("near", sound, text: "the microphone"),
      PortContract(
        "reference", sound, text: "what the loudspeaker plays, stamped with the time it is heard",
        drives: false),
    ],
    outputs: [PortContract("out", sound, text: "the microphone without the echo")],
    parameters: [
      ParameterContract(
        "engine", .choice(["millrace", "speex"]), default: "millrace", text: "which canceller to use"),
      ParameterContract(
        "tail", .integer(EchoSettings.tails), unit: "ms", default: 256,
        text: "length of the echo the filter models, from its first arrival"),
      ParameterContract(
        "longestDelay", .integer(EchoSettings.delays), unit: "ms", default: 500,
        text: "longest delay of the echo; 0: no search"),
      ParameterContract(
        "suppression", .bool, default: true, live: true, text: "residual echo suppression on or off"),
      ParameterContract(
        "comfortNoise", .bool, default: true, live: true,
        text: "comfort noise in place of what was suppressed"),
      ParameterContract(
        "voice", .number(-1...1), default: -1, live: true,
        text: "probability of near-end speech, from a voice detector; -1: unknown"),
    ],
    events: [
      EventContract("delayFound", text: "the echo's delay was found: `ms` after the reference"),
      EventContract("delayJump", text: "the echo's delay changed: `from` ms `to` ms"),
      EventContract("diverged", text: "the filter diverged and restarts"),
      EventContract("recovered", text: "the filter converged again"),
      EventContract(
        "echoReturn",
        text: "one second of far end without near-end speech: `erle`, echo return loss enhancement in dB"),
      EventContract("referenceStopped", text: "no reference for 200 ms: `position` of the microphone"),
      EventContract("referenceResumed", text: "the reference is back: `position` of the microphone"),
      EventContract(
        "referenceLost",
        text:
          "the reference for this part is no longer kept, so its echo remains: `position` of the microphone"
      ),
    ],
    budget: 1_500,
    examples: [
      #"{ "type": "audio.echoCancel" }"#, #"{ "type": "audio.echoCancel", "engine": "speex", "tail": 200 }"#,
    ],
    resolve: resolve)

  private static func resolve(_ resolution: inout Resolution) {
    guard let near = resolution.inputs["near"], let frames = near.frames,
      case .pcm(let rate, _, let sample) = near.format
    else { return }
    if let reference = resolution.inputs["reference"], let other = reference.format.rate, other != rate {
      resolution.refuse(
        nil, "near carries \(near.format) but reference carries \(reference.format)",
        cure: "put audio.resample (rate \(rate)) before reference")
    }
    var output = OutputShape.pcm(
      rate: rate, channels: 1, sample: sample, frames: held(frames: frames, rate: rate))
    output.packetDuration = near.packetDuration
    resolution.outputs["out"] = output
    let block = Nanoseconds(8_000_000)
    resolution.latency =
      resolution.parameters.string("engine") == "speex"
      ? block : .samples(Int64(EchoCanceller.latencyFrames(rate: rate)), rate: rate)
  }

  /// Most frames held, which can all be emitted in one call.
  static func held(frames: Int, rate: Int) -> Int {
    frames + 2 * EchoCanceller.blockFrames(rate: rate)
  }
}
