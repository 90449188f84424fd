public import MillraceCore

extension VideoDecode {
  public static let contract = NodeContract(
    "video.decode", "decodes H.264 or VP8 of a live connection to pictures",
    text: """
      Pictures are scaled to the requested size, whole and centred, with black bars where the aspect ratios differ; the stream may \
      change its size. They are planar 4:2:0 with JPEG colours (BT.601, full range). Nothing is held back. After a loss the last \
      picture stays until the next key frame. Link `events` to the input `control` of the node of WebRTC that the stream comes \
      from, so that the peer is asked for it.
      """,
    inputs: [
      PortContract("in", .kind(.h264).or(.kind(.vp8)), text: "encoded pictures, one in each packet")
    ],
    outputs: [PortContract("video", .video(pixels: [.i420]), text: "the pictures")],
    parameters: [
      ParameterContract(
        "width", .integer(2...7_680), unit: "px", default: 1_280, text: "output width"),
      ParameterContract(
        "height", .integer(2...4_320), unit: "px", default: 720, text: "output height"),
      ParameterContract(
        "rate", .integer(1...240), unit: "pictures/s", default: 30,
        text: "nominal frame rate of the stream; pictures are emitted as they arrive"),
      ParameterContract(
        "maxPixels", .integer(1...PictureHeader.maxDecodablePixels), unit: "px", default: 9_437_184,
        text: """
          size limit of decoded pictures, width times height; larger ones are refused before memory is allocated. Default: that of \
          H.264's level 5.1
          """),
      ParameterContract(
        "threads", .integer(1...8), default: 1, text: "decoding threads; they share a picture"),
    ],
    events: [
      EventContract("size", text: "the stream's picture size from here on: `width`, `height`"),
      EventContract(
        "keyframeRequested",
        text: """
          a key frame is needed to continue: after a loss or damage, and at the beginning; again every second until there is one
          """),
      EventContract(
        "damaged",
        text: """
          pictures were lost or could not be decoded, and the last good one stays: `count` so far, and possibly the library's \
          `reason`; at most once a second
          """),
    ],
    lane: .bulk, budget: 50_000,
    examples: [#"{ "type": "video.decode", "width": 640, "height": 480, "rate": 30 }"#],
    resolve: resolve)

  enum Event: Int { case size, keyframeRequested, damaged }

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    resolution.outputs["video"] = .video(
      width: values.integer("width"), height: values.integer("height"),
      rate: FrameRate(values.integer("rate")))
    // Room for the library's words.
    resolution.outputs[NodeContract.eventsPort] = OutputShape(.event, packetDuration: nil, packetBytes: 1_024)
  }
}
