internal import MillraceCore
internal import MillraceCrypto
internal import MillraceDialog
internal import MillraceFiles
internal import MillraceJSON
internal import MillraceNet
internal import MillraceService

/// Checks the parameters of `tuya.agent`, and derives its formats, its rules and what its connection needs.
enum TuyaResolution {
  /// Bytes of a packet of an MP3 reply, which may be cut anywhere: some hundred milliseconds.
  private static let pieceBytes = 1_024
  /// The largest Opus packet, RFC 6716 section 3.4: three frames of 1,275 bytes in 60 ms, six in 120 ms.
  static let packetBytes = 7_680
  /// The largest picture of a reply. It fits a packet of the cloud, which has at most `TuyaTarget.maxPacket` bytes.
  static let pictureBytes = 1 << 20
  /// Milliseconds of an Opus packet, and kbit/s, that the vendor's clients send.
  private static let opusFrames = [40, 60]
  private static let opusBitRates = [16, 48]

  static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    func check(_ rule: () throws(NodeProblem) -> Void) {
      do throws(NodeProblem) { try rule() } catch {
        resolution.refuse(error.parameter, error.text, cure: error.cure)
      }
    }
    let sound = resolution.inputs["audio"]
    check { () throws(NodeProblem) in
      try TuyaSizes.check(values, try rules(values, followsPlayback: true))
    }
    check { () throws(NodeProblem) in _ = try target(values) }
    check { () throws(NodeProblem) in try checkAccess(values) }
    if let cache = values.given("cache") {
      check { () throws(NodeProblem) in try FileCheck.creating(in: cache, parameter: "cache") }
    }
    check { () throws(NodeProblem) in _ = try voice(values, sound) }
    for (port, kind) in [("audio", "audio"), ("image", values.string("pictures")), ("file", "file")]
    where resolution.linkedInputs.contains(port) {
      check { () throws(NodeProblem) in try checkChannel(values, port, kind) }
    }
    // Replies arrive faster than real time and may wait outside of the graph.
    resolution.pacing = .waits
    resolution.latency = .milliseconds(Int64(values.integer("frame") * values.integer("frames")))
    resolution.outputs["audio"] = reply(values)
    resolution.outputs["image"] = OutputShape(
      .jpeg, packetDuration: nil, packetBytes: pictureBytes, burst: 0)
    let bytes = values.integer("eventBytes")
    for name in ["text", "file"] {
      resolution.outputs[name] = OutputShape(.text, packetDuration: nil, packetBytes: bytes, burst: 0)
    }
    // Time, node and name precede the members.
    resolution.outputs[NodeContract.eventsPort] = OutputShape(
      .event, packetDuration: nil, packetBytes: bytes + 256)
  }

  /// The shape of replies. An unread reply must not block the user's speech: burst 0.
  private static func reply(_ values: ParameterValues) -> OutputShape {
    let rate = values.integer("rate")
    var shape =
      switch values.string("reply") {
      case "pcm": OutputShape.pcm(rate: rate, channels: 1, sample: .s16, frames: rate / 50)
      case "opus":
        OutputShape(.opus(rate: rate, channels: 1), packetDuration: nil, packetBytes: packetBytes)
      default: OutputShape(.mp3, packetDuration: nil, packetBytes: pieceBytes)
      }
    shape.burst = 0
    return shape
  }

  // MARK: Checks

  /// Checks that there is a place to connect to, and somebody to connect as.
  private static func checkAccess(_ values: ParameterValues) throws(NodeProblem) {
    let isV1 = dialect(values) == .v1
    if values.given("token") == nil && values.given("provider") != nil {
      _ = try TuyaProvider(values)
    } else {
      let login = isV1 ? ["user", "password"] : []
      for name in ["url", "client", "localKey", "token"] + login where values.given(name) == nil {
        throw NodeProblem(
          "without a provider, \"\(name)\" is needed", parameter: name,
          cure: "set it, or \"provider\" to the address of your token server")
      }
    }
    for name in ["user", "password"] where values.given(name) != nil && !isV1 {
      throw NodeProblem(
        "only the dialect v1 has a \"\(name)\"", parameter: name, cure: "leave it out, or set \"dialect\"")
    }
    if values.bool("shares") && values.given("connection") == nil {
      throw NodeProblem(
        "a session can share its sound only with sessions of its connection", parameter: "shares",
        cure: "give the nodes the same \"connection\"")
    }
  }

  /// Checks that the agent takes what the graph sends, where the parameters say what it takes.
  private static func checkChannel(
    _ values: ParameterValues, _ port: String, _ kind: String
  ) throws(NodeProblem) {
    let sends = values.strings("sends")
    guard sends.isEmpty || sends.contains(kind) else {
      throw NodeProblem(
        "the input \"\(port)\" is linked, and the agent takes no \(kind)", parameter: "sends",
        cure: "add \"\(kind)\", or remove the link")
    }
  }

  /// How the user's audio is sent.
  /// - Parameter input: the shape at `audio`; nil: not linked, or not known.
  static func voice(_ values: ParameterValues, _ input: OutputShape?) throws(NodeProblem) -> TuyaVoice {
    let (frame, bitRate) = (values.integer("frame"), values.integer("bitrate"))
    guard let input, input.format.kind == .opus else {
      return TuyaVoice(.pcm, frame: frame, framesPerPacket: values.integer("frames"))
    }
    guard opusFrames.contains(frame) else {
      throw NodeProblem(
        "Opus packets have 40 or 60 ms", parameter: "frame",
        cure: "set \"frame\" to 40 or 60, here and at opus.encode")
    }
    guard opusBitRates.contains(bitRate) else {
      throw NodeProblem(
        "Opus packets have 16 or 48 kbit/s", parameter: "bitrate",
        cure: "set \"bitrate\" to 16 or 48, and that of opus.encode to the same")
    }
    guard (input.format.rate ?? TuyaVoice.rate) == TuyaVoice.rate, (input.format.channels ?? 1) == 1 else {
      throw NodeProblem(
        "the service accepts 16 kHz mono only", cure: "resample to 16 kHz and encode one channel")
    }
    if let duration = input.packetDuration, duration != .milliseconds(Int64(frame)) {
      throw NodeProblem(
        "the packets at \"audio\" have \(duration / 1_000_000) ms, and \"frame\" is \(frame)",
        parameter: "frame",
        cure: "set both to the same")
    }
    return TuyaVoice(
      .opus(bitRate: bitRate * 1_000), frame: frame, framesPerPacket: values.integer("frames"))
  }

  // MARK: Rules

  static func rules(
    _ values: ParameterValues, followsPlayback: Bool
  ) throws(NodeProblem) -> TuyaRules {
    let mode = DialogMode(rawValue: values.string("mode")) ?? .duplex
    var rules = TuyaRules(mode, reconnect: values.reconnectPolicy)
    if mode == .duplex { rules.speech = TuyaRules.Speech(rawValue: values.string("speech")) ?? .long }
    rules.vad = values.bool("vad")
    rules.interrupt = values.bool("interrupt")
    rules.followsPlayback = followsPlayback
    rules.session = values.given("session")
    rules.isShared = values.bool("shares")
    rules.sessionAttributes = try values.object("sessionAttributes")
    rules.chatAttributes = try values.object("chatAttributes")
    rules.eventAttributes = try values.object("eventAttributes")
    rules.room = TuyaFrameRoom(maxFragment: values.integer("maxFragment"), dialect(values))
    rules.room.token = values.given("token")?.utf8.count ?? 0
    rules.onlyASR = values.bool("onlyAsr")
    rules.replyFormats = try TuyaWish.list(values)
    rules.pictures = TuyaRules.Pictures(rawValue: values.string("pictures")) ?? .image
    if let path = values.given("tools") { rules.tools = try TuyaToolFile.read(path) }
    rules.waitsAfterEnd = values.waitsAfterEnd
    rules.postsRaw = values.bool("raw")
    rules.linger = values.nanoseconds("linger")
    rules.renew = values.nanoseconds("renew")
    rules.prepare = values.nanoseconds("prepare")
    rules.answer = values.nanoseconds("answer")
    rules.tool = values.nanoseconds("toolAnswer")
    return rules
  }

  // MARK: Connection

  /// The settings of the connection. Nodes that share one by name have to come to the same.
  static func target(_ values: ParameterValues) throws(NodeProblem) -> TuyaTarget {
    var target = TuyaTarget(try access(values))
    target.trust = values.given("roots").map { .file($0) } ?? .system
    do throws(NetError) { target.proxy = try values.proxy } catch {
      throw NodeProblem(error.text, parameter: "proxy")
    }
    target.dialect = dialect(values)
    target.security =
      switch values.string("security") {
      case "sl2": .sl2
      case "sl3": .sl3
      default: .sl4
      }
    target.signLevel =
      switch values.integer("signLevel") {
      case 0: .none
      case 1: .short
      default: .full
      }
    target.identity = values.string("identity") == "device" ? .device : .app
    target.ping = values.integer("ping")
    target.maxFragment = values.integer("maxFragment")
    target.open = values.integer("open")
    target.pictureParts = values.integer("pictureParts")
    target.pictureRate = values.integer("pictureRate")
    return target
  }

  private static func dialect(_ values: ParameterValues) -> TuyaDialect {
    values.string("dialect") == "v1" ? .v1 : .v21
  }

  private static func access(_ values: ParameterValues) throws(NodeProblem) -> TuyaAccess {
    var access = TuyaAccess()
    if let text = values.given("url") {
      do throws(NetError) { access.address = try WebAddress(text) } catch {
        throw NodeProblem(error.text, parameter: "url")
      }
    }
    if let address = access.address {
      guard address.scheme.isStream else {
        throw NodeProblem("the service's address must begin with tls: or tcp:", parameter: "url")
      }
      guard address.isProtected(dialect(values)) else {
        throw NodeProblem(
          "the token would go over the network in plain text", parameter: "url", cure: "use tls:")
      }
    }
    access.client = values.given("client")
    access.localKey = values.given("localKey").map { SecretKey(utf8: $0) }
    access.user = values.given("user")
    access.password = values.given("password").map { TuyaSecret($0) }
    return access
  }

  /// What the parameters say about token and terms; a provider's answer takes precedence.
  static func given(_ values: ParameterValues, _ access: TuyaAccess) -> TuyaGrant {
    var terms = TuyaTerms()
    if values.has("bizCode") { terms.bizCode = UInt32(clamping: values.integer("bizCode")) }
    if values.has("bizTag") { terms.bizTag = UInt64(clamping: values.integer("bizTag")) }
    func kinds(_ name: String) -> [TuyaDataKind]? {
      let kinds = values.strings(name).compactMap { TuyaDataKind(rawValue: $0) }
      return kinds.isEmpty ? nil : kinds
    }
    terms.sends = kinds("sends") ?? terms.sends
    terms.receives = kinds("receives") ?? terms.receives
    return TuyaGrant(access: access, token: TuyaSecret(values.given("token") ?? ""), terms: terms)
  }

  /// The grants of the node's agent.
  static func tokens(
    _ values: ParameterValues, _ access: TuyaAccess, secrets: Secrets
  ) throws(NodeProblem) -> TuyaTokens {
    let given = given(values, access)
    guard values.given("token") == nil else { return TuyaTokens(given: given) }
    return TuyaTokens(try TuyaProvider(values).provider(secrets: secrets), given: given)
  }
}
