public import MillraceCore

extension VideoSample {
  public static let contract = NodeContract(
    "video.sample", "samples pictures at a fixed interval as JPEG, under a byte budget",
    text: """
      For services that take single pictures, each with a size limit. Slots lie on a grid that never drifts; each takes the newest \
      picture. In a graph paced by the clock, the grid follows the clock; where pictures are read as fast as possible, it follows \
      their own timestamps. The JPEG is baseline 4:2:0, as good as the budget allows: with finely scaled quantization tables, encoded \
      once or twice, and scaled down where that looks better than coarse tables.
      """,
    inputs: [PortContract("in", .video(), text: "raw pictures", holds: 2)],
    outputs: [PortContract("out", .kind(.jpeg), text: "the sampled pictures")],
    parameters: [
      ParameterContract(
        "interval", .number(10...86_400_000), unit: "ms", default: 500, text: "sampling interval"),
      ParameterContract(
        "maxBytes", .integer(1_000...64_000_000), unit: "bytes", default: 180_000,
        text: "size limit; every picture is strictly smaller"),
      ParameterContract(
        "count", .choice(ByteBudget.Count.allCases.map(\.rawValue)), default: "jpeg",
        text: "what the limit applies to: the JPEG, or its base64 text"),
      ParameterContract(
        "resize", .bool, default: true,
        text:
          "true: scale pictures down where that looks better; false: only if nothing fits otherwise"),
      ParameterContract(
        "skipStill", .bool, default: false,
        text: "skip pictures that look like the last one sampled"),
    ],
    events: [
      EventContract(
        "picture",
        text: """
          a picture was sampled: `bytes`, `width`, `height`, `quality` (of libjpeg, 1 to 98), `scale` (of width and height), number of \
          `encodes`, `age` of the picture in ms at its slot
          """),
      EventContract(
        "skipped",
        text: """
          a slot produced no picture, the first in a row: `reason` is `noNew` (nothing new arrived), `busy` (two pictures are still in \
          use) or `still`; `count` so far of that reason
          """),
      EventContract("tooLarge", text: "a picture does not fit at any size and is dropped: `count` so far"),
      EventContract("late", text: "slots were missed because the machine was busy: `slots`, `count` so far"),
      EventContract(
        "sampled",
        text: """
          at the end: `pictures` sampled, `superseded` by newer ones before their slot, slots without a picture by reason (`noNew`, \
          `busy`, `still`, `tooLarge`, `late`), and `encodes`
          """),
    ],
    lane: .bulk, budget: 100_000,
    examples: [
      #"{ "type": "video.sample" }"#,
      #"{ "type": "video.sample", "interval": 1000, "maxBytes": 180000, "count": "base64" }"#,
    ],
    resolve: resolve)

  enum Event: Int {
    case picture, skipped, tooLarge, late, sampled
  }

  static func budget(_ values: ParameterValues) -> ByteBudget {
    ByteBudget(
      maxBytes: values.integer("maxBytes"), count: ByteBudget.Count(rawValue: values.string("count")) ?? .jpeg
    )
  }

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    JPEGEncoder.check(&resolution)
    resolution.outputs["out"] = OutputShape(
      .jpeg, packetDuration: values.nanoseconds("interval"),
      packetBytes: budget(values).largestJPEG)
  }
}
