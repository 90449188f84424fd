public import MillraceCore

extension OpusDecode {
  public static var contract: NodeContract {
    NodeContract(
      "opus.decode", "decodes Opus packets to PCM and conceals losses",
      text: """
        Positions are preserved. Encoder pre-skip (before position 0) and end padding are trimmed, so the encoder's input is \
        restored completely and sample-aligned.

        With fec, a lost packet is held back until the next one, which may carry a copy: this adds one packet of latency, for lost \
        packets only. The event opened of ogg.read reports a file's output gain; set it here as gain.
        """,
      inputs: [
        PortContract(
          "in", .opus(rates: .oneOf(OpusRates.all), channels: .range(1...2)),
          text: "Opus packets of up to 120 ms",
          holds: 1)
      ],
      outputs: [
        PortContract(
          "out", .pcm(rates: .oneOf(OpusRates.all), channels: .range(1...2), samples: [.s16, .f32]),
          text: "PCM, in packets no longer than the input's")
      ],
      parameters: parameters,
      events: [
        EventContract(
          "gap",
          text:
            "audio was lost: position (s), ms, how many ms were recovered from a later packet's copy, and whether the rest was filled"
        ),
        EventContract(
          "damaged",
          text: """
            invalid packets were concealed: `position` (s) of the first, total `bytes`, `count` so far; at most once a second, and the rest at \
            the end of the utterance
            """),
      ],
      budget: 400,
      examples: [
        #"{ "type": "opus.decode", "rate": 48000 }"#,
        #"{ "type": "opus.decode", "fec": true, "conceal": 60 }"#,
      ],
      resolve: resolve)
  }

  private static var parameters: [ParameterContract] {
    [
      ParameterContract(
        "rate", .integer(8000...48_000), unit: "Hz",
        text: "output rate: 8000, 12000, 16000, 24000 or 48000; defaults to the link's"),
      ParameterContract(
        "channels", .integer(1...2),
        text: "output channels, whatever the packets hold; defaults to the link's"),
      ParameterContract(
        "sample", .choice(SampleType.allCases.map(\.rawValue)), default: "s16",
        text: "sample format"),
      ParameterContract(
        "plc", .bool, default: true, text: "extrapolate lost audio; false: insert silence"),
      ParameterContract(
        "fec", .bool, default: false,
        text:
          "use the copy of a lost packet that the next packet may carry; a lost packet then waits for the next one"
      ),
      ParameterContract(
        "conceal", .integer(0...1000), unit: "ms", default: 120,
        text: "longest extrapolation of a loss; silence follows"),
      ParameterContract(
        "fill", .integer(0...3_600_000), unit: "ms", default: 10_000,
        text: "longest jump of positions to fill; longer ones stay jumps"),
      ParameterContract(
        "gain", .number(-128...127), unit: "dB", default: 0, live: true, text: "output gain"),
    ]
  }

  private static func resolve(_ resolution: inout Resolution) {
    if resolution.parameters.has("rate"), !OpusRates.all.contains(resolution.parameters.integer("rate")) {
      let rate = resolution.parameters.integer("rate")
      resolution.refuse(
        "rate", "Opus cannot decode to \(rate) Hz",
        cure: "use \(OpusRates.listed); for another rate add audio.resample after it")
      return
    }
    guard let input = resolution.input, case .opus(let linkRate, let linkChannels) = input.format else {
      return
    }
    let rate = resolution.parameters.has("rate") ? resolution.parameters.integer("rate") : linkRate
    let channels =
      resolution.parameters.has("channels") ? resolution.parameters.integer("channels") : linkChannels
    guard OpusRates.all.contains(rate) else {
      resolution.refuse(
        nil, "its input's positions count at \(linkRate) Hz, which Opus cannot decode to",
        cure: "set \"rate\" to \(OpusRates.listed)")
      return
    }
    let sample = SampleType(rawValue: resolution.parameters.string("sample")) ?? .s16
    let usual = input.packetDuration ?? .milliseconds(20)
    let length = min(max(usual, 2_500_000), .milliseconds(Int64(OpusRates.longestPacket)))
    let frames = Int((length * Int64(rate) + 999_999_999) / 1_000_000_000)
    resolution.outputs["out"] = .pcm(rate: rate, channels: channels, sample: sample, frames: frames)
    resolution.latency = resolution.parameters.bool("fec") ? length : 0
    resolution.budget = (rate > 16_000 ? 300 : 150) * channels * max(1, frames * 50 / rate)
  }
}
