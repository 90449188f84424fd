internal import MillraceCore
internal import MillraceCrypto
internal import MillraceDialog
internal import MillraceNet
internal import MillraceRTC
internal import MillraceRTCSignal
internal import MillraceRTCWire
internal import MillraceRoom
internal import MillraceRoomWire
internal import MillraceService

/// The parameters of `rtc.room`, their checks, and the settings of its signalling and of a hub of its own. `rtc.peer` shares those of
/// membership.
enum RoomForm {
  /// Participants with outputs of their own.
  static let tracks = 8
  /// Nodes whose events a room can be told.
  static let mostEvents = 8
  static let schemes: [WebAddress.Scheme] = [.wss, .ws]

  static let parameters: [ParameterContract] = membership + hub + session

  /// Who takes part, and where.
  static let membership: [ParameterContract] = [
    ParameterContract(
      "url", .string, secret: .address,
      text: "the hub: wss:, or ws: on this machine or with `plain`; without a path /room is asked"),
    ParameterContract("room", .string, default: "lobby", text: "name of the room: letters, digits, - and _"),
    ParameterContract("user", .string, default: "bot", text: "who takes part: letters, digits, - and _"),
    ParameterContract("name", .string, text: "name that others see; default: that of the user"),
    ParameterContract(
      "token", .string, secret: .whole, text: "what lets the user in, where the hub asks for it"),
    ParameterContract(
      "role", .choice(["host", "viewer"]),
      text:
        "what the node wants to be; a viewer publishes nothing; default: the highest role that it may have"),
    ParameterContract(
      "slots", .integer(0...RoomClientSettings.mostSlots), default: .integer(tracks),
      text: "participants heard, and seen, at a time; those who speak come first"),
  ]

  /// A hub within the graph.
  static let hub: [ParameterContract] =
    [
      ParameterContract(
        "mode", .choice(["forward", "mix"]), default: "forward",
        text:
          "how a hub of this node distributes sound and pictures: forward: each participant's to all others; mix: one sound of all others"
      ),
      ParameterContract(
        "hubKey", .string, secret: .whole,
        text: "key that signs the tokens of a hub of this node; without one anybody on this machine may join"),
      ParameterContract(
        "page", .bool, default: true, text: "false: a hub of this node serves no page for browsers"),
    ] + RTCParameters.server.filter { $0.name != "path" }

  /// As for every node with sessions, but nobody has to be there to be heard.
  private static let session: [ParameterContract] = RTCParameters.session.filter { $0.name != "codecs" }
    .map { parameter in
      var parameter = parameter
      switch parameter.name {
      case "media": parameter.defaultValue = .integer(0)
      case "dataLabel":
        parameter.text = "label of the messages at the ports `data`; others become events"
      default: break
      }
      return parameter
    }

  // MARK: Ports

  /// Outputs of single participants.
  static func tracks(_ name: String, _ port: PortContract, _ text: String) -> [PortContract] {
    (1...tracks).map { number in
      PortContract("\(name)\(number)", port.formats, text: text, required: false)
    }
  }

  static let events = PortContract(
    "events", .kind(.event),
    text: "events of other nodes for all in the room, who get them as messages with the label `dialog`",
    required: false,
    copies: 1...mostEvents, holds: 1)

  /// What the sessions carry.
  static func media(_ setup: borrowing NodeSetup) -> SignalMedia {
    func hears(_ name: String) -> Bool { setup.outputs.contains { $0.isLinked && isTrack($0.name, name) } }
    return SignalMedia(
      audio: MediaDirection(sends: setup.inputs[0].isLinked, receives: hears("audio")),
      video: MediaDirection(sends: setup.inputs[1].isLinked, receives: hears("video")))
  }

  /// True for `audio` and `audio1` to `audio8`.
  private static func isTrack(_ port: String, _ name: String) -> Bool {
    port == name || port.hasPrefix(name) && Int(port.dropFirst(name.count)) != nil
  }

  // MARK: Checks

  static func resolve(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    let (connects, listens) = (parameters.given("url") != nil, parameters.has("listen"))
    if connects == listens {
      resolution.refuse(
        nil, connects ? "it cannot both connect to a hub and be one" : "neither a hub nor a port is set",
        cure: connects
          ? "set either \"url\" or \"listen\"" : "set \"url\" to join a hub, or \"listen\" to have one here")
    } else if listens {
      checkHub(&resolution)
    } else {
      checkClient(&resolution)
    }
    checkOutputs(&resolution)
    checkLabel(&resolution)
    RTCResolution.checkSession(&resolution)
    RTCResolution.resolveOutputs(&resolution)
    resolveTracks(&resolution)
  }

  private static func checkClient(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    ServiceParameters.checkProxy(&resolution)
    let ofHub: Set = ["origins", "hosts", "certificate", "key", "hubKey", "mode", "page", "host"]
    for parameter in Self.parameters where ofHub.contains(parameter.name) {
      guard let value = parameters[parameter.name], value != parameter.defaultValue else { continue }
      resolution.refuse(
        parameter.name, "it applies only to a hub of this node",
        cure: "leave it out, or set \"listen\" in place of \"url\"")
    }
    RTCResolution.checkAddress(&resolution, parameters.string("url"), schemes: schemes)
    do throws(NodeProblem) { _ = try client(parameters, SignalMedia()) } catch {
      // An address was looked at above.
      if error.parameter != "url" { resolution.refuse(error.parameter, error.text, cure: error.cure) }
    }
  }

  private static func checkHub(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    if parameters.given("token") != nil {
      resolution.refuse(
        "token", "the node makes its own for a hub of its own",
        cure: "leave it out; \"hubKey\" is the hub's key")
    }
    guard parameters.has("certificate") == parameters.has("key") else {
      return resolution.refuse(
        parameters.has("key") ? "certificate" : "key",
        "a certificate needs its key, and a key its certificate", cure: "set both, or neither")
    }
    let settings = server(parameters)
    if let problem = settings.problem {
      resolution.refuse(cause(of: problem.text, settings), problem.text, cure: nil)
    }
    do throws(NodeProblem) {
      _ = try client(parameters, SignalMedia(), port: 1)
    } catch { resolution.refuse(error.parameter, error.text, cure: error.cure) }
  }

  private static func checkLabel(_ resolution: inout Resolution) {
    let count = resolution.parameters.string("dataLabel").utf8.count
    guard count > RoomLimits.labelBytes else { return }
    resolution.refuse(
      "dataLabel", "the label has \(count) bytes, and a room takes \(RoomLimits.labelBytes) at most",
      cure: "set a shorter one")
  }

  /// Opus is one participant; single participants come in PCM, and pictures at one kind of output.
  private static func checkOutputs(_ resolution: inout Resolution) {
    func linked(_ name: String) -> Bool { resolution.wanted[name]?.isEmpty == false }
    let sounds = (1...tracks).map { "audio\($0)" }.filter(linked)
    let pictures = (1...tracks).map { "video\($0)" }.filter(linked)
    if let first = sounds.first, resolution.parameters.string("format") == "opus" {
      resolution.refuse(
        "format", "\"\(first)\" is linked, and single participants come as PCM only",
        cure: "leave \"format\" out")
    }
    checkOpus(&resolution)
    checkSlots(&resolution)
    if let first = pictures.first, linked("video") {
      resolution.refuse(
        nil, "both \"video\" and \"\(first)\" are linked",
        cure: "\"video\" shows one participant at a time; link it, or the outputs of single participants")
    }
    if resolution.parameters.string("mode") == "mix", resolution.parameters.has("listen") {
      let cure = "set \"mode\" to \"forward\""
      if let other = sounds.first(where: { $0 != "audio1" }) {
        resolution.refuse("mode", "\"\(other)\" is linked, and a mix has no single participants", cure: cure)
      }
      let isVideoLinked = linked("video") || resolution.linkedInputs.contains("video")
      if let video = pictures.first ?? (isVideoLinked ? "video" : nil) {
        resolution.refuse("mode", "\"\(video)\" is linked, and a mix has no pictures", cure: cure)
      }
    }
  }

  /// Packets of Opus are passed on, and cannot be mixed: without a hub that mixes they are those of one participant.
  private static func checkOpus(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    guard parameters.string("format") == "opus", parameters.integer("slots") > 1,
      !(parameters.has("listen") && parameters.string("mode") == "mix")
    else { return }
    resolution.refuse(
      "format", "Opus carries one participant, and \(parameters.integer("slots")) are to be heard",
      cure: "set \"slots\" to 1, or leave \"format\" out")
  }

  private static func resolveTracks(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    let (rate, channels) = (parameters.integer("rate"), parameters.integer("channels"))
    for number in 1...tracks {
      let name = "audio\(number)"
      let isFloat = resolution.isWanted(.pcm(rate: rate, channels: channels, sample: .f32), at: name)
      let isShort = resolution.isWanted(.pcm(rate: rate, channels: channels, sample: .s16), at: name)
      resolution.outputs[name] = .pcm(
        rate: rate, channels: channels, sample: isShort && !isFloat ? .s16 : .f32,
        frames: rate * RTCResolution.frame / 1_000, burst: 0)
      resolution.outputs["video\(number)"] = resolution.outputs["video"]
    }
  }

  // MARK: Settings

  /// How the node takes part.
  /// - Parameters:
  ///   - port: of the hub of this node; nil: it joins another one.
  ///   - own: lets this node into its own hub.
  static func client(
    _ parameters: ParameterValues, _ media: SignalMedia, port: Int? = nil, own: SecretKey? = nil
  ) throws(NodeProblem) -> RoomClientSettings {
    let url =
      if let port { ownAddress(parameters, port: port) } else { parameters.string("url") }
    var settings = RoomClientSettings(
      url: try RTCCallParameters.address(url, schemes: schemes), user: parameters.string("user"),
      room: parameters.string("room"), media: media)
    settings.name = parameters.given("name")
    settings.token = parameters.given("token")
    settings.role = parameters.has("role") ? RoomRole(rawValue: parameters.string("role")) : nil
    settings.publish = []
    settings.subscribe = []
    if media.audio.sends { settings.publish.insert(.audio) }
    if media.video.sends { settings.publish.insert(.video) }
    if media.audio.receives { settings.subscribe.insert(.audio) }
    if media.video.receives { settings.subscribe.insert(.video) }
    if parameters.has("slots") { settings.slots = parameters.integer("slots") }
    settings.timeout = parameters.integer("signal")
    if parameters.has("dataLabel") { settings.dataLabel = parameters.string("dataLabel") }
    if port == nil {
      settings.roots = parameters.text("roots")
      settings.proxy = try RTCCallParameters.proxy(parameters)
      settings.verify = parameters.bool("verify")
      settings.plain = parameters.bool("plain")
    } else {
      settings.isOwnHub = true
      settings.proxy = .direct
      settings.token = own.flatMap { ownToken(parameters, $0) }
    }
    if let problem = settings.problem { throw problem }
    return settings
  }

  private static func ownAddress(_ parameters: ParameterValues, port: Int) -> String {
    let host =
      switch parameters.string("host") {
      case "0.0.0.0", "localhost": "127.0.0.1"
      case "::": "::1"
      case let host: host
      }
    let scheme = parameters.has("certificate") ? "wss" : "ws"
    return "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }

  /// The token of this node for its own hub; nil where its user has no valid name.
  static func ownToken(_ parameters: ParameterValues, _ own: SecretKey) -> String? {
    guard let user = RoomName(parameters.string("user")) else { return nil }
    let token = RoomToken(user, rights: [.publish, .kick, .close], expiry: RoomToken.lastExpiry)
    return token.signed(with: own)
  }

  /// A key for nobody but this node.
  static func ownKey() -> SecretKey {
    let bytes = (0..<32).map { _ in UInt8.random(in: 0...255) }
    return SecretKey(bytes.span)
  }

  /// The format of this node's own pictures; nil: it neither sends nor receives any.
  static func pictures(_ setup: borrowing NodeSetup, _ media: SignalMedia) -> Format? {
    guard media.video != .inactive || setup.parameters.has("videoCodec") else { return nil }
    return RTCResolution.videoFormat(setup.parameters, setup.inputs[1].shape)
  }

  /// The hub of this node.
  /// - Parameters:
  ///   - pictures: the format of the node's own; nil: it has none.
  ///   - own: who has a token of it is this node, and nobody else takes its name.
  static func server(
    _ parameters: ParameterValues, pictures: Format? = nil, own: SecretKey? = nil
  ) -> RoomServerSettings {
    var settings = RoomServerSettings(port: parameters.integer("listen"))
    settings.host = parameters.string("host")
    settings.hub = RoomHubSettings(
      // An empty one is refused: it would let everybody in.
      key: parameters.text("hubKey").map { SecretKey(utf8: $0) },
      media: RoomMediaMode(rawValue: parameters.string("mode")) ?? .forward)
    if let own, let user = RoomName(parameters.string("user")) { settings.hub.reserved = [user: own] }
    // The end of the program does not wait longer.
    settings.socket.close = 700
    settings.hasPage = parameters.bool("page")
    // Members find the hub where the node's own sessions are found; how those use ICE is another matter.
    var ice = RTCCallParameters.ice(parameters)
    (ice.isLite, ice.isRelayOnly) = (false, false)
    settings.forwarding.session.ice = ice
    settings.forwarding.session.videoBitrate = RTCCallParameters.videoBitrate(parameters)
    // Browsers without H.264 are not seen then; with VP8 this node would see no browser, and none would see it.
    if pictures?.kind == .h264 { settings.forwarding.videoCodecs = [.h264, .vp8] }
    settings.mixing.session.ice = ice
    settings.admission.origins = parameters.strings("origins")
    settings.admission.hosts = parameters.strings("hosts")
    settings.admission.allowsPlaintext = parameters.bool("plain")
    if let certificate = parameters.text("certificate"), let key = parameters.text("key") {
      settings.identity = NetIdentity(certificate: certificate, key: key)
    }
    return settings
  }
}
