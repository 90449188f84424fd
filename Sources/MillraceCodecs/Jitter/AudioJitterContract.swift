public import MillraceCore

extension AudioJitter {
  public static var contract: NodeContract {
    NodeContract(
      "audio.jitter", "plays packets from a network in order and on time, and conceals losses",
      text: """
        Adapts the delay to what nearly all packets need, by playing faster or slower at constant pitch. Lost packets are \
        concealed, late ones are waited for, and untransmitted silence is filled. Replaces a decoder: Opus goes in, PCM \
        comes out.
        """,
      inputs: [
        PortContract(
          "in",
          .opus(rates: .oneOf(OpusRates.all), channels: .range(1...2))
            .or(.pcm(rates: .range(8_000...96_000), channels: .range(1...2), samples: [.s16, .f32])),
          text: "packets as they arrive; positions are the sender's time", holds: JitterBuffer.capacity)
      ],
      outputs: [
        PortContract(
          "out", .pcm(rates: .range(8_000...96_000), channels: .range(1...2), samples: [.f32]),
          text: "10 ms of audio every 10 ms")
      ],
      parameters: [
        ParameterContract(
          "quantile", .number(0.5...0.999), default: 0.97, text: "fraction of packets to wait for"),
        ParameterContract("least", .number(0...500), unit: "ms", default: 20, text: "shortest delay"),
        ParameterContract(
          "longest", .number(20...2_000), unit: "ms", default: 400, text: "longest target delay"),
        ParameterContract(
          "fec", .bool, default: true,
          text: "use the copy of a lost Opus packet that the next packet may carry"
        ),
        ParameterContract(
          "report", .number(0...600_000), unit: "ms", default: 5_000,
          text: "interval of `state` events; 0: none"),
      ],
      events: [
        EventContract(
          "state",
          text: """
            buffer state: `target` and actual `delay` in ms; packets so far, of which `late`, `duplicates`, `reordered`, `damaged`, \
            `skipped`; ms of audio `lost` (concealed), `recovered` from copies, concealed while waiting (`waited`), and inserted \
            minus removed by time stretching (`stretched`)
            """)
      ],
      budget: 800, drive: .itself, asynchronousPaths: [AsynchronousPath(from: "in", to: "out")],
      examples: [
        #"{ "type": "audio.jitter" }"#, #"{ "type": "audio.jitter", "quantile": 0.99, "least": 40 }"#,
      ],
      resolve: resolve)
  }

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    resolution.pacing = .live
    resolution.latency = Nanoseconds(values.number("least") * 1e6)
    if values.number("longest") < values.number("least") {
      resolution.refuse(
        "longest",
        "the longest delay, \(values.number("longest")) ms, is below the least delay, \(values.number("least")) ms",
        cure: "set \"longest\" to at least \"least\"")
    }
    guard let input = resolution.input, let rate = input.format.rate, let channels = input.format.channels
    else {
      return
    }
    resolution.outputs["out"] = .pcm(rate: rate, channels: channels, sample: .f32, frames: rate / 100)
  }
}
