internal import MillraceCore
internal import MillraceNet
internal import MillraceRTCSignal
internal import MillraceService

/// The parameters of `rtc.peer`, their checks, and the settings of its signalling.
enum PeerForm {
  /// The input `control`.
  static let control = 3
  /// Bytes that an event with a description needs at least: four codecs, pictures, messages, and the candidates of a machine with several
  /// networks.
  private static let leastEvent = 8_192

  static let parameters: [ParameterContract] = membership + other + direct + session

  /// As for `rtc.room`; nobody has slots.
  private static let membership: [ParameterContract] = RoomForm.membership.filter { $0.name != "slots" }.map {
    guard $0.name == "url" else { return $0 }
    var parameter = $0
    parameter.text = "\($0.text); default: no room, signalling at `control` and `events`"
    return parameter
  }

  /// The other side in a room.
  private static let other: [ParameterContract] = [
    ParameterContract("peer", .string, text: "the other side in the room, by the id that the hub gave it"),
    ParameterContract(
      "with", .string, text: "the other side in the room, by its user; default: the first one that answers"),
  ]

  /// Signalling at `control` and `events`.
  private static let direct: [ParameterContract] = [
    ParameterContract(
      "offers", .bool, default: false,
      text: "without a room: true: begins, and ends with its session; false: waits for offers"),
    ParameterContract(
      "polite", .bool,
      text:
        "without a room: true: when both sides offer at once, this one takes its offer back; default: true, unless it offers"
    ),
    ParameterContract(
      "trickle", .bool, default: true,
      text: "without a room: false: sends only the candidates that its description has"),
  ]

  /// As for every node with sessions, but nobody has to be there to be heard, and a description has to fit into an event.
  private static let session: [ParameterContract] = RTCParameters.session.map {
    var parameter = $0
    switch parameter.name {
    case "media": parameter.defaultValue = .integer(0)
    case "eventBytes": parameter.defaultValue = .integer(16_384)
    default: break
    }
    return parameter
  }

  static let controlIn = PortContract(
    "control", .kind(.event).or(.kind(.text)),
    text: """
      commands; and, without a room, what the other side says: events `extra` `sdp`, `candidate` and `hangUp`, among which others may be
      """,
    required: false, holds: 1)

  // MARK: Settings

  static func isInRoom(_ parameters: ParameterValues) -> Bool { parameters.given("url") != nil }

  /// How the node takes part without a room.
  static func link(_ parameters: ParameterValues, _ media: SignalMedia) -> LinkSettings {
    var settings = LinkSettings(media: media)
    settings.offers = parameters.bool("offers")
    settings.isPolite = parameters.has("polite") ? parameters.bool("polite") : !settings.offers
    settings.isTrickle = parameters.bool("trickle")
    return settings
  }

  /// The other side in a room.
  static func choice(_ parameters: ParameterValues) -> RoomPeerChoice {
    if let peer = parameters.given("peer") { return .peer(peer) }
    if let user = parameters.given("with") { return .user(user) }
    return .first
  }

  // MARK: Checks

  static func resolve(_ resolution: inout Resolution) {
    if isInRoom(resolution.parameters) { checkRoom(&resolution) } else { checkLink(&resolution) }
    RTCResolution.checkSession(&resolution)
    RTCResolution.resolveOutputs(&resolution)
  }

  private static func checkRoom(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    refuse(
      direct.map(\.name), "it applies only without a room", cure: "leave it out, or leave \"url\" out",
      &resolution)
    if parameters.given("peer") != nil, parameters.given("with") != nil {
      resolution.refuse(
        "with", "the other side is named by \"peer\" already", cure: "set either \"peer\" or \"with\"")
    } else if let problem = choice(parameters).problem {
      resolution.refuse(
        parameters.given("peer") == nil ? "with" : "peer", problem.text, cure: problem.cure)
    }
    ServiceParameters.checkProxy(&resolution)
    RTCResolution.checkAddress(&resolution, parameters.string("url"), schemes: RoomForm.schemes)
    do throws(NodeProblem) { _ = try RoomForm.client(parameters, SignalMedia()) } catch {
      // An address was looked at above.
      if error.parameter != "url" { resolution.refuse(error.parameter, error.text, cure: error.cure) }
    }
  }

  private static func checkLink(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    let ofRoom =
      (membership + other + ServiceParameters.network + RTCParameters.protection).map(\.name)
      .filter { $0 != "url" }
    refuse(
      ofRoom, "it applies only to a room", cure: "leave it out, or set \"url\" to join a hub", &resolution)
    if !resolution.linkedInputs.contains("control") {
      resolution.refuse(
        nil, "neither a room nor signalling over links is set",
        cure: "set \"url\" to meet the other side in a room, or link what the other side says to \"control\"")
    }
    let bytes = parameters.integer("eventBytes")
    if bytes < leastEvent {
      resolution.refuse(
        "eventBytes", "\(bytes) bytes are not enough for a description", cure: "set at least \(leastEvent)")
    }
  }

  /// Refuses parameters that are set, and have no effect.
  private static func refuse(
    _ names: [String], _ text: String, cure: String, _ resolution: inout Resolution
  ) {
    let parameters = resolution.parameters
    for parameter in Self.parameters where names.contains(parameter.name) {
      guard let value = parameters[parameter.name], value != parameter.defaultValue else { continue }
      resolution.refuse(parameter.name, text, cure: cure)
    }
  }
}
