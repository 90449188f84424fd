internal import MillraceCore
internal import MillraceJSON
internal import MillraceRTC
internal import MillraceRTCSound
internal import MillraceRTCWire
internal import MillraceService

/// The parameters of `rtc.rtp`, and what a call is made from.
enum PlainForm {
  static let parameters: [ParameterContract] =
    own + heard + RTCParameters.sent + RTCParameters.pictures.filter { $0.name == "videoBitrate" }
    + RTCParameters.watch + [ServiceParameters.eventBytes]

  private static let own: [ParameterContract] = [
    ParameterContract(
      "local", .string, default: ":0",
      text:
        "address and port of this machine for RTP, RTCP on the port after it: `0.0.0.0:5004`, `[::]:5004`; port 0: any"
    ),
    ParameterContract(
      "remote", .string, text: "where RTP is sent: `192.0.2.1:5004` or `media.example.org:5004`"),
    ParameterContract(
      "symmetric", .bool, default: false,
      text:
        "true: sends to where valid packets come from, as behind a NAT; a new address counts after 3 s of silence"
    ),
    ParameterContract(
      "rtcpMux", .bool, default: false, text: "true: RTCP shares the port of RTP, here and at the peer"),
    ParameterContract(
      "codec", .choice(PlainCodec.allCases.map(\.rawValue)), default: "opus",
      text: "codec of both directions; h264 and vp8 use the ports `video`"),
    ParameterContract(
      "payloadType", .integer(0...127),
      text: "payload type of the codec; default: 0 for pcmu, 8 for pcma, 111 opus, 98 l16, 102 h264, 96 vp8"),
    ParameterContract(
      "tonePayloadType", .integer(96...127),
      text: "payload type of telephone events (DTMF); default: 101, or 100 where the codec has 101"),
    ParameterContract(
      "feedback", .bool, default: true,
      text:
        "true: requests lost packets and key frames of the peer at once; peers that do not know this ignore it"
    ),
    ParameterContract(
      "srtpSuite", .choice(PlainKeys.suites.map(\.rawValue)),
      text: "how packets are protected with `srtpKey`; default: AES_CM_128_HMAC_SHA1_80"),
    ParameterContract(
      "srtpKey", .string, secret: .whole,
      text: "master key and salt in Base64, of this side and of the peer: 30 bytes, with AEAD_AES_128_GCM 28"),
    ParameterContract(
      "srtpPeerKey", .string, secret: .whole, text: "that of the peer, where it has another"),
    ParameterContract(
      "sdpFile", .path,
      text:
        "file for a description in SDP, with which other programs receive what is sent; with a key only its owner may read it"
    ),
  ]

  /// `rate` and `channels` are those of packets of L16, too.
  private static let heard: [ParameterContract] = RTCParameters.heard.map { parameter in
    var parameter = parameter
    if parameter.name == "rate" || parameter.name == "channels" {
      parameter.text += "; with l16, of the packets too"
    }
    return parameter
  }

  // MARK: Parts

  static func codec(_ parameters: ParameterValues) -> PlainCodec {
    PlainCodec(rawValue: parameters.string("codec")) ?? .opus
  }

  static func payloadType(_ parameters: ParameterValues) -> Int? {
    parameters.has("payloadType") ? parameters.integer("payloadType") : nil
  }

  static func tonePayloadType(_ parameters: ParameterValues) -> Int? {
    parameters.has("tonePayloadType") ? parameters.integer("tonePayloadType") : nil
  }

  /// The codec, and telephone events beside it.
  static func codecs(_ parameters: ParameterValues) -> (codec: RTPCodec, tones: RTPCodec?) {
    let kind = Self.codec(parameters)
    let codec = kind.codec(
      payloadType: payloadType(parameters), rate: parameters.integer("rate"),
      channels: parameters.integer("channels"),
      isStereo: parameters.bool("stereo") || parameters.integer("channels") == 2,
      hasFeedback: parameters.bool("feedback"))
    return (codec, kind.tones(beside: codec, payloadType: tonePayloadType(parameters)))
  }

  /// - Throws: how it has to be written.
  static func local(_ parameters: ParameterValues) throws(NodeProblem) -> PlainEndpoint {
    let text = parameters.string("local")
    guard var local = PlainEndpoint(parsing: text), local.host.isEmpty || local.address != nil else {
      throw NodeProblem(
        "\"local\" is \"\(text)\", and must be an IP address of this machine and a port", parameter: "local",
        cure: "write it as 0.0.0.0:5004, [::]:5004 or :0")
    }
    if local.host.isEmpty { local.host = "0.0.0.0" }
    return local
  }

  /// Nil: not set.
  /// - Throws: how it has to be written.
  static func remote(_ parameters: ParameterValues) throws(NodeProblem) -> PlainEndpoint? {
    guard let text = parameters.given("remote") else { return nil }
    guard let remote = PlainEndpoint(parsing: text), !remote.host.isEmpty, remote.port > 0 else {
      throw NodeProblem(
        "\"remote\" is \"\(text)\", and must be a host and a port", parameter: "remote",
        cure: "write it as 192.0.2.1:5004, [2001:db8::1]:5004 or media.example.org:5004")
    }
    return remote
  }

  // MARK: Settings

  /// How sound is sent.
  static func sound(_ parameters: ParameterValues) -> SoundUplinkSettings {
    var settings = SoundUplinkSettings()
    settings.bitrate = parameters.integer("bitrate")
    settings.fec = parameters.bool("fec")
    settings.dtx = parameters.bool("dtx")
    settings.stereo = parameters.bool("stereo")
    settings.ptime = parameters.integer("ptime")
    settings.codecs = [SoundCodec(codecs(parameters).codec)].compactMap { $0 }
    return settings
  }

  /// How the call is made.
  static func settings(_ setup: borrowing NodeSetup) throws(NodeProblem) -> PlainCallSettings {
    let parameters = setup.parameters
    let kind = Self.codec(parameters)
    let (codec, tones) = codecs(parameters)
    let local = try local(parameters)
    let port = kind.isVideo ? 1 : 0
    let (sends, hears) = (setup.inputs[port].isLinked, setup.outputs[port].isLinked)
    // Telephone events are reported without a link.
    let direction = MediaDirection(sends: sends, receives: hears || !kind.isVideo)
    var session = PlainSettings(
      address: local.host, port: local.port, direction, codec: codec, tones: tones)
    session.isSymmetric = parameters.bool("symmetric")
    session.hasRTCPMux = parameters.bool("rtcpMux")
    session.keys = try PlainKeys.keys(parameters)
    session.largestBitrate = parameters.integer("videoBitrate")
    var settings = PlainCallSettings(session)
    settings.remote = try remote(parameters)
    (settings.sends, settings.hears) = (sends, hears)
    settings.sdpFile = parameters.given("sdpFile")
    settings.ptime = kind.isVideo ? nil : parameters.integer("ptime")
    settings.media = .milliseconds(Int64(parameters.integer("media")))
    settings.stats = .milliseconds(Int64(parameters.integer("stats")))
    settings.eventBytes = parameters.integer("eventBytes")
    settings.secrets = setup.secrets
    return settings
  }
}

/// The keys of SRTP in the parameters.
enum PlainKeys {
  static let suites: [SDPCrypto.Suite] = [.aesCM128SHA180, .aesGCM128]

  static func suite(_ parameters: ParameterValues) -> SDPCrypto.Suite {
    parameters.given("srtpSuite").flatMap { SDPCrypto.Suite(rawValue: $0) } ?? .aesCM128SHA180
  }

  /// Nil: packets are not protected.
  /// - Throws: what is wrong with a key, without the key.
  static func keys(_ parameters: ParameterValues) throws(NodeProblem) -> SRTPKeys? {
    let suite = suite(parameters)
    guard let own = try key("srtpKey", suite, parameters) else {
      let given = ["srtpPeerKey", "srtpSuite"].first { parameters.given($0) != nil }
      guard let given else { return nil }
      throw NodeProblem(
        "\"\(given)\" is set, and there is no key", parameter: "srtpKey",
        cure: "set \"srtpKey\" to \(suite.keyBytes) random bytes in Base64, or remove \"\(given)\"")
    }
    let other = try key("srtpPeerKey", suite, parameters) ?? own
    guard let profile = suite.profile else {
      throw NodeProblem("\(suite.rawValue) is not supported", parameter: "srtpSuite")
    }
    return SRTPKeys(profile, outbound: own, inbound: other)
  }

  private static func key(
    _ name: String, _ suite: SDPCrypto.Suite, _ parameters: ParameterValues
  ) throws(NodeProblem) -> [UInt8]? {
    guard let text = parameters.given(name) else { return nil }
    // Some write it without padding.
    let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
    guard let bytes = Base64.decode(text + padding) else {
      throw NodeProblem(
        "\"\(name)\" is no Base64", parameter: name,
        cure: "write \(suite.keyBytes) bytes, as `openssl rand -base64 \(suite.keyBytes)` does")
    }
    guard bytes.count == suite.keyBytes else {
      throw NodeProblem(
        "\"\(name)\" has \(bytes.count) bytes, and \(suite.rawValue) takes \(suite.keyBytes): key and salt",
        parameter: name, cure: "set \"srtpSuite\", or use `openssl rand -base64 \(suite.keyBytes)`")
    }
    return bytes
  }
}
