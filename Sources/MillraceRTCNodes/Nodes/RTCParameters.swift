internal import MillraceCore
internal import MillraceService

/// The parameters of the nodes of WebRTC and RTP, by topic, with the same names, units and texts wherever a node has them.
enum RTCParameters {
  // MARK: Sound

  /// What arrives: `format`, `rate`, `channels`, `jitterLeast`, `jitterMost`, `replies`.
  static let heard: [ParameterContract] = [
    ParameterContract(
      "format", .choice(["pcm", "opus"]), default: "pcm",
      text: "format of received audio; opus: the packets of one source as they came, not mixed"),
    ParameterContract(
      "rate", .integer(8_000...48_000), unit: "Hz", default: 48_000, text: "sample rate of received audio"),
    ParameterContract("channels", .integer(1...2), default: 1, text: "channels of received audio"),
    ParameterContract(
      "jitterLeast", .integer(0...1_000), unit: "ms", default: 20,
      text: "received audio waits at least this long for late packets"),
    ParameterContract(
      "jitterMost", .integer(20...2_000), unit: "ms", default: 200,
      text: "received audio waits at most this long for late packets"),
    ParameterContract(
      "replies", .bool, default: false,
      text:
        "true: received audio is a bot's reply, which an interruption discards; false: it is live speech"),
  ]

  /// What is sent: `bitrate`, `fec`, `dtx`, `stereo`, `ptime`.
  static let sent: [ParameterContract] = [
    ParameterContract(
      "bitrate", .integer(6_000...510_000), unit: "bit/s", default: 32_000, live: true,
      text: "highest bitrate of Opus; a slow network lowers it"),
    ParameterContract(
      "fec", .bool, default: true,
      text: "true: while packets are lost, Opus repeats a part of each in the next (forward error correction)"
    ),
    ParameterContract(
      "dtx", .bool, default: false, text: "true: Opus sends next to nothing while nobody speaks"),
    ParameterContract(
      "stereo", .bool, default: false,
      text: "true: Opus sends both channels of `audio`, and asks the peer for two"),
    ptime,
  ]

  /// `ptime`: the length of a packet.
  static let ptime = ParameterContract(
    "ptime", .integer(10...60), unit: "ms", default: 20,
    text: "audio in one packet on the network: 10, 20, 40 or 60 ms")

  /// `codecs`: what a session may use for sound.
  static let codecs = ParameterContract(
    "codecs", .list(of: .choice(["opus", "pcmu", "pcma"]), count: 1...3),
    default: .list([.string("opus"), .string("pcmu"), .string("pcma")]),
    text: "codecs of sound that may be used, the best first; the peer decides among them")

  // MARK: Pictures

  /// `videoCodec` and `videoBitrate`.
  static let pictures: [ParameterContract] = [
    ParameterContract(
      "videoCodec", .choice(["h264", "vp8"]),
      text: "codec of `video`; default: that of what is linked to the input, or h264"),
    ParameterContract(
      "videoBitrate", .integer(50_000...50_000_000), unit: "bit/s", default: 2_500_000, live: true,
      text: "highest bitrate of pictures; how much the network carries is reported by events `targetBitrate`"),
  ]

  // MARK: Data

  /// `largest`: of messages.
  static let largest = ParameterContract(
    "largest", .integer(1_024...262_144), unit: "bytes", default: 65_536,
    text: "largest message in either direction")

  /// `dataLabel` and `largest`: the channel of the ports `data`.
  static let data: [ParameterContract] = [
    ParameterContract(
      "dataLabel", .string, default: "data", text: "label of the data channel behind the ports `data`"),
    largest,
  ]

  // MARK: Network

  /// How a way to the peer is found: `servers`, `turnUser`, `turnSecret`, `policy`, `interfaces`, `ports`, `lite`, `consent`.
  static let ice: [ParameterContract] = [
    ParameterContract(
      "servers", .list(of: .string, count: 0...8), default: .list([]),
      text:
        "STUN and TURN servers: `stun:host:port`, `turn:host:port?transport=udp`; default: this machine's addresses only"
    ),
    ParameterContract("turnUser", .string, text: "user at the TURN servers"),
    ParameterContract("turnSecret", .string, secret: .whole, text: "password at the TURN servers"),
    ParameterContract(
      "policy", .choice(["all", "relay"]), default: "all",
      text:
        "relay: everything goes through a TURN server, so that the peer does not learn this machine's addresses"
    ),
    ParameterContract(
      "interfaces", .list(of: .string, count: 0...16), default: .list([]),
      text: "addresses of this machine to use; default: all but loopback"),
    ParameterContract(
      "ports", .list(of: .integer(1...65_535), count: 0...2), default: .list([]),
      text: "first and last UDP port to use; default: any"),
    ParameterContract(
      "lite", .bool, default: false,
      text:
        "true: only answers the peer's checks (ICE lite): for a server with an address that everybody reaches"
    ),
    ParameterContract(
      "consent", .bool, default: true,
      text: "true: asks the peer again and again whether it still wants to receive (RFC 7675)"),
  ]

  /// `media`, `stats`: what is watched while a session is up.
  static let watch: [ParameterContract] = [
    ParameterContract(
      "media", .integer(0...600_000), unit: "ms", default: 3_000,
      text: "a session in which expected media does not begin within this time is reported; 0: never"),
    ParameterContract(
      "stats", .integer(100...600_000), unit: "ms", default: 1_000,
      text: "interval of the events `usage` and `netQuality`"),
  ]

  /// `signal`, `connect`, `media`, `stats`.
  static let times: [ParameterContract] =
    [
      ParameterContract(
        "signal", .integer(100...600_000), unit: "ms", default: 5_000,
        text: "timeout of an answer of the server"),
      ParameterContract(
        "connect", .integer(100...600_000), unit: "ms", default: 15_000,
        text: "timeout from both descriptions to a connection"),
    ] + watch

  /// `reconnect`, `first`, `most`, `giveUp`: as for every service, and it gives up after 45 s.
  static let reconnection: [ParameterContract] = ServiceParameters.reconnection.map { parameter in
    guard parameter.name == "giveUp" else { return parameter }
    var parameter = parameter
    parameter.defaultValue = 45_000
    return parameter
  }

  /// `verify` and `plain`: what protects the signalling.
  static let protection: [ParameterContract] = [
    ParameterContract(
      "verify", .bool, default: true,
      text: "false: accepts any certificate; only for a host on this machine"),
    ParameterContract(
      "plain", .bool, default: false,
      text:
        "true: allows signalling without TLS beyond this machine; anyone on the way can then read keys, or take the call over"
    ),
  ]

  /// `headers`: of the requests.
  static let headers = ParameterContract(
    "headers", .list(of: .string, count: 0...32), default: .list([]), secret: .assigned,
    text: "sent with every request: `Name: value`")

  /// What a form of signalling as a server has besides its port: `host`, `path`, `origins`, `hosts`, `certificate`, `key`.
  static let server: [ParameterContract] = [
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
    ParameterContract("certificate", .path, text: "the server's certificate chain, for TLS (PEM)"),
    ParameterContract("key", .path, text: "the private key of the certificate (PEM)"),
  ]

  /// What every node with sessions of WebRTC has behind its own parameters.
  static let session: [ParameterContract] = {
    let parts: [[ParameterContract]] = [
      heard, sent, [codecs], pictures, data, ice, times, reconnection, ServiceParameters.network, protection,
      [ServiceParameters.eventBytes],
    ]
    return parts.flatMap { $0 }
  }()
}
