public import MillraceCore
internal import MillraceDialog
internal import MillraceService

extension TuyaAgent {
  public static let contract = NodeContract(
    "tuya.agent", "a dialogue with an agent of Tuya's AI stream: voice, pictures, texts, files",
    text: """
      Implements the service's own protocol over TLS. A node is one session; several nodes of a process can share a connection by its name, and \
      one microphone, which is then sent once. Push-to-talk and tap-to-talk are an event each; duplex is one long event, in which a voice over \
      a reply interrupts it. Link playback's events to `control`: `listening` is then posted when the reply was heard.
      """,
    inputs: [
      PortContract(
        "audio",
        .pcm(rates: .only(16_000), channels: .only(1), samples: [.s16]).or(.kind(.opus)),
        text: "the user's speech", required: false, holds: 1),
      PortContract(
        "image", .kind(.jpeg), text: "pictures for the next question, or a video of them",
        required: false, holds: 1),
      PortContract("text", .kind(.text), text: "questions", required: false, holds: 1),
      PortContract("file", .kind(.text), text: "paths of files to send", required: false, holds: 1),
      PortContract(
        "control", .kind(.event).or(.kind(.text)), text: "commands, and the events of audio.play",
        required: false, holds: 1),
    ],
    outputs: [
      PortContract(
        "audio",
        .pcm(rates: .any, channels: .only(1), samples: [.s16]).or(.kind(.mp3)).or(.kind(.opus)),
        text: "replies, one utterance each", required: false),
      PortContract("image", .kind(.jpeg), text: "pictures of the agent", required: false),
      PortContract("text", .kind(.text), text: "the final text of each reply", required: false),
      PortContract("file", .kind(.text), text: "paths of files received, below `cache`", required: false),
    ],
    parameters: parameters, events: DialogEvent.contracts, lane: .external, budget: 200, drive: .itself,
    asynchronousPaths: ["audio", "image", "text", "file", "control"].flatMap { from in
      ["audio", "image", "text", "file", "events"].map { AsynchronousPath(from: from, to: $0) }
    }, followsVirtualClock: false,
    examples: [
      #"{ "type": "tuya.agent", "provider": "https://tokens.example/d.json", "localKey": "${env:TUYA_LOCAL_KEY}", "agent": "a1", "home": "h1" }"#,
      #"{ "type": "tuya.agent", "url": "tls://stream.example:443", "client": "c1", "localKey": "${env:TUYA_LOCAL_KEY}", "token": "${env:TUYA_AGENT_TOKEN}", "mode": "pushToTalk", "reply": "pcm" }"#,
    ],
    resolve: { TuyaResolution.resolve(&$0) })

  private static let parameters: [ParameterContract] =
    connection + token + session + turns + upward + downward + times + ServiceParameters.reconnection
    + ServiceParameters.network

  private static let connection: [ParameterContract] = [
    ParameterContract(
      "identity", .choice(["app", "device"]), default: "app",
      text: "who connects: an app, or a device (also for one that an app acts for)"),
    ParameterContract(
      "url", .string, secret: .address,
      text:
        "address of the service, tls://host:port; default: the provider's. tcp: on this machine, and with dialect v1"
    ),
    ParameterContract("client", .string, text: "id of the client; default: the provider's"),
    ParameterContract(
      "localKey", .string, secret: .whole, text: "key from which those of a connection are derived"),
    ParameterContract(
      "dialect", .choice(["v21", "v1"]), default: "v21",
      text: "version of the protocol: v21, over TLS; v1, of older installations, with encryption of its own"),
    ParameterContract(
      "signLevel", .integer(0...2), default: 2,
      text: "how frames are signed (v21): 0 not at all, 1 with 20 bytes, 2 with 32"),
    ParameterContract(
      "security", .choice(["sl4", "sl3", "sl2"]), default: "sl4",
      text: "encryption of v1: AES-256-GCM, AES-256-CBC, ChaCha20"),
    ParameterContract("user", .string, text: "name to log in with (v1); default: the provider's"),
    ParameterContract(
      "password", .string, secret: .whole, text: "credential to log in with (v1); default: the provider's"),
    ParameterContract(
      "connection", .string,
      text:
        "name of a connection that the nodes of this process with this name share; default: one of its own"),
    ParameterContract(
      "ping", .integer(1_000...600_000), unit: "ms", default: 60_000, text: "longest time without a ping"),
    ParameterContract(
      "maxFragment", .integer(1_024...65_535), unit: "bytes", default: 4_096,
      text: "largest content of a frame, in both directions"),
    ServiceParameters.open,
  ]

  private static let token: [ParameterContract] = [
    ParameterContract(
      "token", .string, secret: .whole, text: "the agent token; the provider is then not asked"),
    ParameterContract(
      "provider", .string, secret: .address,
      text: "address of your server that gives out tokens, and where to connect with them"),
    ParameterContract(
      "providerHeaders", .list(of: .string, count: 0...32), default: .list([]), secret: .credentials,
      text: "headers of the request to the provider, `Name: value`; credentials as `{env:NAME}`"),
    ParameterContract("agent", .string, text: "id of the agent (solutionCode)"),
    ParameterContract("home", .string, text: "id of the home (ownerId)"),
    ParameterContract("device", .string, text: "id of the device, with the identity device"),
    ParameterContract(
      "api", .string, default: "m.life.ai.token.get",
      text: "the vendor's interface that the provider is to ask"),
    ParameterContract("apiVersion", .string, default: "1.0", text: "version of that interface"),
    ParameterContract("miniApp", .string, text: "id of the MiniApp (miniProgramId)"),
    ParameterContract(
      "onlyAsr", .bool, default: false, text: "true: speech is recognised, and not answered"),
    ParameterContract("needTts", .bool, default: true, text: "true: replies are spoken"),
    ParameterContract(
      "extParams", .string, secret: .credentials, text: "further extParams of the request, as JSON"),
    ParameterContract(
      "bizCode", .integer(0...4_294_967_295),
      text: "business code of the session; default: the provider's, or 65537"),
    ParameterContract(
      "bizTag", .integer(0...Int.max), text: "business tag of the session; default: the provider's, or 0"),
    ParameterContract(
      "sends", .list(of: .choice(kinds), count: 0...16), default: .list([]),
      text: "what the agent takes, one channel each; default: the provider's, or audio, text, image"),
    ParameterContract(
      "receives", .list(of: .choice(kinds), count: 0...16), default: .list([]),
      text: "what the agent gives, one channel each; default: the provider's, or audio, text"),
    ParameterContract(
      "tokenLife", .integer(60...31_536_000), unit: "s", default: 86_400,
      text: "how long what the provider gives is valid; it is renewed ahead of that"),
  ]

  private static let kinds = ["video", "audio", "image", "file", "text"]

  private static let session: [ParameterContract] = [
    ParameterContract("session", .string, text: "id of the session; default: a new one"),
    ParameterContract(
      "shares", .bool, default: false,
      text:
        "true: sessions of a named connection with the same source hear it from one stream, which is sent once"
    ),
    ParameterContract(
      "cache", .path, text: "folder for received files; default: none, and files are discarded"),
    ParameterContract(
      "sessionAttributes", .string, secret: .credentials, text: "sessionAttributes of the session, as JSON"),
    ParameterContract(
      "chatAttributes", .string, secret: .credentials, text: "chatAttributes of every event, as JSON"),
    ParameterContract(
      "eventAttributes", .string, secret: .credentials,
      text: "further attributes of every event that begins, as JSON"),
    ParameterContract(
      "tools", .path,
      text: "file with tools that the agent may call (MCP): their names, descriptions and schemas"),
    ServiceParameters.afterEnd, ServiceParameters.linger, ServiceParameters.eventBytes,
    ParameterContract(
      "raw", .bool, default: false, text: "true: every text and event of the cloud is also an event `extra`"),
  ]

  private static let turns: [ParameterContract] = [
    ParameterContract(
      "mode", .choice(DialogMode.allCases.map(\.rawValue)), default: "duplex",
      text: "how the user takes a turn"),
    ParameterContract(
      "speech", .choice(["long", "single"]), default: "long",
      text: "duplex: one long event for the whole dialogue, or an event for each turn"),
    ParameterContract(
      "vad", .bool, default: true,
      text: "true: the cloud detects the end of speech in tap-to-talk and duplex (asr.enableVad)"),
    ParameterContract(
      "interrupt", .bool, default: true,
      text: "true: speech over a reply interrupts it; in long events only (processing.interrupt)"),
  ]

  private static let upward: [ParameterContract] = [
    ParameterContract(
      "frame", .integer(20...120), unit: "ms", default: 40,
      text: "duration of a frame of the user's audio; with Opus that of its packets: 40 or 60"),
    ParameterContract(
      "bitrate", .integer(16...48), unit: "kbit/s", default: 16,
      text: "constant bit rate of Opus at `audio`, 16 or 48: every packet has bitrate * frame / 8 bytes"),
    ParameterContract(
      "frames", .integer(1...10), default: 1,
      text: "frames in a packet on the wire; the vendor's app sends 5 of 40 ms"),
    ServiceParameters.preRoll,
    ParameterContract(
      "pictures", .choice(["image", "video"]), default: "image",
      text:
        "what `image` is: images, of which the latest goes with the next question, or a video, sent as it comes"
    ),
    ParameterContract(
      "pictureParts", .integer(0...65_000), unit: "bytes", default: 0,
      text:
        "parts in which pictures and files are sent, so that sound fits between; 0: pictures whole, files in 65,536"
    ),
    ParameterContract(
      "pictureRate", .integer(0...1_000_000), unit: "kbit/s", default: 0,
      text: "highest rate at which pictures and files are sent; 0: none"),
  ]

  private static let downward: [ParameterContract] = [
    ParameterContract(
      "reply", .choice(["mp3", "pcm", "opus"]), default: "mp3", text: "format of replies at `audio`"),
    ParameterContract(
      "rate", .integer(8_000...48_000), unit: "Hz", default: 16_000, text: "sample rate of replies"),
    ParameterContract(
      "replyBitrate", .integer(6...320), unit: "kbit/s",
      text: "bit rate of replies; default: 32 for MP3, 16 for Opus"),
    ParameterContract(
      "wishes", .list(of: .string, count: 0...8), default: .list([]),
      text:
        "forms of replies in order of wish, `format/Hz/kbit/s`, all with the format of `reply`; default: one"),
  ]

  private static let times: [ParameterContract] = [
    ServiceParameters.renew,
    ParameterContract(
      "prepare", .number(1_000...600_000), unit: "ms", default: 15_000,
      text: "timeout for the provider and the connection together"),
    ParameterContract(
      "answer", .number(1_000...600_000), unit: "ms", default: 40_000,
      text: "timeout from a question to its answer, and for a pause within one"),
    ParameterContract(
      "toolAnswer", .number(100...600_000), unit: "ms", default: 30_000,
      text: "timeout for the program to answer the call of a tool"),
  ]
}
