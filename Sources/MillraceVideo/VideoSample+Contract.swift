public import MillraceCore

extension VideoSample {
  public static let contract = NodeContract(
    "video.sample", "takes a picture every so often and makes a JPEG of it, under a byte budget",
    text: """
      For services that look at single pictures, each with a limit in bytes. Slots lie on a grid that never drifts; each takes the \
      newest picture. In a graph that is paced by the clock the grid is the clock's; where pictures come as fast as they are taken \
      it is that of their own times. The JPEG is baseline 4:2:0, as good as the budget allows: of finely scaled tables, encoded \
      once or twice, and made smaller where that looks better than coarse tables.
      """,
    inputs: [PortContract("in", .video(), text: "raw pictures", holds: 2)],
    outputs: [PortContract("out", .kind(.jpeg), text: "the pictures taken")],
    parameters: [
      ParameterContract(
        "interval", .number(10...86_400_000), unit: "ms", default: 500, text: "time from slot to slot"),
      ParameterContract(
        "maxBytes", .integer(1_000...64_000_000), unit: "bytes", default: 180_000,
        text: "the limit; every picture stays strictly under it"),
      ParameterContract(
        "count", .choice(ByteBudget.Count.allCases.map(\.rawValue)), default: "jpeg",
        text: "what stays under the limit: the JPEG, or its base64 text"),
      ParameterContract(
        "resize", .bool, default: true,
        text:
          "true: pictures are made smaller where that looks better; false: only where nothing fits otherwise"),
      ParameterContract(
        "skipStill", .bool, default: false,
        text: "true: a picture that looks like the last one taken is left out"),
    ],
    events: [
      EventContract(
        "picture",
        text: """
          one was taken: `bytes`, `width`, `height`, `quality` (of libjpeg, 1 to 98), `scale` (of width and height), `encodes` it \
          took, `age` of the picture in ms at its slot
          """),
      EventContract(
        "skipped",
        text: """
          a slot passes without a picture, the first in a row: `reason` is `noNew` (nothing new came), `busy` (two pictures are \
          still on their way) or `still`; `count` so far of that reason
          """),
      EventContract("tooLarge", text: "a picture fits at no size and is dropped: `count` so far"),
      EventContract("late", text: "slots were missed because the machine was busy: `slots`, `count` so far"),
      EventContract(
        "sampled",
        text: """
          at the end: `pictures` taken, `superseded` by newer ones before their slot, slots without one by reason (`noNew`, \
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
