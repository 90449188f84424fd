public import MillraceCore
internal import MillraceDialog
internal import MillraceNet

extension NetWebSocket {
  public static let contract = NodeContract(
    "net.websocket", "a backend of one's own: sound, pictures and JSON over a WebSocket, as client or server",
    text: """
      With `url` it connects and, after a loss, connects again; with `listen` it waits for one visitor at a time, whoever that is. \
      Sound and pictures go as binary frames, texts and events as text frames. A server's certificate has to verify unless the \
      host is this machine.
      """,
    inputs: [
      PortContract("audio", sound, text: "sound to send, a frame a packet", required: false, holds: 1),
      PortContract("image", .kind(.jpeg), text: "pictures to send, a frame each", required: false, holds: 1),
      PortContract(
        "text", .kind(.text).or(.kind(.event)), text: "texts or events to send, a frame each",
        required: false,
        holds: 1),
    ],
    outputs: [
      PortContract("audio", sound, text: "sound that comes in binary frames", required: false),
      PortContract(
        "text", .kind(.text).or(.kind(.event)), text: "what comes in text frames", required: false),
    ],
    parameters: parameters,
    events: [
      EventContract("connected", text: "a connection is there: `attempts` it took"),
      EventContract(
        "disconnected", text: "it is over: `code` of the close, 1006 without a good-bye; `reason`"),
      EventContract(
        "reconnecting", text: "another attempt comes in `ms`; of a server: where it listens, in `text`"),
      EventContract(
        "error",
        text:
          "it failed, or a text frame is no event: `vendor`, `code`, `category`, `reaction`, `text`, as services tell errors"
      ),
      EventContract(
        "lost", text: "sound that nobody took: `ms` of it, before there was a connection or without one"),
      EventContract("badFrame", text: "a frame came that the node cannot take: `bytes`, `count` so far"),
    ],
    lane: .external, budget: 200, drive: .itself,
    asynchronousPaths: ["audio", "image", "text"].flatMap { from in
      ["audio", "text"].map { AsynchronousPath(from: from, to: $0) }
    }, followsVirtualClock: false,
    examples: [
      #"{ "type": "net.websocket", "url": "wss://bot.example.org/voice", "headers": ["Authorization: Bearer ${env:BOT_KEY}"] }"#,
      #"{ "type": "net.websocket", "listen": 8765, "framing": "tagged" }"#,
    ],
    resolve: { SocketShape.resolve(&$0) })

  private static let sound = FormatConstraint.pcm(
    rates: .range(8_000...96_000), channels: .range(1...2), samples: [.s16]
  ).or(.kind(.opus)).or(.kind(.mp3)).or(.kind(.ogg)).or(.kind(.aac))

  private static let parameters: [ParameterContract] = [
    ParameterContract("url", .string, text: "where to connect: ws: or wss:"),
    ParameterContract("listen", .integer(0...65_535), text: "port to wait at instead; 0: any"),
    ParameterContract("host", .string, default: "127.0.0.1", text: "address to wait at"),
    ParameterContract("path", .string, default: "/", text: "path a visitor has to ask for"),
    ParameterContract(
      "headers", .list(of: .string, count: 0...32), default: .list([]),
      text: "sent when connecting: `Name: value`"),
    ParameterContract(
      "protocols", .list(of: .string, count: 0...8), default: .list([]),
      text: "sub-protocols to offer, or to choose from for a visitor"),
    ParameterContract(
      "certificate", .path, text: "of a server that speaks TLS: its certificate and those above it (PEM)"),
    ParameterContract("key", .path, text: "of that certificate (PEM)"),
    ParameterContract(
      "framing", .choice(["raw", "tagged"]), default: "raw",
      text: "binary frames: the bytes alone, or behind a byte that says 1 for sound, 2 for a picture"),
    ParameterContract(
      "format", .choice(["pcm", "opus", "mp3", "ogg", "aac"]), default: "pcm", text: "what sound comes as"),
    ParameterContract(
      "rate", .integer(8_000...96_000), unit: "Hz", default: 16_000, text: "of sound that comes"),
    ParameterContract("channels", .integer(1...2), default: 1, text: "of sound that comes"),
    ParameterContract(
      "replies", .bool, default: true,
      text:
        "true: what comes is a bot's reply, held back while the graph has no room, and voided by an interruption; false: somebody's voice, as it is spoken"
    ),
    ParameterContract(
      "largest", .integer(1_024...16_777_216), unit: "bytes", default: 262_144,
      text: "largest message either way"),
    ParameterContract(
      "preRoll", .number(0...10_000), unit: "ms", default: 2_000,
      text: "sound that is kept while there is no connection"),
    ParameterContract("reconnect", .bool, default: true, text: "true: connect again after a loss"),
    ParameterContract(
      "first", .number(1...600_000), unit: "ms", default: 500, text: "first wait before that"),
    ParameterContract("most", .number(1...600_000), unit: "ms", default: 8_000, text: "longest wait"),
    ParameterContract(
      "giveUp", .number(0...86_400_000), unit: "ms", default: 0,
      text: "fail after so long without a connection that lasts 10 s; 0: never"),
    ParameterContract(
      "open", .integer(1...600_000), unit: "ms", default: 10_000, text: "longest time an attempt may take"),
    ParameterContract(
      "ping", .integer(0...600_000), unit: "ms", default: 20_000, text: "between pings; 0: none"),
    ParameterContract(
      "pong", .integer(1...600_000), unit: "ms", default: 10_000, text: "silence after a ping that ends it"),
    ParameterContract(
      "verify", .bool, default: true,
      text: "false: any certificate will do; only when the host is this machine"),
    ParameterContract("roots", .path, text: "certificates (PEM) to believe in place of the system's"),
    ParameterContract(
      "proxy", .string, default: "environment", text: "environment, none, or http://host:port"),
  ]
}

/// What `net.websocket` will carry, and what it objects to.
enum SocketShape {
  /// Length of a packet of sound that comes.
  private static let frame: Nanoseconds = 20_000_000
  /// Bytes of a packet of coded sound that may be cut anywhere.
  private static let pieceBytes = 4_096

  static func resolve(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    if parameters.has("url") == parameters.has("listen") {
      resolution.refuse(
        nil, parameters.has("url") ? "it cannot both connect and wait" : "nothing tells where to connect",
        cure: "give either \"url\" or \"listen\"")
    }
    checkAddress(&resolution)
    checkServer(&resolution)
    let linked = resolution.linkedInputs
    if parameters.string("framing") == "raw" && linked.contains("audio") && linked.contains("image") {
      resolution.refuse(
        "framing", "the other side cannot tell sound from pictures", cure: "set \"framing\" to \"tagged\"")
    }
    for text in parameters.strings("headers") where !text.contains(":") {
      resolution.refuse("headers", "a header has no colon", cure: "write \"Name: value\"")
    }
    let largest = parameters.integer("largest")
    for name in linked where (resolution.inputs[name]?.packetBytes ?? 0) >= largest {
      resolution.refuse(
        "largest", "a packet of \"\(name)\" may be larger", cure: "raise it above the packet's size")
    }
    // A bot's replies come faster than they are spoken, and are held back without loss; somebody's voice is worth nothing when it is old.
    resolution.pacing = parameters.bool("replies") ? .waits : .live
    resolution.outputs["audio"] = sound(parameters)
    let wantsEvents = resolution.wanted["text"] != nil && !resolution.isWanted(.text, at: "text")
    resolution.outputs["text"] = OutputShape(
      wantsEvents ? .event : .text, packetDuration: nil, packetBytes: largest, burst: 0)
  }

  /// What means something on one side only.
  private static func checkServer(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    if parameters.has("certificate") != parameters.has("key") {
      resolution.refuse(
        parameters.has("key") ? "key" : "certificate", "a certificate and its key go together",
        cure: "give both, or neither")
    }
    if !parameters.has("listen") && parameters.has("certificate") {
      resolution.refuse(
        "certificate", "only a server has one", cure: "\"roots\" names those to believe when connecting")
    }
    if parameters.has("listen") && !parameters.strings("headers").isEmpty {
      resolution.refuse("headers", "nobody is sent them", cure: "they go with \"url\"")
    }
  }

  private static func checkAddress(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    if parameters.has("url") {
      do throws(NetProblem) {
        let address = try WebAddress(parameters.string("url"))
        if address.scheme != .ws && address.scheme != .wss {
          resolution.refuse("url", "a WebSocket's address begins with ws: or wss:")
        }
        if !parameters.bool("verify") && !address.isLoopback {
          resolution.refuse(
            "verify", "a certificate has to be verified unless the host is this machine",
            cure: "leave it out; \"roots\" names an authority of your own")
        }
      } catch {
        resolution.refuse("url", error.text)
      }
    }
    let proxy = parameters.string("proxy")
    if proxy != "environment" && proxy != "none" {
      do throws(NetProblem) { _ = try NetProxy.Place(proxy) } catch { resolution.refuse("proxy", error.text) }
    }
  }

  /// Room is asked for by the node, packet by packet: what comes and is not taken must not hold up what is sent.
  private static func sound(_ parameters: ParameterValues) -> OutputShape {
    let rate = parameters.integer("rate")
    let channels = parameters.integer("channels")
    switch parameters.string("format") {
    case "opus":
      return OutputShape(
        .opus(rate: rate, channels: channels), packetDuration: frame, packetBytes: pieceBytes, burst: 0)
    case "mp3": return OutputShape(.mp3, packetDuration: nil, packetBytes: pieceBytes, burst: 0)
    case "ogg": return OutputShape(.ogg, packetDuration: nil, packetBytes: pieceBytes, burst: 0)
    case "aac": return OutputShape(.aac, packetDuration: nil, packetBytes: pieceBytes, burst: 0)
    default: return .pcm(rate: rate, channels: channels, sample: .s16, frames: rate / 50, burst: 0)
    }
  }
}
