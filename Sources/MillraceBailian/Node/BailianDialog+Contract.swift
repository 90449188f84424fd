public import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceService

extension BailianDialog {
  public static let contract = NodeContract(
    "bailian.dialog", "a voice dialogue with Alibaba's Bailian (DashScope multimodal dialog)",
    text: """
      Implements the service's WebSocket protocol: audio is sent continuously, replies are emitted as they arrive, and every event uses the \
      vocabulary that all services share. Link playback's events to `control`: the service is then informed of what was really heard.
      """,
    inputs: [
      PortContract("audio", uplinkAudio, text: "the user's speech", required: false, holds: 1),
      PortContract(
        "image", .kind(.jpeg), text: "images of the video channel, for LiveAI", required: false, holds: 1),
      PortContract("text", .kind(.text), text: "questions, or text to speak", required: false, holds: 1),
      PortContract(
        "control", .kind(.event).or(.kind(.text)), text: "commands, and the events of audio.play",
        required: false, holds: 1),
    ],
    outputs: [
      PortContract("audio", downlinkAudio, text: "replies, one utterance each", required: false),
      PortContract("text", .kind(.text), text: "the final text of each reply", required: false),
    ],
    parameters: parameters, events: DialogEvent.contracts, lane: .external, budget: 200, drive: .itself,
    asynchronousPaths: ["audio", "image", "text", "control"].flatMap { from in
      ["audio", "text", "events"].map { AsynchronousPath(from: from, to: $0) }
    }, followsVirtualClock: false,
    examples: [
      #"{ "type": "bailian.dialog", "key": "${env:DASHSCOPE_API_KEY}", "workspace": "llm-1", "app": "mm_1", "user": "u1" }"#,
      #"{ "type": "bailian.dialog", "key": "${env:DASHSCOPE_API_KEY}", "workspace": "llm-1", "app": "mm_1", "user": "u1", "mode": "pushToTalk", "format": "mp3", "voice": "longxiaochun_v2" }"#,
    ],
    resolve: { BailianResolution.resolve(&$0) })

  private static let uplinkAudio = FormatConstraint.pcm(
    rates: .oneOf(BailianAudio.rates.sorted()), channels: .only(1), samples: [.s16]
  ).or(.kind(.opus))
  private static let downlinkAudio = FormatConstraint.pcm(
    rates: .oneOf(BailianAudio.rates.sorted()), channels: .only(1), samples: [.s16]
  ).or(.kind(.mp3)).or(.kind(.ogg)).or(.kind(.opus))

  private static let parameters: [ParameterContract] =
    connection + ServiceParameters.reconnection + ServiceParameters.network + upward + downward + aboutUser

  private static let connection: [ParameterContract] = [
    ParameterContract(
      "key", .string, required: true, secret: .whole, text: "the API key, or a temporary one"),
    ParameterContract("workspace", .string, required: true, text: "id of the workspace"),
    ParameterContract("app", .string, required: true, text: "id of the application"),
    ParameterContract("user", .string, required: true, text: "id of the user: at most 36 characters"),
    ParameterContract(
      "url", .string, default: "wss://dashscope.aliyuncs.com/api-ws/v1/inference", secret: .address,
      text: "address of the service"),
    ParameterContract(
      "workspaceHeader", .bool, default: false, text: "true: also sends the workspace as a header"),
    ParameterContract(
      "dataInspection", .bool, default: false,
      text: "true: the service inspects the content (X-DashScope-DataInspection)"),
    ParameterContract("dialog", .string, text: "id of the dialogue to resume"),
    ParameterContract(
      "mode", .choice(DialogMode.allCases.map(\.rawValue)), default: "duplex",
      text: "how the user takes a turn"),
    ServiceParameters.text,
    ParameterContract(
      "live", .choice(BailianRules.Live.allCases.map(\.rawValue)), default: "command",
      text: "when the video channel is opened: never, on the service's command, or at the start"),
    ServiceParameters.afterEnd, ServiceParameters.preRoll, ServiceParameters.linger, ServiceParameters.renew,
    ServiceParameters.open, ServiceParameters.close,
    ParameterContract(
      "begin", .number(1...600_000), unit: "ms", default: 10_000,
      text: "timeout from the connection to the service's first Listening"),
    ParameterContract(
      "heartBeat", .number(100...50_000), unit: "ms", default: 20_000, text: "interval of heartbeats"),
    ParameterContract(
      "silence", .number(100...600_000), unit: "ms", default: 50_000,
      text: "longest time without any message from the service; then the connection counts as lost"),
    ServiceParameters.eventBytes,
  ]

  private static let upward: [ParameterContract] = [
    ParameterContract(
      "frame", .number(10...1_000), unit: "ms", default: 100,
      text: "audio per WebSocket message (PCM); the service recommends 100"),
    ParameterContract(
      "opusUp", .choice(["raw-opus", "opus"]), default: "raw-opus",
      text:
        "how Opus packets from `audio` are sent: raw-opus, one per WebSocket message; opus, in Ogg pages of `frame`"
    ),
    ParameterContract("video", .bool, default: false, text: "true: images may be sent (AudioAndVideo)"),
    ParameterContract("vocabulary", .string, text: "id of a list of hot words"),
    ParameterContract(
      "replaceWords", .list(of: .string, count: 0...100), default: .list([]),
      text: "words that recognition replaces: `source=target`, or JSON with `match_mode`"),
    ParameterContract("serverVADStart", .bool, text: "enable_server_vad_start, unchanged"),
  ]

  private static let downward: [ParameterContract] = [
    ParameterContract(
      "format", .choice(BailianAudio.Down.allCases.map(\.rawValue) + ["none"]), default: "pcm",
      text: "format of replies: opus is Ogg Opus, raw-opus Opus packets, none no audio"),
    ParameterContract(
      "rate", .integer(8_000...48_000), unit: "Hz", default: 24_000,
      text: "sample rate of replies: 8000, 16000, 24000, 48000"),
    ParameterContract("voice", .string, text: "the voice; default: the application's"),
    ParameterContract(
      "opusFrame", .integer(10...120), unit: "ms", text: "duration of an Opus packet of a reply"),
    ParameterContract("opusBitrate", .integer(6...510), unit: "kbit/s", text: "bit rate of Opus replies"),
    ParameterContract("volume", .integer(0...100), text: "volume of the voice"),
    ParameterContract("speechRate", .integer(50...200), unit: "%", text: "speed of the voice"),
    ParameterContract("pitchRate", .integer(50...200), unit: "%", text: "pitch of the voice"),
    ParameterContract(
      "texts", .list(of: .choice(["transcript", "dialog"]), count: 0...2),
      default: .list(["transcript", "dialog"]),
      text: "which texts the service sends: what the user said, the reply"),
    ParameterContract(
      "rateLimit", .integer(1...10_000_000), unit: "bytes/s",
      text: "limit for the audio of replies; default: faster than real time"),
    ParameterContract("incremental", .bool, default: false, text: "true: reply text arrives in pieces"),
    ParameterContract(
      "wordTimestamps", .bool, default: false, text: "true: the service sends word timestamps"),
    ParameterContract("instruction", .string, text: "how to speak, as a prompt"),
    ParameterContract("debug", .bool, default: false, text: "true: the service sends debug information"),
  ]

  private static let aboutUser: [ParameterContract] = [
    ParameterContract("device", .string, text: "id of the device: at most 40 characters"),
    ParameterContract("ip", .string, text: "the user's public IP address"),
    ParameterContract("latitude", .string, text: "the user's latitude"),
    ParameterContract("longitude", .string, text: "the user's longitude"),
    ParameterContract("city", .string, text: "the user's city"),
    ParameterContract("foregroundApp", .string, text: "the application in the foreground"),
    ParameterContract(
      "sdk", .string, text: "name of the client, in the form of the vendor's SDKs"),
    ParameterContract(
      "promptVariables", .list(of: .string, count: 0...100), default: .list([]), secret: .credentials,
      text: "variables of the application's prompt: `name=value`"),
    ParameterContract(
      "bizParams", .string, secret: .credentials,
      text: "biz_params as JSON, in addition to the prompt variables"),
    ParameterContract(
      "dialogAttributes", .string, secret: .credentials, text: "dialog_attributes as JSON"),
    ParameterContract(
      "clientStatus", .string, secret: .credentials, text: "client_info.status as JSON"),
  ]
}
