public import MillraceCore
internal import MillraceDialog

extension NetWebSocket {
  public static let contract = NodeContract(
    "net.websocket", "a backend of one's own: sound, pictures and JSON over a WebSocket, as client or server",
    text: """
      With `url` it connects and, after a loss, connects again; with `listen` it waits for one visitor at a time. Sound \
      and pictures go as binary frames, texts and events as text frames. A server's certificate has to verify unless the host is this \
      machine, and a key goes to no other machine without TLS unless `plain` says so. A visitor is refused who is a browser's page of \
      another site (`origins`), asks for a host name that is not the server's (`hosts`), or lacks the `token`; a server that other \
      machines can reach needs a certificate.
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
      EventContract(
        "refused",
        text:
          "visitors were not let in: `count` since the last such event, one a second at most; of the latest, `code`, the HTTP status or 0, and `text`, from where and why"
      ),
    ],
    lane: .external, budget: 200, drive: .itself,
    asynchronousPaths: ["audio", "image", "text"].flatMap { from in
      ["audio", "text"].map { AsynchronousPath(from: from, to: $0) }
    }, followsVirtualClock: false,
    examples: [
      #"{ "type": "net.websocket", "url": "wss://bot.example.org/voice", "headers": ["Authorization: Bearer ${env:BOT_KEY}"] }"#,
      #"{ "type": "net.websocket", "listen": 8765, "framing": "tagged" }"#,
      #"{ "type": "net.websocket", "listen": 8765, "host": "0.0.0.0", "certificate": "bot.pem", "key": "bot.key", "token": "${env:BOT_TOKEN}", "origins": ["https://app.example.org"] }"#,
    ],
    resolve: { SocketShape.resolve(&$0) })

  private static let sound = FormatConstraint.pcm(
    rates: .range(8_000...96_000), channels: .range(1...2), samples: [.s16]
  ).or(.kind(.opus)).or(.kind(.mp3)).or(.kind(.ogg)).or(.kind(.aac))

  private static let parameters: [ParameterContract] = [
    ParameterContract("url", .string, secret: .address, text: "where to connect: ws: or wss:"),
    ParameterContract("listen", .integer(0...65_535), text: "port to wait at instead; 0: any"),
    ParameterContract("host", .string, default: "127.0.0.1", text: "address to wait at"),
    ParameterContract("path", .string, default: "/", text: "path a visitor has to ask for"),
    ParameterContract(
      "origins", .list(of: .string, count: 0...64), default: .list([]),
      text:
        "browser pages that may connect besides those of the server's own host and, for a visitor on this machine, those of this machine: `https://app.example.org`; `*`: any"
    ),
    ParameterContract(
      "hosts", .list(of: .string, count: 0...64), default: .list([]),
      text:
        "names by which a visitor may ask for the server besides digits, `localhost`, `host` and those of the certificate; `*`: any"
    ),
    ParameterContract(
      "token", .string, secret: .whole,
      text: "a visitor has to send it, as `Authorization: Bearer ...` or as `token=...` in the query"),
    ParameterContract(
      "plain", .bool, default: false,
      text:
        "true: no TLS is needed beyond this machine; everybody on the way can then hear a server's sound, or read a client's key"
    ),
    ParameterContract(
      "handshake", .integer(256...1_048_576), unit: "bytes", default: 16_384,
      text: "largest request of a visitor"),
    ParameterContract(
      "halfOpen", .integer(1...65_536), default: 256,
      text: "visitors at most whose handshake is not answered yet"),
    ParameterContract(
      "halfOpenPerAddress", .integer(1...65_536), default: 32, text: "of those, from one address"),
    ParameterContract(
      "headers", .list(of: .string, count: 0...32), default: .list([]), secret: .assigned,
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
      "open", .integer(1...600_000), unit: "ms", default: 10_000,
      text: "longest time an attempt may take, or a visitor's handshake"),
    ParameterContract(
      "ping", .integer(0...600_000), unit: "ms", default: 20_000, text: "between pings; 0: none"),
    ParameterContract(
      "pong", .integer(1...600_000), unit: "ms", default: 10_000, text: "silence after a ping that ends it"),
    ParameterContract(
      "verify", .bool, default: true,
      text: "false: any certificate will do; only when the host is this machine"),
    ParameterContract("roots", .path, text: "certificates (PEM) to believe in place of the system's"),
    ParameterContract(
      "proxy", .string, default: "environment", secret: .address,
      text: "environment, none, or http://host:port"),
  ]
}
