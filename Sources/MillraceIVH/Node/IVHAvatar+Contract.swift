public import MillraceCore
internal import MillraceDialog
internal import MillraceService

extension IVHAvatar {
  public static let contract = NodeContract(
    "ivh.avatar", "an avatar rendered by Tencent's interactive virtual human service (IVH)",
    text: """
      Creates a session, waits until it is active, and drives the avatar with texts or with a voice. Video and audio arrive as one stream: \
      link `stream` to the input `address` of `rtmp.pull` (with `replies`), and the events of `rtmp.pull` and of playback to `control`, \
      directly or through `dialog.turn`. The session then starts with the first picture, and `listening` is posted after the reply was heard.
      """,
    inputs: [
      PortContract(
        "audio", .pcm(rates: .only(16_000), channels: .only(1), samples: [.s16]),
        text: "speech for the avatar to speak, or, with `driver` text, speech to recognise", required: false,
        holds: 1),
      PortContract("text", .kind(.text), text: "questions, or text to speak", required: false, holds: 1),
      PortContract(
        "control", .kind(.event).or(.kind(.text)),
        text: "commands, and the events of audio.play and rtmp.pull", required: false, holds: 1),
    ],
    outputs: [
      PortContract("text", .kind(.text), text: "what is spoken, sentence by sentence", required: false),
      PortContract(
        "stream", .kind(.text), text: "address of the stream; empty when it has ended",
        required: false),
    ],
    parameters: parameters, events: DialogEvent.contracts, lane: .external, budget: 200, drive: .itself,
    asynchronousPaths: ["audio", "text", "control"].flatMap { from in
      ["text", "stream", "events"].map { AsynchronousPath(from: from, to: $0) }
    }, followsVirtualClock: false,
    examples: [
      #"{ "type": "ivh.avatar", "key": "${env:IVH_APPKEY}", "token": "${env:IVH_ACCESSTOKEN}", "user": "u1", "project": "p1" }"#,
      #"{ "type": "ivh.avatar", "key": "${env:IVH_APPKEY}", "token": "${env:IVH_ACCESSTOKEN}", "user": "u1", "generation": "stream", "driver": "originalVoice", "audioFrom": "reply" }"#,
    ],
    resolve: { IVHResolution.resolve(&$0) })

  private static let parameters: [ParameterContract] =
    connection + avatar + driving + room + times + ServiceParameters.reconnection + ServiceParameters.network

  private static let connection: [ParameterContract] = [
    ParameterContract(
      "generation", .choice(IVHGeneration.allCases.map(\.rawValue)), default: "session",
      text: "generation of the interface: session, the current one, or stream, that of the iOS SDK"),
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
    ServiceParameters.open, ServiceParameters.close, ServiceParameters.afterEnd, ServiceParameters.linger,
    ServiceParameters.eventBytes,
    ParameterContract(
      "raw", .bool, default: false,
      text: "true: every message of the channel is also an event `extra` named commandChannel"),
  ]

  private static let avatar: [ParameterContract] = [
    ParameterContract("project", .string, text: "id of the project (session generation)"),
    ParameterContract("asset", .string, text: "key of an avatar, instead of a project (session generation)"),
    ParameterContract("voice", .string, text: "key of the voice (TimbreKey), with `asset`"),
    ParameterContract(
      "alpha", .bool, default: false, text: "true: a picture with an alpha channel (session generation)"),
    ParameterContract(
      "userInfo", .string, secret: .credentials,
      text: "information on the user, passed to the platform's dialogue"),
    ParameterContract(
      "protocol", .choice(IVHCreation.Delivery.allCases.map(\.rawValue)), default: "rtmp",
      text: "how the picture is delivered: rtmp, which `rtmp.pull` plays; trtc or webrtc, for other players"),
    ParameterContract(
      "pushUrl", .string, secret: .address,
      text: "an RTMP server of your own, to which the service pushes the stream"),
  ]

  private static let driving: [ParameterContract] = [
    ParameterContract(
      "driver", .choice(["text", "convertedVoice", "originalVoice"]), default: "text",
      text:
        "text; convertedVoice: audio whose voice the service converts (stream generation); originalVoice: audio as it is, and text (text in the session generation only)"
    ),
    ServiceParameters.text,
    ParameterContract(
      "textsBy", .choice(["channel", "http"]), default: "channel", text: "how texts are sent"),
    ParameterContract(
      "audioFrom", .choice(["microphone", "reply"]), default: "microphone",
      text:
        "what `audio` is: microphone, whose oldest audio is dropped when it cannot be sent, or reply, a bot's reply, which waits and is sent completely"
    ),
    ParameterContract(
      "mode", .choice(IVHRules.Mode.allCases.map(\.rawValue)), default: "duplex",
      text: "a microphone is sent always, or only between `startSpeech` and `stopSpeech`"),
    ParameterContract(
      "frame", .integer(100...200), unit: "ms",
      text: "audio per packet: 100 or 200 (stream generation, default 100), 160 (session generation)"),
    ParameterContract(
      "preRoll", .number(0...10_000), unit: "ms", default: 300,
      text: "microphone audio kept until it may be sent; it delays all later audio by its length"),
    ParameterContract(
      "streamMaxInterval", .integer(2_000...6_000), unit: "ms",
      text: "after this long without a packet the service ends an utterance (session generation)"),
  ]

  private static let room: [ParameterContract] = [
    ParameterContract(
      "trtcApp", .string, text: "TRTC application of your own; default: the platform's, for debugging only"),
    ParameterContract(
      "trtcRoom", .integer(1...4_294_967_294), text: "number of the room; default: chosen by the service"),
    ParameterContract(
      "trtcRoomName", .string, text: "name of the room, instead of a number (session generation)"),
    ParameterContract(
      "trtcAutoRoom", .choice(["number", "text"]),
      text: "how the service names a room it chooses (session generation)"),
    ParameterContract(
      "trtcUserSig", .string, secret: .whole, text: "signature of the avatar as a user, with `trtcApp`"),
    ParameterContract(
      "trtcPrivateMapKey", .string, secret: .whole, text: "permission key of the avatar, with `trtcApp`"),
  ]

  private static let times: [ParameterContract] = [
    ParameterContract(
      "start", .choice(IVHRules.Start.allCases.map(\.rawValue)), default: "firstPicture",
      text:
        "when the session is started: with the first picture, now, or never (stream generation: the service starts by itself after 10 s)"
    ),
    ParameterContract(
      "picture", .number(100...600_000), unit: "ms", default: 15_000,
      text: "timeout for the first picture; the session then starts without it"),
    ParameterContract(
      "poll", .number(50...60_000), unit: "ms", default: 1_000,
      text: "polling interval while a session is prepared"),
    ParameterContract(
      "prepare", .number(1_000...600_000), unit: "ms", default: 150_000,
      text: "timeout for preparing a session"),
    ParameterContract(
      "heartBeat", .number(100...59_000), unit: "ms", default: 45_000, text: "interval of heartbeats"),
    ParameterContract(
      "silence", .number(600...600_000), unit: "ms", default: 30_000,
      text: "after this long without anything from the service, pings included, the channel is lost"),
  ]
}
