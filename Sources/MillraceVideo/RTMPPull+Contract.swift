internal import MillraceAudio
public import MillraceCore

extension RTMPPull {
  public static let contract = NodeContract(
    "rtmp.pull", "receives a live stream from an RTMP server: pictures and audio",
    text: """
      Pictures are scaled to the requested size, whole and centred, with black bars where the aspect ratios differ. They are planar \
      4:2:0 with JPEG colours (BT.601, full range). Both outputs share one clock. Nothing is held back: a picture is emitted when \
      it is decoded, audio when a packet is full. A stream that is lost, or not there yet, is reconnected. What to play may come while \
      the graph runs: link the input `address` to the output of a service or a program.
      """,
    inputs: [
      .streamAddress(
        """
        what to play from now on: text, or events `stream` with `url`; an empty text, `stream` without `url` and `streamEnded` stop. Event \
        `streamReplyStarted` begins the next reply (`replies`); other events are ignored
        """)
    ],
    outputs: [
      PortContract("out", .video(pixels: [.i420]), text: "pictures as they arrive", required: false),
      PortContract("audio", AudioLimits.pcm, text: "audio as it arrives", required: false),
    ],
    parameters: [
      ParameterContract(
        "url", .string, secret: .address,
        text: """
          the stream's address: `rtmp:` or `rtmps:`, host, application, stream name; required without the input `address`
          """),
      .streamRoots,
      ParameterContract(
        "width", .integer(2...7_680), unit: "px", default: 1_280, text: "output width"),
      ParameterContract(
        "height", .integer(2...4_320), unit: "px", default: 720, text: "output height"),
      ParameterContract(
        "rate", .integer(1...120), unit: "pictures/s", default: 30,
        text: "nominal frame rate of the stream; pictures are emitted as they arrive"),
      ParameterContract(
        "soundRate", .integer(AudioLimits.rates), unit: "Hz", default: 48_000, text: "output sample rate"),
      ParameterContract("channels", .integer(1...2), default: 1, text: "output channels"),
      .maxPixels, .frame,
      ParameterContract("sample", SampleType.choice, default: "s16", text: "output sample format"),
      ParameterContract(
        "timeout", .number(100...600_000), unit: "ms", default: 5_000,
        text: "longest time without data from the server"),
      .streamReconnect, .streamFirst, .streamMost, .streamGiveUp,
      ParameterContract(
        "replies", .bool, default: false,
        text: """
          true: the sound is a bot's: it belongs to the graph's replies, and an interruption silences the rest of an utterance
          """),
      ParameterContract(
        "utteranceGap", .number(20...10_000), unit: "ms", default: 600,
        text: "with `replies`: quiet that ends an utterance"),
      ParameterContract(
        "replyEnds", .list(of: .string, count: 0...16), default: .list([]),
        text: """
          with `replies`: a picture's message (`sei`) that contains one of these texts ends an utterance, also an interrupted one, with the \
          next sound that is quiet, however short that is
          """),
      ParameterContract(
        "silenceLevel", .number(-120...0), unit: "dB", default: -50,
        text: "with `replies`: sound is quiet below this RMS level, relative to full scale"),
    ],
    events: [
      EventContract(
        "connected",
        text:
          "the stream arrives: `ms` from the attempt to the first packet, `attempts` since the last connection"
      ),
      EventContract("size", text: "the stream's picture size from here on: `width`, `height`"),
      EventContract("disconnected", text: "the stream was lost or could not be opened: `reason`"),
      EventContract("reconnecting", text: "the next attempt follows in `ms`"),
      EventContract(
        "damaged",
        text: """
          packets could not be decoded and were dropped: `count` so far; at most once a second, and at the end of a connection
          """),
      EventContract(
        "overrun",
        text: """
          the graph did not keep up and the oldest pictures were dropped: `count` so far; at most once a second, and at the end of a \
          connection
          """),
      EventContract(
        "firstPicture",
        text: "the first picture of a stream was put out, `ms` after its `url` came; not again after a loss"),
      EventContract(
        "sei",
        text: """
          the sender's message in a picture (H.264 SEI, user data unregistered): `picture` is its position, `uuid` the message's kind, \
          `bytes` its length, and its content `text` or, if it is none, or has very many characters to escape, `base64`; content of more \
          than 2,048 bytes is left out
          """),
      EventContract(
        "ended",
        text: """
          the stream is over: `why` is `stopped`, `replaced` or, after the last attempt, `lost`; only with `address` linked
          """),
      EventContract(
        "error",
        text: """
          what came at the input `address` is no address, or cannot be used: `text`, `cure`; the present stream continues
          """),
      EventContract(
        "cancelled",
        text: """
          with `replies`, the rest of an interrupted utterance is over: `samples` and `ms` of sound were replaced by silence
          """),
    ],
    lane: .bulk, budget: 50_000, drive: .itself,
    asynchronousPaths: ["out", "audio", NodeContract.eventsPort].map {
      AsynchronousPath(from: "address", to: $0)
    },
    followsVirtualClock: false,
    examples: [
      #"{ "type": "rtmp.pull", "url": "${env:STREAM_URL}", "width": 1280, "height": 720 }"#,
      #"{ "type": "rtmp.pull", "width": 540, "height": 960, "rate": 25, "replies": true, "replyEnds": ["TextOver", "AudioOver"] }"#,
    ],
    resolve: resolve)

  enum Event: Int {
    case connected, size, disconnected, reconnecting, damaged, overrun
    case firstPicture, sei, ended, error, cancelled
  }

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    resolution.pacing = .live
    resolution.checkStreamAddress()
    resolution.outputs["out"] = .video(
      width: values.integer("width"), height: values.integer("height"),
      rate: FrameRate(values.integer("rate")))
    // Room for a library's message, and for one in a picture.
    resolution.outputs[NodeContract.eventsPort] = OutputShape(.event, packetDuration: nil, packetBytes: 4_096)
    let rate = values.integer("soundRate")
    resolution.outputs["audio"] = .pcm(
      rate: rate, channels: values.integer("channels"), sample: values.sample("sample") ?? .s16,
      frames: AudioLimits.frames(milliseconds: values.number("frame"), rate: rate))
  }
}
