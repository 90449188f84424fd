public import MillraceCore
internal import MillraceDSP

extension AudioEchoCancel {
  private static let sound = FormatConstraint.pcm(
    rates: .oneOf(EchoSettings.rates), channels: .only(1), samples: [.s16, .f32])

  public static let contract = NodeContract(
    "audio.echoCancel", "takes the loudspeaker's sound out of the microphone's",
    text: """
      `millrace` estimates the delay, subtracts the echo with a Kalman filter and suppresses what is left, with comfort noise in \
      its place; a voice at the near end is kept. `speex` is the canceller of libspeexdsp with its noise suppression; it does \
      not look for delays beyond its tail.
      """,
    inputs: [
      PortContract("near", sound, text: "the microphone"),
      PortContract(
        "reference", sound, text: "what the loudspeaker plays, at the time it is heard", drives: false),
    ],
    outputs: [PortContract("out", sound, text: "the microphone without the echo")],
    parameters: [
      ParameterContract(
        "engine", .choice(["millrace", "speex"]), default: "millrace", text: "which canceller works"),
      ParameterContract(
        "tail", .integer(EchoSettings.tails), unit: "ms", default: 256,
        text: "how long an echo the filter holds, from its first sound on"),
      ParameterContract(
        "longestDelay", .integer(EchoSettings.delays), unit: "ms", default: 500,
        text: "how late the echo may begin; 0: not looked for"),
      ParameterContract(
        "suppression", .bool, default: true, live: true, text: "whether what the filter leaves is suppressed"),
      ParameterContract(
        "comfortNoise", .bool, default: true, live: true,
        text: "whether noise like the background's stands in for what was suppressed"),
      ParameterContract(
        "voice", .number(-1...1), default: -1, live: true,
        text: "how likely somebody speaks at the near end, from a voice detector; -1: not known"),
    ],
    events: [
      EventContract("delayFound", text: "the echo was found: `ms` after the reference"),
      EventContract("delayJump", text: "the echo has moved: `from` ms `to` ms"),
      EventContract("diverged", text: "the filter did harm and starts anew"),
      EventContract("recovered", text: "the filter is of use again"),
      EventContract(
        "echoReturn",
        text: "a second of far end without near-end voice: `erle`, dB by which the echo was lowered"),
      EventContract("referenceStopped", text: "no reference for 200 ms: `position` of the microphone"),
      EventContract("referenceResumed", text: "the reference is back: `position` of the microphone"),
      EventContract(
        "referenceLost",
        text:
          "the reference of this stretch was there and is no longer kept, so that its echo stays: `position` of the microphone"
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

  /// Frames that can be inside at most, and leave in one call.
  static func held(frames: Int, rate: Int) -> Int {
    frames + 2 * EchoCanceller.blockFrames(rate: rate)
  }
}
