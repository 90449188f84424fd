public import MillraceCore

extension AppSource {
  public static let contract: NodeContract = {
    var contract = NodeContract(
      "app.source", "brings what the program sends into the graph",
      text: """
        The program that runs the graph sends sound, pictures, text or events by GraphRun.source. Documentation/embedding.md shows how. \
        A graph with this node needs such a program: the runner has nothing to send, and ends it when the graph drains.
        """,
      outputs: [PortContract("out", .any, text: "what the program sends")],
      parameters: [
        ParameterContract(
          "format", .choice(formats.map(\.rawValue)), default: "pcm", text: "what the program sends"),
        ParameterContract(
          "rate", .integer(8_000...192_000), unit: "Hz", default: 16_000, text: "of pcm and opus"),
        ParameterContract("channels", .integer(1...8), default: 1, text: "of pcm and opus, interleaved"),
        ParameterContract(
          "sample", .choice(["s16", "f32"]), default: "s16", text: "how a pcm sample is stored"),
        ParameterContract(
          "frame", .number(1...1_000), unit: "ms", default: 20,
          text: "length of the packets that pcm is cut into"),
        ParameterContract(
          "maxBytes", .integer(1...BlockPool.maxBlockBytes), unit: "bytes",
          text:
            "the largest packet of any other format; otherwise 262144 for jpeg and png, 1048576 for h264 and vp8, 65536 for text and events, 7662 for opus, 8191 for aac, 8192 for mp3 and ogg"
        ),
        ParameterContract(
          "capacity", .integer(1...65_536), unit: "packets",
          text: "how many may be queued; otherwise 4 of jpeg or png, or 32 of anything else"),
        ParameterContract(
          "whenFull", .choice(["wait", "dropNewest"]), default: "wait",
          text: "whether a send waits for room in the queue, or is dropped and counted"),
        ParameterContract(
          "pacing", .choice([Pacing.waits.rawValue, Pacing.live.rawValue]), default: "waits",
          text:
            "waits: the graph takes as fast as it can, and holds the program back; live: the program sends when the world does, and links drop what they cannot carry"
        ),
        ParameterContract(
          "replies", .bool, default: false,
          text: "whether what is sent belongs to the bot's present reply, so that an interruption drops it"),
      ],
      lane: .external, budget: 100, drive: .itself,
      examples: [
        #"{ "type": "app.source", "rate": 16000, "pacing": "live" }"#,
        #"{ "type": "app.source", "format": "jpeg", "maxBytes": 180000, "whenFull": "dropNewest" }"#,
        #"{ "type": "app.source", "format": "text" }"#,
      ],
      resolve: { resolve(&$0) })
    contract.appEnd = .source
    return contract
  }()

  private static let formats: [Format.Kind] = [
    .pcm, .opus, .mp3, .ogg, .aac, .jpeg, .png, .h264, .vp8, .text, .event,
  ]

  private static func resolve(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    resolution.pacing = Pacing(rawValue: parameters.string("pacing")) ?? .waits
    let (rate, channels) = (parameters.integer("rate"), parameters.integer("channels"))
    let kind = Format.Kind(rawValue: parameters.string("format")) ?? .pcm
    guard kind != .pcm else {
      let sample = SampleType(rawValue: parameters.string("sample")) ?? .s16
      let frames = max(1, Int((parameters.number("frame") * Double(rate) / 1_000).rounded()))
      resolution.outputs["out"] = .pcm(rate: rate, channels: channels, sample: sample, frames: frames)
      return
    }
    let bytes = parameters.has("maxBytes") ? parameters.integer("maxBytes") : AppDefaults.maxBytes(of: kind)
    resolution.outputs["out"] = OutputShape(
      format(kind, rate: rate, channels: channels), packetDuration: nil, packetBytes: bytes)
  }

  private static func format(_ kind: Format.Kind, rate: Int, channels: Int) -> Format {
    switch kind {
    case .opus: .opus(rate: rate, channels: channels)
    case .mp3: .mp3
    case .ogg: .ogg
    case .aac: .aac
    case .jpeg: .jpeg
    case .png: .png
    case .h264: .h264
    case .vp8: .vp8
    case .event: .event
    default: .text
    }
  }
}
