internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceService

/// Checks the parameters of `ivh.avatar`, and derives the rules and the endpoint.
enum IVHResolution {
  static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    do throws(NodeProblem) { _ = try rules(values, followsPlayback: true) } catch {
      resolution.refuse(error.parameter, error.text, cure: error.cure)
    }
    ServiceParameters.checkAddress(&resolution, secure: .https, plain: .http, kind: "the service's")
    ServiceParameters.checkAddress(&resolution, "wsUrl", secure: .wss, plain: .ws, kind: "a WebSocket")
    ServiceParameters.checkProxy(&resolution)
    if !values.string("key").utf8.allSatisfy(isUnreserved) {
      resolution.refuse(
        "key", "\"key\" contains a character that no appkey has",
        cure: "check that it is the appkey, without spaces and line breaks")
    }
    ServiceParameters.checkHeader(&resolution, "token")
    // The session waits for its answers, and its sound comes as a stream.
    resolution.pacing = .waits
    let bytes = values.integer("eventBytes")
    for name in ["text", "stream"] {
      resolution.outputs[name] = OutputShape(.text, packetDuration: nil, packetBytes: bytes, burst: 0)
    }
    // Time, node and name precede the members.
    resolution.outputs[NodeContract.eventsPort] = OutputShape(
      .event, packetDuration: nil, packetBytes: bytes + 256)
  }

  /// What is signed is not percent-encoded, so the key must not contain characters that need it.
  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
      true
    default: false
    }
  }

  // MARK: Rules

  static func rules(_ values: ParameterValues, followsPlayback: Bool) throws(NodeProblem) -> IVHRules {
    let generation = IVHGeneration(rawValue: values.string("generation")) ?? .session
    var rules = IVHRules(
      generation, try creation(values, generation), reconnect: values.reconnectPolicy)
    rules.start = IVHRules.Start(rawValue: values.string("start")) ?? .firstPicture
    if rules.start == .never && generation == .session {
      throw NodeProblem(
        "the session generation needs a start", parameter: "start", cure: "use \"firstPicture\" or \"now\"")
    }
    rules.mode = IVHRules.Mode(rawValue: values.string("mode")) ?? .duplex
    rules.sendsTextsByHTTP = values.string("textsBy") == "http"
    rules.isBotReply = values.string("audioFrom") == "reply"
    rules.followsPlayback = followsPlayback
    rules.postsRaw = values.bool("raw")
    rules.waitsAfterEnd = values.waitsAfterEnd
    rules.linger = values.nanoseconds("linger")
    rules.heartBeat = values.nanoseconds("heartBeat")
    rules.poll = values.nanoseconds("poll")
    rules.prepare = values.nanoseconds("prepare")
    rules.picture = values.nanoseconds("picture")
    rules.answer = .milliseconds(Int64(values.integer("open")))
    rules.close = .milliseconds(Int64(values.integer("close")))
    _ = try frame(values, generation)
    return rules
  }

  private static func creation(
    _ values: ParameterValues, _ generation: IVHGeneration
  ) throws(NodeProblem) -> IVHCreation {
    var creation = IVHCreation(user: values.string("user"), avatar: try avatar(values, generation))
    creation.driver =
      switch values.string("driver") {
      case "convertedVoice": .convertedVoice
      case "originalVoice": .originalVoice
      default: .text
      }
    creation.delivery = IVHCreation.Delivery(rawValue: values.string("protocol")) ?? .rtmp
    creation.session = values.given("session")
    creation.pushAddress = values.given("pushUrl")
    creation.room = try room(values, creation.delivery)
    creation.userInfo = values.given("userInfo")
    creation.hasAlpha = values.bool("alpha")
    if values.has("streamMaxInterval") { creation.streamInterval = values.integer("streamMaxInterval") }
    try checkGeneration(values, generation, creation)
    return creation
  }

  private static func checkGeneration(
    _ values: ParameterValues, _ generation: IVHGeneration, _ creation: IVHCreation
  ) throws(NodeProblem) {
    let isStream = generation == .stream
    // A graph's parameter may be empty, which means not set.
    let texts = isStream ? ["project", "asset", "voice", "trtcRoomName", "trtcAutoRoom"] : ["session"]
    let interval = isStream && values.has("streamMaxInterval") ? "streamMaxInterval" : nil
    if let name = texts.first(where: { values.given($0) != nil }) ?? interval {
      throw NodeProblem(
        "the \(generation.rawValue) generation has no \"\(name)\"", parameter: name,
        cure: "leave it out, or set \"generation\"")
    }
    if generation == .session && creation.driver == .convertedVoice {
      throw NodeProblem(
        "only the stream generation converts a voice", parameter: "driver", cure: "use \"originalVoice\"")
    }
  }

  private static func avatar(
    _ values: ParameterValues, _ generation: IVHGeneration
  ) throws(NodeProblem) -> IVHCreation.Avatar {
    guard generation == .session else { return .account }
    if values.given("asset") == nil, values.given("voice") != nil {
      throw NodeProblem(
        "only an asset has a choice of voices", parameter: "voice", cure: "set \"asset\", or leave it out")
    }
    switch (values.given("project"), values.given("asset")) {
    case (let project?, nil): return .project(project)
    case (nil, let asset?): return .asset(asset, timbre: values.given("voice"))
    case (nil, nil):
      throw NodeProblem(
        "a session needs an avatar", parameter: "project",
        cure: "set \"project\" or \"asset\", or \"generation\" to \"stream\"")
    default:
      throw NodeProblem("a session has one avatar", parameter: "asset", cure: "set \"project\" or \"asset\"")
    }
  }

  private static func room(
    _ values: ParameterValues, _ delivery: IVHCreation.Delivery
  ) throws(NodeProblem) -> IVHCreation.Room? {
    let names = ["trtcApp", "trtcRoom", "trtcRoomName", "trtcAutoRoom", "trtcUserSig", "trtcPrivateMapKey"]
    guard let first = names.first(where: values.has) else { return nil }
    guard delivery == .trtc else {
      throw NodeProblem(
        "a room needs the protocol trtc", parameter: first,
        cure: "set \"protocol\" to \"trtc\", or leave it out")
    }
    var room = IVHCreation.Room()
    room.application = values.text("trtcApp")
    room.userSignature = values.text("trtcUserSig")
    room.privateMapKey = values.text("trtcPrivateMapKey")
    guard room.application == nil || room.userSignature != nil && room.privateMapKey != nil else {
      throw NodeProblem(
        "your own TRTC application needs the avatar's signature and permission key", parameter: "trtcApp",
        cure: "set \"trtcUserSig\" and \"trtcPrivateMapKey\"")
    }
    if values.has("trtcRoom") {
      room.name = .number(values.integer("trtcRoom"))
    } else if let name = values.text("trtcRoomName") {
      room.name = .text(name)
    } else if let kind = values.text("trtcAutoRoom") {
      room.name = .automatic(isText: kind == "text")
    }
    return room
  }

  // MARK: Voice

  /// Milliseconds of a packet.
  private static func frame(
    _ values: ParameterValues, _ generation: IVHGeneration
  ) throws(NodeProblem) -> Int64 {
    let allowed = generation == .stream ? [100, 200] : [160]
    guard values.has("frame") else { return Int64(allowed[0]) }
    let frame = values.integer("frame")
    guard allowed.contains(frame) else {
      let list = allowed.map(String.init).joined(separator: " or ")
      throw NodeProblem(
        "the \(generation.rawValue) generation takes packets of \(list) ms", parameter: "frame",
        cure: "leave it out")
    }
    return Int64(frame)
  }

  static func voice(_ values: ParameterValues, _ rules: IVHRules) throws(NodeProblem) -> VoiceFormat {
    let frame = Nanoseconds.milliseconds(try frame(values, rules.generation))
    var voice = VoiceFormat(
      rate: 16_000, frame: frame, isOpus: false, preRoll: values.nanoseconds("preRoll"))
    voice.isReply = rules.isBotReply
    voice.sendsSilenceAfterEnd = false
    // A reply may run ahead: six packets at once, then one of 160 ms every 120 ms. Source: cloud.tencent.com/document/product/1240/100398.
    voice.pace =
      switch (rules.generation, rules.isBotReply) {
      case (.stream, _), (.session, false): Pacer(interval: frame)
      case (.session, true): Pacer(interval: .milliseconds(120), burst: 6)
      }
    return voice
  }

  // MARK: Endpoint

  static func endpoint(
    _ values: ParameterValues, _ rules: IVHRules, secrets: Secrets
  ) throws(NetError) -> IVHEndpoint {
    let address = try WebAddress(values.string("url"))
    var origin = HTTPClient.Request("POST", address)
    origin.headers = [("Content-Type", "application/json;charset=utf-8")]
    origin.limit = IVHEnvelope.largest
    // The query has a signature: it is for this server alone.
    origin.redirects = 0
    origin.trust = values.trust
    origin.proxy = try values.proxy
    let limit = values.integer("open")
    origin.timeouts = HTTPClient.Timeouts(connect: limit, answer: limit, whole: limit)
    let scheme = address.scheme == .https ? "wss" : "ws"
    var request = WebSocketRequest(
      try WebAddress(values.text("wsUrl") ?? "\(scheme)://\(address.authority)/"))
    request.limits.open = limit
    request.limits.message = IVHEnvelope.largest
    // A ping after two thirds of it, and the rest for its answer.
    let silence = Int(values.nanoseconds("silence") / 1_000_000)
    request.limits.ping = silence * 2 / 3
    request.limits.pong = silence - request.limits.ping
    request.trust = values.trust
    request.proxy = try values.proxy
    return IVHEndpoint(
      rules.generation, origin: origin, channel: request,
      account: IVHAccount(appKey: values.string("key"), token: values.string("token")), secrets: secrets)
  }
}
