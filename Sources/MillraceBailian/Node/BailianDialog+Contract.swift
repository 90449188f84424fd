public import MillraceCore
internal import MillraceDialog
internal import MillraceNet

extension BailianDialog {
  public static let contract = NodeContract(
    "bailian.dialog", "a voice dialogue with Alibaba's Bailian (DashScope multimodal dialog)",
    text: """
      Speaks the service's WebSocket protocol: sound up without a break, replies down as they come, every event in the words \
      all services share. Playback's events belong at `control`: the service is told what was really heard.
      """,
    inputs: [
      PortContract("audio", soundUp, text: "what the user says", required: false, holds: 1),
      PortContract("image", .kind(.jpeg), text: "pictures of a film, for LiveAI", required: false, holds: 1),
      PortContract("text", .kind(.text), text: "questions, or words to say", required: false, holds: 1),
      PortContract(
        "control", .kind(.event).or(.kind(.text)), text: "commands, and the events of audio.play",
        required: false, holds: 1),
    ],
    outputs: [
      PortContract("audio", soundDown, text: "replies, an utterance each", required: false),
      PortContract("text", .kind(.text), text: "the final words of each answer", required: false),
    ],
    parameters: parameters, events: DialogEvent.contracts, lane: .external, budget: 200, drive: .itself,
    asynchronousPaths: ["audio", "image", "text", "control"].flatMap { from in
      ["audio", "text", "events"].map { AsynchronousPath(from: from, to: $0) }
    }, followsVirtualClock: false,
    examples: [
      #"{ "type": "bailian.dialog", "key": "${env:DASHSCOPE_API_KEY}", "workspace": "llm-1", "app": "mm_1", "user": "u1" }"#,
      #"{ "type": "bailian.dialog", "key": "${env:DASHSCOPE_API_KEY}", "workspace": "llm-1", "app": "mm_1", "user": "u1", "mode": "pushToTalk", "format": "mp3", "voice": "longxiaochun_v2" }"#,
    ],
    resolve: { BailianShape.resolve(&$0) })

  private static let soundUp = FormatConstraint.pcm(
    rates: .oneOf(BailianAudio.rates.sorted()), channels: .only(1), samples: [.s16]
  ).or(.kind(.opus))
  private static let soundDown = FormatConstraint.pcm(
    rates: .oneOf(BailianAudio.rates.sorted()), channels: .only(1), samples: [.s16]
  ).or(.kind(.mp3)).or(.kind(.ogg)).or(.kind(.opus))

  private static let parameters: [ParameterContract] = connection + upward + downward + aboutUser

  private static let connection: [ParameterContract] = [
    ParameterContract(
      "key", .string, required: true, secret: .whole, text: "the API key, or a temporary one"),
    ParameterContract("workspace", .string, required: true, text: "id of the workspace"),
    ParameterContract("app", .string, required: true, text: "id of the application"),
    ParameterContract("user", .string, required: true, text: "who speaks: at most 36 characters"),
    ParameterContract(
      "url", .string, default: "wss://dashscope.aliyuncs.com/api-ws/v1/inference", secret: .address,
      text: "where the service is"),
    ParameterContract(
      "workspaceHeader", .bool, default: false, text: "true: the workspace goes as a header too"),
    ParameterContract(
      "dataInspection", .bool, default: false,
      text: "true: the service inspects what is said (X-DashScope-DataInspection)"),
    ParameterContract("dialog", .string, text: "id of the dialogue to go on with"),
    ParameterContract(
      "mode", .choice(DialogMode.allCases.map(\.rawValue)), default: "duplex",
      text: "how the user takes the floor"),
    ParameterContract(
      "text", .choice(["ask", "say"]), default: "ask",
      text: "what the input `text` is: questions, or words to say"),
    ParameterContract(
      "live", .choice(BailianRules.Live.allCases.map(\.rawValue)), default: "command",
      text: "when a film's channel is asked for: never, when the service commands it, or at the start"),
    ParameterContract(
      "preRoll", .number(0...10_000), unit: "ms", default: 2_000,
      text: "sound that is kept while it must not be sent"),
    ParameterContract(
      "linger", .number(0...600_000), unit: "ms", default: 0,
      text: "after the end of `audio`, so long without anything ends the dialogue; 0: nothing does"),
    ParameterContract("reconnect", .bool, default: true, text: "true: connect again after a loss"),
    ParameterContract(
      "renew", .number(0...600_000), unit: "ms", default: 10_000,
      text: "wait for a new key (`refreshAuth`) when one that was good is not taken any more; 0: fail at once"
    ),
    ParameterContract(
      "first", .number(1...600_000), unit: "ms", default: 500, text: "first wait before that"),
    ParameterContract("most", .number(1...600_000), unit: "ms", default: 8_000, text: "longest wait"),
    ParameterContract(
      "giveUp", .number(0...86_400_000), unit: "ms", default: 0,
      text: "fail after so long without a connection; 0: never"),
    ParameterContract(
      "open", .integer(1...600_000), unit: "ms", default: 10_000, text: "longest time an attempt may take"),
    ParameterContract(
      "begin", .number(1...600_000), unit: "ms", default: 10_000,
      text: "longest time from the connection to the service's first Listening"),
    ParameterContract(
      "heartBeat", .number(100...50_000), unit: "ms", default: 20_000, text: "between two heartbeats"),
    ParameterContract(
      "silence", .number(100...600_000), unit: "ms", default: 50_000,
      text: "nothing at all from the service for so long is a loss"),
    ParameterContract(
      "eventBytes", .integer(1_024...65_536), unit: "bytes", default: 4_096,
      text: "longest event; members beyond it are left out"),
    ParameterContract("roots", .path, text: "certificates (PEM) to believe in place of the system's"),
    ParameterContract(
      "proxy", .string, default: "environment", secret: .address,
      text: "environment, none, or http://host:port"),
  ]

  private static let upward: [ParameterContract] = [
    ParameterContract(
      "frame", .number(10...1_000), unit: "ms", default: 100,
      text: "sound of one frame of the WebSocket (PCM); the service advises 100"),
    ParameterContract(
      "opusUp", .choice(["raw-opus", "opus"]), default: "raw-opus",
      text:
        "what packets of Opus at `audio` go up as: raw-opus, one a frame of the WebSocket; opus, in Ogg pages of `frame`"
    ),
    ParameterContract("video", .bool, default: false, text: "true: pictures may be sent (AudioAndVideo)"),
    ParameterContract("vocabulary", .string, text: "id of hot words"),
    ParameterContract(
      "replaceWords", .list(of: .string, count: 0...100), default: .list([]),
      text: "words that recognition puts in others' places: `source=target`, or JSON with `match_mode`"),
    ParameterContract("serverVADStart", .bool, text: "enable_server_vad_start, as it is"),
  ]

  private static let downward: [ParameterContract] = [
    ParameterContract(
      "format", .choice(BailianAudio.Down.allCases.map(\.rawValue) + ["none"]), default: "pcm",
      text: "what replies come as: opus is Ogg Opus, raw-opus packets, none no sound"),
    ParameterContract(
      "rate", .integer(8_000...48_000), unit: "Hz", default: 24_000,
      text: "of replies: 8000, 16000, 24000, 48000"),
    ParameterContract("voice", .string, text: "which voice; otherwise the application's"),
    ParameterContract(
      "opusFrame", .integer(10...120), unit: "ms", text: "length of an Opus packet of a reply"),
    ParameterContract("opusBitrate", .integer(6...510), unit: "kbit/s", text: "of Opus replies"),
    ParameterContract("volume", .integer(0...100), text: "of the voice"),
    ParameterContract("speechRate", .integer(50...200), unit: "%", text: "speed of the voice"),
    ParameterContract("pitchRate", .integer(50...200), unit: "%", text: "pitch of the voice"),
    ParameterContract(
      "texts", .list(of: .choice(["transcript", "dialog"]), count: 0...2),
      default: .list(["transcript", "dialog"]),
      text: "texts to send along: what the user said, what is answered"),
    ParameterContract(
      "rateLimit", .integer(1...10_000_000), unit: "bytes/s",
      text: "of replies' sound; otherwise faster than it is spoken"),
    ParameterContract("incremental", .bool, default: false, text: "true: answers' words come as pieces"),
    ParameterContract("wordTimestamps", .bool, default: false, text: "true: times of the words"),
    ParameterContract("instruction", .string, text: "how to speak, in words"),
    ParameterContract("debug", .bool, default: false, text: "true: the service tells of its inside"),
  ]

  private static let aboutUser: [ParameterContract] = [
    ParameterContract("device", .string, text: "id of the device: at most 40 characters"),
    ParameterContract("ip", .string, text: "the user's public address"),
    ParameterContract("latitude", .string, text: "of the user"),
    ParameterContract("longitude", .string, text: "of the user"),
    ParameterContract("city", .string, text: "of the user"),
    ParameterContract("foregroundApp", .string, text: "the application in front"),
    ParameterContract(
      "sdk", .string, text: "what speaks to the service, as the vendor's own SDKs name themselves"),
    ParameterContract(
      "promptVariables", .list(of: .string, count: 0...100), default: .list([]), secret: .credentials,
      text: "variables of the application's prompt: `name=value`"),
    ParameterContract(
      "bizParams", .string, secret: .credentials, text: "biz_params as JSON, beside the prompt's variables"),
    ParameterContract(
      "dialogAttributes", .string, secret: .credentials, text: "dialog_attributes as JSON"),
    ParameterContract(
      "clientStatus", .string, secret: .credentials, text: "client_info.status as JSON"),
  ]
}
