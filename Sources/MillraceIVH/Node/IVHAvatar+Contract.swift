public import MillraceCore
internal import MillraceDialog
internal import MillraceService

extension IVHAvatar {
  public static let contract = NodeContract(
    "ivh.avatar", "a talking figure, rendered by Tencent's interactive virtual human (IVH)",
    text: """
      Creates a session, waits until it is active, and drives the figure with texts or with a voice. Picture and sound come as a stream: link \
      `stream` to the input `address` of `rtmp.pull` with `replies`, and its events and those of playback to `control`, so that the session \
      starts when the first picture is there, and `listening` means that the figure was heard.
      """,
    inputs: [
      PortContract(
        "audio", .pcm(rates: .only(16_000), channels: .only(1), samples: [.s16]),
        text: "a voice that drives the figure, or is recognised where texts drive it", required: false, holds: 1),
      PortContract("text", .kind(.text), text: "questions, or text to speak", required: false, holds: 1),
      PortContract(
        "control", .kind(.event).or(.kind(.text)),
        text: "commands, and the events of audio.play and rtmp.pull", required: false, holds: 1),
    ],
    outputs: [
      PortContract("text", .kind(.text), text: "what is spoken, sentence by sentence", required: false),
      PortContract(
        "stream", .kind(.text), text: "the address of picture and sound; empty when the stream is over",
        required: false),
    ],
    parameters: parameters, events: DialogEvent.contracts, lane: .external, budget: 200, drive: .itself,
    asynchronousPaths: ["audio", "text", "control"].flatMap { from in
      ["text", "stream", "events"].map { AsynchronousPath(from: from, to: $0) }
    }, followsVirtualClock: false,
    examples: [
      #"{ "type": "ivh.avatar", "key": "${env:IVH_APPKEY}", "token": "${env:IVH_ACCESSTOKEN}", "user": "u1", "project": "p1" }"#,
      #"{ "type": "ivh.avatar", "key": "${env:IVH_APPKEY}", "token": "${env:IVH_ACCESSTOKEN}", "user": "u1", "generation": "stream", "driver": "ownVoice", "voice": "reply" }"#,
    ],
    resolve: { IVHResolution.resolve(&$0) })

  private static let parameters: [ParameterContract] =
    connection + figure + driving + room + times + ServiceParameters.reconnection + ServiceParameters.network

  private static let connection: [ParameterContract] = [
    ParameterContract(
      "generation", .choice(IVHGeneration.allCases.map(\.rawValue)), default: "session",
      text: "the interface: session, which the vendor documents today, or stream, that of its iOS SDK"),
    ParameterContract("key", .string, required: true, secret: .whole, text: "the appkey of the account"),
    ParameterContract(
      "token", .string, required: true, secret: .whole, text: "the accesstoken, which signs every request"),
    ParameterContract(
      "user", .string, required: true,
      text: "id of the user; another session of the same user ends this one"),
    ParameterContract(
      "url", .string, default: "https://gw.tvs.qq.com", secret: .address,
      text: "address of the service; international: https://gw-sg.tvs.qq.com"),
    ParameterContract(
      "wsUrl", .string, secret: .address,
      text: "address of the command channel; default: that of `url`, as a WebSocket"),
    ParameterContract(
      "session", .string, text: "id of the session: private deployments of the stream generation only"),
    ServiceParameters.open, ServiceParameters.afterEnd, ServiceParameters.linger, ServiceParameters.eventBytes,
    ParameterContract(
      "raw", .bool, default: false,
      text: "true: every message of the channel is also an event `extra` named commandChannel"),
  ]

  private static let figure: [ParameterContract] = [
    ParameterContract("project", .string, text: "id of the project (session generation)"),
    ParameterContract("asset", .string, text: "key of a figure, in place of a project (session generation)"),
    ParameterContract("timbre", .string, text: "key of the voice, with `asset`"),
    ParameterContract("alpha", .bool, default: false, text: "true: a picture with an alpha channel (session generation)"),
    ParameterContract("userInfo", .string, secret: .credentials, text: "information on the user, for the platform's dialogue"),
    ParameterContract(
      "protocol", .choice(IVHCreation.Delivery.allCases.map(\.rawValue)), default: "rtmp",
      text: "how the picture is delivered: rtmp, which `rtmp.pull` plays; trtc or webrtc, for other players"),
    ParameterContract(
      "pushUrl", .string, secret: .address,
      text: "an RTMP server of one's own, to which the service pushes the picture"),
  ]

  private static let driving: [ParameterContract] = [
    ParameterContract(
      "driver", .choice(["text", "changedVoice", "ownVoice"]), default: "text",
      text:
        "what drives the figure: texts; a voice whose timbre the service changes (stream generation); a voice as it is, and texts (session generation)"
    ),
    ServiceParameters.text,
    ParameterContract(
      "textsBy", .choice(["channel", "http"]), default: "channel", text: "how texts are sent"),
    ParameterContract(
      "voice", .choice(["microphone", "reply"]), default: "microphone",
      text: "what `audio` is: a microphone, of which the latest is sent, or a bot's reply, which waits and is sent as a whole"),
    ParameterContract(
      "mode", .choice(IVHRules.Mode.allCases.map(\.rawValue)), default: "duplex",
      text: "of a microphone: everything is sent, or what comes between `startSpeech` and `stopSpeech`"),
    ParameterContract(
      "frame", .integer(100...200), unit: "ms",
      text: "audio per packet: 100 or 200 (stream generation, default 100), 160 (session generation)"),
    ParameterContract(
      "preRoll", .number(0...10_000), unit: "ms", default: 300,
      text: "audio of a microphone kept while it must not be sent; sent later, everything after it is as late"),
    ParameterContract(
      "streamMaxInterval", .integer(2_000...6_000), unit: "ms",
      text: "after this long without a packet the service ends an utterance (session generation)"),
  ]

  private static let room: [ParameterContract] = [
    ParameterContract("trtcApp", .string, text: "TRTC application of one's own; default: the platform's, for debugging only"),
    ParameterContract("trtcRoom", .integer(1...4_294_967_294), text: "number of the room; default: chosen by the service"),
    ParameterContract("trtcRoomName", .string, text: "name of the room, in place of a number (session generation)"),
    ParameterContract(
      "trtcAutoRoom", .choice(["number", "text"]), text: "how the service names a room it chooses (session generation)"),
    ParameterContract("trtcUserSig", .string, secret: .whole, text: "signature of the figure as a user, with `trtcApp`"),
    ParameterContract("trtcPrivateMapKey", .string, secret: .whole, text: "permission key of the figure, with `trtcApp`"),
  ]

  private static let times: [ParameterContract] = [
    ParameterContract(
      "start", .choice(IVHRules.Start.allCases.map(\.rawValue)), default: "firstPicture",
      text:
        "when the session is started: with the first picture, now, or never (stream generation: the service starts by itself after 10 s)"
    ),
    ParameterContract(
      "picture", .number(100...600_000), unit: "ms", default: 15_000,
      text: "longest wait for the first picture; then the session is started without it"),
    ParameterContract(
      "poll", .number(50...60_000), unit: "ms", default: 1_000, text: "interval at which a new session is asked for its state"),
    ParameterContract(
      "prepare", .number(1_000...600_000), unit: "ms", default: 150_000, text: "longest preparation of a session"),
    ParameterContract(
      "heartBeat", .number(100...59_000), unit: "ms", default: 45_000, text: "interval of heartbeats"),
  ]
}
