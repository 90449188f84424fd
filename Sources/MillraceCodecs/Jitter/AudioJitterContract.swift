public import MillraceCore

extension AudioJitter {
  public static var contract: NodeContract {
    NodeContract(
      "audio.jitter", "puts sound from a network in order and in time, and covers what is missing",
      text: """
        Waits just as long as nearly all packets need, and goes faster or slower at an unchanged pitch to keep to it. What is \
        lost is concealed; what is late is waited for; silence that was not sent is filled. Takes the place of a decoder: Opus \
        goes in, PCM comes out.
        """,
      inputs: [
        PortContract(
          "in",
          .opus(rates: .oneOf(OpusRates.all), channels: .range(1...2))
            .or(.pcm(rates: .range(8_000...96_000), channels: .range(1...2), samples: [.s16, .f32])),
          text: "packets as they arrive; positions are the sender's", holds: JitterBuffer.capacity)
      ],
      outputs: [
        PortContract(
          "out", .pcm(rates: .range(8_000...96_000), channels: .range(1...2), samples: [.f32]),
          text: "10 ms of sound every 10 ms")
      ],
      parameters: [
        ParameterContract(
          "quantile", .number(0.5...0.999), default: 0.97, text: "share of packets to wait for"),
        ParameterContract("least", .number(0...500), unit: "ms", default: 20, text: "shortest delay"),
        ParameterContract(
          "longest", .number(20...2_000), unit: "ms", default: 400, text: "longest delay to aim at"),
        ParameterContract(
          "fec", .bool, default: true, text: "use the copy of a lost Opus packet that the next one may carry"
        ),
        ParameterContract(
          "report", .number(0...600_000), unit: "ms", default: 5_000,
          text: "time between two `state` events; 0: none"),
      ],
      events: [
        EventContract(
          "state",
          text: """
            how it goes: `target` and `delay` in ms; packets so far, of which `late`, `duplicates`, `reordered`, `damaged`, \
            `skipped`; ms of sound `lost` (concealed), `recovered` from copies, made up while nothing was there (`waited`), and \
            put in less left out (`stretched`)
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
        "\(values.number("longest")) ms are less than the least delay, \(values.number("least")) ms",
        cure: "let \"longest\" be the greater")
    }
    guard let input = resolution.input, let rate = input.format.rate, let channels = input.format.channels
    else {
      return
    }
    resolution.outputs["out"] = .pcm(rate: rate, channels: channels, sample: .f32, frames: rate / 100)
  }
}
