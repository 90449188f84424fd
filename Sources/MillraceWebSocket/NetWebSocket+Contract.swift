public import MillraceCore
internal import MillraceDialog

extension NetWebSocket {
  public static let contract = NodeContract(
    "net.websocket", "your own backend: audio, images and JSON over a WebSocket, as client or server",
    text: """
      With `url` it connects, and reconnects after a loss; with `listen` it accepts one client at a time. Audio and images are \
      binary frames, texts and events are text frames. A server's certificate must be trusted unless the host is this machine, and a \
      key is sent to another machine only over TLS unless `plain` is set. A client is refused if it is a browser page from another \
      origin (`origins`), asks for a host name that is not the server's (`hosts`), or lacks the `token`. A server that other \
      machines can reach needs a certificate.
      """,
    inputs: [
      PortContract("audio", sound, text: "audio to send, one frame per packet", required: false, holds: 1),
      PortContract("image", .kind(.jpeg), text: "images to send, one frame each", required: false, holds: 1),
      PortContract(
        "text", .kind(.text).or(.kind(.event)), text: "texts or events to send, one frame each",
        required: false,
        holds: 1),
    ],
    outputs: [
      PortContract("audio", sound, text: "audio received in binary frames", required: false),
      PortContract(
        "text", .kind(.text).or(.kind(.event)), text: "messages received in text frames", required: false),
    ],
    parameters: parameters,
    events: [
      EventContract("connected", text: "the connection is open, after so many `attempts`"),
      EventContract(
        "disconnected", text: "the connection ended: close `code`, 1006 without a close frame; `reason`"),
      EventContract(
        "reconnecting", text: "the next attempt follows in `ms`; for a server: `text` says where it listens"),
      EventContract(
        "error",
        text:
          "the connection failed, or a text frame is not an event: `vendor`, `code`, `category`, `reaction`, `scope`, `text`, as for every service"
      ),
      EventContract(
        "lost", text: "`ms` of audio were discarded, because there was no connection"),
      EventContract("badFrame", text: "an unexpected binary frame was discarded: `bytes`, `count` so far"),
      EventContract(
        "refused",
        text:
          "clients were refused: `count` since the last such event, at most one event a second; of the latest, `code`, the HTTP status or 0, and `text`, with address and reason"
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
    resolve: { SocketResolution.resolve(&$0) })

  private static let sound = FormatConstraint.pcm(
    rates: .range(8_000...96_000), channels: .range(1...2), samples: [.s16]
  ).or(.kind(.opus)).or(.kind(.mp3)).or(.kind(.ogg)).or(.kind(.aac))

  private static let parameters: [ParameterContract] = [
    ParameterContract("url", .string, secret: .address, text: "address to connect to: ws: or wss:"),
    ParameterContract("listen", .integer(0...65_535), text: "port to listen on instead; 0: any free port")
      .opening(ListeningSocket(host: "host")),
    ParameterContract("host", .string, default: "127.0.0.1", text: "address to listen on"),
    ParameterContract("path", .string, default: "/", text: "path that clients must request"),
    ParameterContract(
      "origins", .list(of: .string, count: 0...64), default: .list([]),
      text:
        "origins that may connect besides the server's own host and, from this machine, loopback pages: `https://app.example.org`; `*`: any"
    ),
    ParameterContract(
      "hosts", .list(of: .string, count: 0...64), default: .list([]),
      text:
        "host names by which clients may address the server besides numeric addresses, `localhost`, `host` and the names in the certificate; `*`: any"
    ),
    ParameterContract(
      "token", .string, secret: .whole,
      text: "clients must send it, as `Authorization: Bearer ...` or as `token=...` in the query"),
    ParameterContract(
      "plain", .bool, default: false,
      text:
        "true: allows connections without TLS beyond this machine; anyone on the way can then listen to the audio, or read a client's key"
    ),
    ParameterContract(
      "handshake", .integer(256...1_048_576), unit: "bytes", default: 16_384,
      text: "largest request of a client"),
    ParameterContract(
      "halfOpen", .integer(1...65_536), default: 256,
      text: "most clients whose handshake is not finished"),
    ParameterContract(
      "halfOpenPerAddress", .integer(1...65_536), default: 32, text: "most of those from one address"),
    ParameterContract(
      "headers", .list(of: .string, count: 0...32), default: .list([]), secret: .assigned,
      text: "sent with the handshake: `Name: value`"),
    ParameterContract(
      "protocols", .list(of: .string, count: 0...8), default: .list([]),
      text: "subprotocols to offer, or as a server to choose from"),
    ParameterContract(
      "certificate", .path, text: "the server's certificate chain, for TLS (PEM)"),
    ParameterContract("key", .path, text: "the private key of the certificate (PEM)"),
    ParameterContract(
      "framing", .choice(["raw", "tagged"]), default: "raw",
      text: "binary frames: raw bytes, or tagged with a first byte of 1 for audio, 2 for an image"),
    ParameterContract(
      "format", .choice(["pcm", "opus", "mp3", "ogg", "aac"]), default: "pcm",
      text: "format of received audio"),
    ParameterContract(
      "rate", .integer(8_000...96_000), unit: "Hz", default: 16_000, text: "sample rate of received audio"),
    ParameterContract("channels", .integer(1...2), default: 1, text: "channels of received audio"),
    ParameterContract(
      "replies", .bool, default: true,
      text:
        "true: received audio is a bot's reply: it waits while the graph has no room, and an interruption discards it; false: it is live speech"
    ),
    ParameterContract(
      "largest", .integer(1_024...16_777_216), unit: "bytes", default: 262_144,
      text: "largest message in either direction"),
    ParameterContract(
      "preRoll", .number(0...10_000), unit: "ms", default: 2_000,
      text: "audio kept while there is no connection"),
    ParameterContract("reconnect", .bool, default: true, text: "true: reconnect after a loss"),
    ParameterContract(
      "first", .number(1...600_000), unit: "ms", default: 500, text: "first backoff delay"),
    ParameterContract(
      "most", .number(1...600_000), unit: "ms", default: 8_000, text: "longest backoff delay"),
    ParameterContract(
      "giveUp", .number(0...86_400_000), unit: "ms", default: 0,
      text: "fail after this time without a connection that lasts 10 s; 0: never"),
    ParameterContract(
      "open", .integer(1...600_000), unit: "ms", default: 10_000,
      text: "timeout of an attempt, or of a client's handshake"),
    ParameterContract(
      "ping", .integer(0...600_000), unit: "ms", default: 20_000, text: "interval between pings; 0: none"),
    ParameterContract(
      "pong", .integer(1...600_000), unit: "ms", default: 10_000, text: "timeout of the answer to a ping"),
    ParameterContract(
      "verify", .bool, default: true,
      text: "false: accepts any certificate; only for a host on this machine"),
    ParameterContract(
      "roots", .path, text: "certificate authorities (PEM) to trust in place of the system's"),
    ParameterContract(
      "proxy", .string, default: "environment", secret: .address,
      text: "environment, none, or http://host:port"),
  ]
}
