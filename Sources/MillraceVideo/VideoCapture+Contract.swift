public import MillraceCore

extension VideoCapture {
  /// Most bytes of an event: room for an error with the name of a device and the words of a library.
  private static let eventBytes = 2_048

  public static let contract = NodeContract(
    "video.capture", "captures a screen or a camera, or generates test pictures",
    outputs: [PortContract("out", .video(), text: "the captured pictures")],
    parameters: [
      ParameterContract(
        "source", .choice(["screen", "camera", "test"]), default: "screen", text: "what to capture"),
      ParameterContract(
        "device", .string, live: true,
        text: "the X display, such as `:0` (default: DISPLAY), or the camera (default: /dev/video0)"),
      ParameterContract(
        "width", .integer(1...7_680), unit: "px", default: 1_280, text: "output width"),
      ParameterContract(
        "height", .integer(1...4_320), unit: "px", default: 720, text: "output height"),
      ParameterContract(
        "rate", .integer(1...120), unit: "pictures/s", default: 30, text: "frame rate"),
      ParameterContract(
        "left", .integer(0...32_767), unit: "px", default: 0, text: "left edge of the screen region"),
      ParameterContract(
        "top", .integer(0...32_767), unit: "px", default: 0, text: "top edge of the screen region"),
      ParameterContract(
        "pointer", .bool, default: true, text: "include the mouse pointer when capturing a screen"),
      ParameterContract("pixel", PixelType.choice, default: "i420", text: "output pixel format"),
      ParameterContract(
        "stall", .number(100...3_600_000), unit: "ms", default: 2_000,
        text: "time without a picture after which `stalled` is posted"),
    ],
    events: [
      EventContract("stalled", text: "no picture arrived for `ms`"),
      EventContract("resumed", text: "pictures arrive again: after `ms`"),
      EventContract(
        "damaged",
        text:
          "pictures of a camera could not be decoded and were dropped: `count` so far; at most once a second"
      ),
      EventContract("deviceChanged", text: "a `device` set while the graph runs is captured now"),
      EventContract(
        "error",
        text: """
          a `device` set while the graph runs cannot be captured, and everything continues as before: `text` says why and what to do, \
          `device`
          """),
    ],
    lane: .bulk, budget: 50_000, drive: .itself,
    examples: [
      #"{ "type": "video.capture", "width": 1920, "height": 1080, "rate": 15 }"#,
      #"{ "type": "video.capture", "source": "camera", "device": "/dev/video0" }"#,
    ],
    resolve: { resolution in
      let values = resolution.parameters
      resolution.pacing = values.string("source") == "test" ? .paced : .live
      resolution.outputs[NodeContract.eventsPort] = OutputShape(
        .event, packetDuration: nil, packetBytes: eventBytes)
      resolution.outputs["out"] = .video(
        width: values.integer("width"), height: values.integer("height"),
        pixel: PixelType(rawValue: values.string("pixel")) ?? .i420, rate: FrameRate(values.integer("rate")))
    })
}
