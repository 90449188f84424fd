internal import MillraceAudio
public import MillraceCore

extension RTMPPull {
  public static let contract = NodeContract(
    "rtmp.pull", "plays a live stream: pictures and sound of an RTMP server",
    text: """
      Pictures come in the size that is asked for, whatever the stream's: whole, in the middle, with black where the shapes differ. \
      They are planar 4:2:0 with the colours of JPEG (BT.601, full range). Both ports go by one clock. Nothing is held back: a picture \
      goes on when it is decoded, sound when a packet of it is full. A stream that is lost is connected to again, also one that is \
      not there yet.
      """,
    outputs: [
      PortContract("out", .video(pixels: [.i420]), text: "the pictures, as they come", required: false),
      PortContract("audio", AudioLimits.pcm, text: "the sound, as it comes", required: false),
    ],
    parameters: [
      ParameterContract(
        "url", .string, required: true, secret: .address,
        text: "the stream: `rtmp:` or `rtmps:`, host, application, name"),
      .streamRoots,
      ParameterContract(
        "width", .integer(2...7_680), unit: "px", default: 1_280, text: "width of the pictures"),
      ParameterContract(
        "height", .integer(2...4_320), unit: "px", default: 720, text: "height of the pictures"),
      ParameterContract(
        "rate", .integer(1...120), unit: "pictures/s", default: 30,
        text: "pictures a second the stream is taken to have; more or fewer come as they come"),
      ParameterContract(
        "soundRate", .integer(AudioLimits.rates), unit: "Hz", default: 48_000, text: "of the sound"),
      ParameterContract("channels", .integer(1...2), default: 1, text: "of the sound"),
      .maxPixels, .frame,
      ParameterContract("sample", SampleType.choice, default: "s16", text: "sample type of the sound"),
      ParameterContract(
        "timeout", .number(100...600_000), unit: "ms", default: 5_000,
        text: "longest time without anything from the server"),
      .streamReconnect, .streamFirst, .streamMost, .streamGiveUp,
    ],
    events: [
      EventContract(
        "connected",
        text:
          "the stream comes: `ms` from the attempt to its first packet, `attempts` since it was last there"),
      EventContract("size", text: "pictures are `width` by `height` from here on, as the stream has them"),
      EventContract("disconnected", text: "there is no stream: `reason`"),
      EventContract("reconnecting", text: "another attempt comes in `ms`"),
      EventContract(
        "damaged",
        text: """
          packets could not be decoded and were left out: `count` so far; at most once a second, and at the end of a connection
          """),
      EventContract(
        "overrun",
        text: """
          pictures were not taken in time and the oldest left out: `count` so far; at most once a second, and at the end of a \
          connection
          """),
    ],
    lane: .bulk, budget: 50_000, drive: .itself, followsVirtualClock: false,
    examples: [
      #"{ "type": "rtmp.pull", "url": "${env:STREAM_URL}", "width": 1280, "height": 720 }"#
    ],
    resolve: resolve)

  enum Event: Int {
    case connected, size, disconnected, reconnecting, damaged, overrun
  }

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    resolution.pacing = .live
    do throws(NodeProblem) { _ = try StreamAddress(values) } catch {
      resolution.refuse(error.parameter, error.text, cure: error.cure)
    }
    resolution.outputs["out"] = .video(
      width: values.integer("width"), height: values.integer("height"),
      rate: FrameRate(values.integer("rate")))
    // Room for what a library says.
    resolution.outputs[NodeContract.eventsPort] = OutputShape(.event, packetDuration: nil, packetBytes: 1_024)
    let rate = values.integer("soundRate")
    resolution.outputs["audio"] = .pcm(
      rate: rate, channels: values.integer("channels"), sample: values.sample("sample") ?? .s16,
      frames: AudioLimits.frames(milliseconds: values.number("frame"), rate: rate))
  }
}
