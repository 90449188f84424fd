public import MillraceCore

extension VideoEncode {
  public static let contract = NodeContract(
    "video.encode", "encodes pictures to H.264 or VP8 for a live connection",
    text: """
      For nodes of WebRTC and RTP: no picture is held back, none references a later one, and the bitrate is held within half a \
      second. Link the events of such a node to `control`, and the encoder follows what the network carries and makes the key \
      frames that the peer asks for. For files and RTMP use `video.record` and `rtmp.push`.
      """,
    inputs: [
      PortContract("video", .video(), text: "raw pictures"),
      PortContract(
        "control", .kind(.event).or(.kind(.text)),
        text: """
          events `extra` of a node of WebRTC, `keyframeRequested` and `targetBitrate` with `bps` (0: no limit), and \
          `keyframeRequested` of `video.decode`; commands `update` with `bitrate`, `rate`, `keyInterval`, `maxWidth`, `maxHeight`, \
          and `extra` with the name `requestKeyFrame`; other events are ignored
          """,
        required: false, drives: false),
    ],
    outputs: [
      PortContract("out", .kind(.h264).or(.kind(.vp8)), text: "encoded pictures, one in each packet")
    ],
    parameters: [
      ParameterContract(
        "codec", .choice(PictureCoding.allCases.map(\.rawValue)),
        text: "the codec; default: what the reader of `out` accepts, h264 if it accepts both"),
      ParameterContract(
        "bitrate", .integer(bitrates), unit: "bit/s", live: true,
        text:
          "highest bitrate; default: 0.1 bit per pixel. VP8 follows changes of more than a sixth only, each with a key frame"
      ),
      ParameterContract(
        "keyInterval", .number(keyIntervals), unit: "ms", default: 10_000, live: true,
        text: "interval between key frames; 0: only when one is asked for"),
      ParameterContract(
        "rate", .number(rates), unit: "pictures/s", live: true,
        text: "highest frame rate; pictures beyond it are dropped"),
      ParameterContract(
        "maxWidth", .integer(sides), unit: "px", default: 1_280, live: true,
        text: "larger pictures are scaled down to this width"),
      ParameterContract(
        "maxHeight", .integer(sides), unit: "px", default: 1_280, live: true,
        text: "larger pictures are scaled down to this height"),
      ParameterContract(
        "speed", .choice(EncoderSpeed.allCases.map(\.rawValue)), default: "fast",
        text: "computing for a picture; slower gives fewer bits for the same quality"),
      .encoderThreads,
      ParameterContract(
        "maxBytes", .integer(4_096...BlockPool.maxBlockBytes), unit: "bytes",
        text: "size limit of a packet; default: that of a raw picture, but 1048576 at most"),
    ],
    events: [
      EventContract(
        "encoding",
        text: "an encoder was opened, whose first picture is a key frame: `codec`, `width`, `height`, `bps`"),
      EventContract(
        "damaged",
        text: "pictures of the input were incomplete and were dropped: `count` so far; at most once a second"),
      EventContract(
        "tooLarge",
        text: """
          encoded pictures were larger than `maxBytes` and were dropped, and a key frame follows: `count` so far; at most once a \
          second
          """),
      EventContract(
        "error", text: "what came at `control` cannot be done, and nothing changes: `text`, `cure`"),
      EventContract(
        "encoded", text: "the input has ended: `pictures`, `keyFrames` and `bytes` encoded"),
    ],
    lane: .bulk, budget: 100_000,
    examples: [
      #"{ "type": "video.encode", "bitrate": 1200000, "rate": 30 }"#,
      #"{ "type": "video.encode", "codec": "vp8", "maxWidth": 640, "maxHeight": 640, "keyInterval": 0 }"#,
    ],
    resolve: resolve)

  enum Event: Int { case encoding, damaged, tooLarge, error, encoded }

  static let bitrates = 16_000...100_000_000
  static let rates = 0.01...240.0
  static let keyIntervals = 0.0...600_000.0
  static let sides = 2...16_384

  /// The codec: the parameter's, or what the readers of the output accept.
  static func coding(_ resolution: Resolution) -> PictureCoding {
    if resolution.parameters.has("codec") {
      return PictureCoding(rawValue: resolution.parameters.string("codec")) ?? .h264
    }
    return !resolution.isWanted(.h264) && resolution.isWanted(.vp8) ? .vp8 : .h264
  }

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    // Room for the words of an error.
    resolution.outputs[NodeContract.eventsPort] = OutputShape(.event, packetDuration: nil, packetBytes: 1_024)
    guard case .video(let width, let height, _, _)? = resolution.inputs["video"]?.format else { return }
    let coding = Self.coding(resolution)
    let size = EncodedSize(
      of: width, height, within: values.integer("maxWidth"), values.integer("maxHeight"))
    if max(size.width, size.height) > coding.longestSide {
      resolution.refuse(
        "maxWidth", "\(coding.name) does not support pictures of \(size.width)x\(size.height)",
        cure: "the longest side is \(coding.longestSide); set a smaller \"maxWidth\" and \"maxHeight\"")
    }
    // A picture that an encoder gives up on takes no more than its samples and their heads.
    let raw = PixelType.i420.byteCount(width: width, height: height) + 65_536
    let bytes = values.has("maxBytes") ? values.integer("maxBytes") : min(raw, EncodedPicture.maxBytes)
    resolution.outputs["out"] = OutputShape(
      coding == .h264 ? .h264 : .vp8, packetDuration: nil, packetBytes: bytes)
  }
}
