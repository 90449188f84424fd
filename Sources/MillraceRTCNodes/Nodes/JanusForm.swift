internal import MillraceCore
internal import MillraceNet
internal import MillraceRTCSignal
internal import MillraceRTCWire
internal import MillraceService

/// The parameters of `rtc.janus`, their checks, and the settings of its signalling.
enum JanusForm {
  static let parameters: [ParameterContract] =
    [
      ParameterContract(
        "url", .string, required: true, secret: .address,
        text: "address of Janus: https:, http:, wss: or ws:; without TLS on this machine only"),
      ParameterContract(
        "plugin", .choice(JanusPluginName.allCases.map(\.rawValue)), required: true,
        text: "what is to be done there"),
      ParameterContract("room", .string, text: "room of audiobridge, videoroom or textroom: its id"),
      ParameterContract("stream", .string, text: "mountpoint of streaming: its id"),
      ParameterContract(
        "pin", .string, secret: .whole, text: "pin of the room or of the mountpoint, where it has one"),
      ParameterContract(
        "secret", .string, secret: .whole,
        text: "secret of those who manage the room; for the command `extra` `kick`"),
      ParameterContract("display", .string, text: "name that others see"),
      ParameterContract(
        "user", .string, text: "name of this client in a textroom, unique there; default: a random one"),
      ParameterContract(
        "subscribe", .list(of: .string, count: 0...64), default: .list([.string("all")]),
        text: "publishers of a videoroom that are received: their ids, or all; empty: none"),
      ParameterContract("muted", .bool, default: false, text: "true: joins an audiobridge muted"),
      ParameterContract(
        "apiSecret", .string, secret: .whole, text: "secret of the server's interface, where it has one"),
      ParameterContract(
        "token", .string, secret: .whole, text: "token for the server, where it asks for one"),
    ] + RTCParameters.session

  static func plugin(_ parameters: ParameterValues) -> JanusPluginName {
    JanusPluginName(rawValue: parameters.string("plugin")) ?? .echotest
  }

  /// Which way sound and pictures go.
  static func directions(_ plugin: JanusPluginName) -> RTCResolution.Directions {
    switch plugin {
    case .echotest, .audiobridge, .videoroom:
      RTCResolution.Directions(sends: true, receives: true, cure: "remove the link")
    case .streaming:
      RTCResolution.Directions(
        sends: false, receives: true, cure: "remove the link; a mountpoint is fed by other means")
    case .textroom:
      RTCResolution.Directions(
        sends: false, receives: false, cure: "remove the link; a textroom has texts at \"data\" only")
    }
  }

  /// What the sessions carry.
  static func media(_ setup: borrowing NodeSetup) -> SignalMedia {
    let plugin = plugin(setup.parameters)
    let directions = directions(plugin)
    var media = RTCCallParameters.media(setup, sends: directions.sends, receives: directions.receives)
    if plugin == .textroom { media.hasData = true }
    return media
  }

  // MARK: Checks

  static func resolve(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    let plugin = plugin(parameters)
    ServiceParameters.checkProxy(&resolution)
    checkAddress(&resolution)
    checkPlugin(&resolution, plugin)
    RTCResolution.checkLinks(&resolution, directions(plugin))
    if plugin == .audiobridge { checkAudioBridge(&resolution) }
    RTCResolution.checkSession(&resolution)
    RTCResolution.resolveOutputs(&resolution)
    // The ports have the channel of the room.
    if plugin == .textroom { resolution.reservedNames = [TextRoomChannel.label: "for the texts of its room"] }
  }

  private static func checkAddress(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    RTCResolution.checkAddress(
      &resolution, parameters.string("url"), schemes: schemes)
  }

  /// Of the server's address.
  private static let schemes: [WebAddress.Scheme] = [.https, .http, .wss, .ws]

  private static func checkPlugin(_ resolution: inout Resolution, _ plugin: JanusPluginName) {
    let parameters = resolution.parameters
    if plugin.hasRoom && parameters.given("room") == nil {
      resolution.refuse("room", "the plugin \(plugin.rawValue) needs a room", cure: "set it to the room's id")
    }
    if !plugin.hasRoom && parameters.has("room") {
      resolution.refuse("room", "the plugin \(plugin.rawValue) has no rooms", cure: "leave it out")
    }
    if plugin == .streaming && parameters.given("stream") == nil {
      resolution.refuse("stream", "the plugin streaming needs a mountpoint", cure: "set it to the id of one")
    }
    if plugin != .streaming && parameters.has("stream") {
      resolution.refuse(
        "stream", "the plugin \(plugin.rawValue) has no mountpoints", cure: "leave it out, or set \"plugin\"")
    }
    if plugin != .audiobridge && parameters.bool("muted") {
      resolution.refuse(
        "muted", "only an audiobridge is joined muted", cure: "send the command `mute` when it is time")
    }
  }

  /// Its sessions carry one medium.
  private static func checkAudioBridge(_ resolution: inout Resolution) {
    for name in ["video", "data"]
    where resolution.linkedInputs.contains(name) || resolution.wanted[name]?.isEmpty == false {
      resolution.refuse(
        nil, "\"\(name)\" is linked, and an audiobridge carries sound only",
        cure: "remove the link, or take a videoroom")
    }
  }

  // MARK: Settings

  /// The settings of the signalling.
  static func settings(
    _ parameters: ParameterValues, media: SignalMedia
  ) throws(NodeProblem) -> JanusSettings {
    var settings = JanusSettings(
      url: try RTCCallParameters.address(parameters.string("url"), schemes: schemes),
      plugin: plugin(parameters), media: media)
    settings.room = parameters.given("room").map { JanusID(parsing: $0) }
    settings.stream = parameters.given("stream").map { JanusID(parsing: $0) }
    settings.pin = parameters.given("pin")
    settings.secret = parameters.given("secret")
    settings.display = parameters.given("display")
    settings.user = parameters.given("user")
    settings.subscribe = subscription(parameters.strings("subscribe"))
    settings.muted = parameters.bool("muted")
    settings.apiSecret = parameters.given("apiSecret")
    settings.token = parameters.given("token")
    settings.timeout = parameters.integer("signal")
    settings.roots = parameters.text("roots")
    settings.proxy = try RTCCallParameters.proxy(parameters)
    settings.verify = parameters.bool("verify")
    settings.plain = parameters.bool("plain")
    if let problem = settings.problem { throw NodeProblem(problem) }
    return settings
  }

  private static func subscription(_ names: [String]) -> JanusSubscription {
    if names.contains("all") { return .all }
    return names.isEmpty ? .none : .list(Set(names))
  }
}
