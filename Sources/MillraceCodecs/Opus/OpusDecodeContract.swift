public import MillraceCore

extension OpusDecode {
  public static var contract: NodeContract {
    NodeContract(
      "opus.decode", "decodes Opus packets to PCM and conceals what is missing",
      text: """
        Positions are kept; what an encoder put before position 0 and its padding at the end are cut off, so the samples of \
        the encoder's input come back complete and in their places.

        With fec a lost packet is held back until the next one, which may carry a copy: one packet of latency, for lost \
        ones only. An Ogg Opus file's output gain is told by the event opened of ogg.read; set it here as gain.
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
          text: "samples, in packets no longer than the input's")
      ],
      parameters: parameters,
      events: [
        EventContract(
          "gap",
          text:
            "something was missing: position (s), ms, how many ms a later packet's copy gave back, and whether the rest was filled"
        ),
        EventContract(
          "damaged",
          text: """
            packets could not be decoded and were concealed: `position` (s) of the first, `bytes` of them all, `count` so far; at most \
            once a second, and the rest at the utterance's end
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
        text: "rate of the output: 8000, 12000, 16000, 24000 or 48000; the link's when absent"),
      ParameterContract(
        "channels", .integer(1...2),
        text: "channels of the output, whatever the packets hold; the link's when absent"),
      ParameterContract(
        "sample", .choice(SampleType.allCases.map(\.rawValue)), default: "s16",
        text: "how a sample is stored"),
      ParameterContract(
        "plc", .bool, default: true, text: "extrapolate what is lost; false: silence at once"),
      ParameterContract(
        "fec", .bool, default: false,
        text:
          "use the copy of a lost packet that the next one may carry; a lost packet then waits for the next"),
      ParameterContract(
        "conceal", .integer(0...1000), unit: "ms", default: 120,
        text: "how much of one loss to extrapolate before silence takes over"),
      ParameterContract(
        "fill", .integer(0...3_600_000), unit: "ms", default: 10_000,
        text: "longest jump of positions to fill; a longer one stays a jump"),
      ParameterContract(
        "gain", .number(-128...127), unit: "dB", default: 0, live: true, text: "gain on the output"),
    ]
  }

  private static func resolve(_ resolution: inout Resolution) {
    if resolution.parameters.has("rate"), !OpusRates.all.contains(resolution.parameters.integer("rate")) {
      let rate = resolution.parameters.integer("rate")
      resolution.refuse(
        "rate", "Opus does not decode to \(rate) Hz",
        cure: "use \(OpusRates.listed); for another rate put audio.resample behind")
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
        nil, "its input counts at \(linkRate) Hz, which Opus does not decode to",
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
