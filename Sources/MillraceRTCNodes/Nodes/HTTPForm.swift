internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceRTCSignal
internal import MillraceRTCWire
internal import MillraceService

/// The two forms of signalling that are one request over HTTP: WHIP (RFC 9725), by which somebody publishes, and WHEP, by which somebody
/// plays. Each as client, with `url`, and as server, with `listen`.
enum HTTPForm: Sendable {
  case whip, whep

  /// The ports of both: `RTCPorts` has the inputs 0 to 3.
  static let inputs = [
    RTCPortContracts.audioIn, RTCPortContracts.videoIn, RTCPortContracts.dataIn, RTCPortContracts.control,
    RTCPortContracts.address,
  ]
  static let outputs = [
    RTCPortContracts.audioOut, RTCPortContracts.videoOut, RTCPortContracts.dataOut,
  ]
  /// The index of the input `address`.
  static let address = 4

  /// `url`, `bearer`, `mode` or `viewers`, and what every session has.
  var parameters: [ParameterContract] {
    let client = [
      ParameterContract(
        "url", .string, secret: .address,
        text: "endpoint to connect to: https:, or http: on this machine"),
      ParameterContract(
        "bearer", .string, secret: .whole,
        text: "`Authorization: Bearer ...`: what a client sends, and what a server requires of clients"),
      RTCParameters.headers,
    ]
    let own =
      switch self {
      case .whip:
        ParameterContract(
          "mode", .choice(["send", "sendrecv"]), default: "send",
          text: "send: media goes from the client to the server only; sendrecv: both ways in one session")
      case .whep:
        ParameterContract(
          "viewers", .integer(1...10_000), default: 100,
          text: "most viewers of a server at a time; others are asked to come again")
      }
    let server = RTCParameters.server.map { $0.name == "listen" ? $0.opening(Self.socket) : $0 }
    return client + [own] + server + RTCParameters.session
  }

  /// The port of a server, which `ListeningPort` shares under these rules.
  private static let socket = ListeningSocket(
    host: "host",
    sharing: ListeningSocket.Sharing(
      group: "rtc", path: "path", rules: ["certificate", "key", "origins", "hosts", "plain"]))

  /// Which way media goes, seen from this side.
  func directions(_ parameters: ParameterValues) -> RTCResolution.Directions {
    let isServer = parameters.has("listen")
    switch self {
    case .whip where parameters.string("mode") == "sendrecv":
      return RTCResolution.Directions(sends: true, receives: true, cure: "")
    case .whip:
      return RTCResolution.Directions(
        sends: !isServer, receives: isServer, cure: "set \"mode\" to \"sendrecv\", or remove the link")
    case .whep:
      return RTCResolution.Directions(
        sends: isServer, receives: !isServer,
        cure: isServer
          ? "a server of WHEP only sends; remove the link, or take rtc.whip"
          : "a client of WHEP only receives; remove the link, or take rtc.whip")
    }
  }

  // MARK: Checks

  func resolve(_ resolution: inout Resolution) {
    checkSide(&resolution)
    if resolution.parameters.has("listen") { checkServer(&resolution) } else { checkClient(&resolution) }
    RTCResolution.checkLinks(&resolution, directions(resolution.parameters))
    RTCResolution.checkSession(&resolution)
    RTCResolution.resolveOutputs(&resolution)
  }

  private func checkSide(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    let hasAddress = resolution.linkedInputs.contains("address")
    let (connects, listens) = (parameters.given("url") != nil || hasAddress, parameters.has("listen"))
    guard connects == listens else { return }
    resolution.refuse(
      nil,
      connects ? "it cannot both connect and listen" : "neither an endpoint nor a port is set",
      cure: connects
        ? "set either \"url\" or \"listen\"; the input \"address\" is for a client"
        : "set \"url\" to connect, \"listen\" to be the server, or link the input \"address\"")
  }

  private func checkClient(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    for name in ["origins", "hosts"] where !parameters.strings(name).isEmpty {
      resolution.refuse(name, "it applies only to a server", cure: "use it with \"listen\"")
    }
    for name in ["certificate", "key"] where parameters.has(name) {
      resolution.refuse(
        name, "only a server has one", cure: "to trust an authority when connecting, use \"roots\"")
    }
    checkListening(&resolution)
    RTCResolution.checkHeaders(&resolution)
    ServiceParameters.checkProxy(&resolution)
    guard let url = parameters.given("url") else { return }
    do throws(NodeProblem) {
      _ = try client(url, parameters, media: SignalMedia(audio: .sendOnly))
    } catch {
      resolution.refuse(error.parameter ?? "url", error.text, cure: error.cure)
    }
  }

  /// `host`, `path` and `viewers` are those of a server, and have defaults.
  private func checkListening(_ resolution: inout Resolution) {
    for parameter in self.parameters where ["host", "path", "viewers"].contains(parameter.name) {
      guard resolution.parameters[parameter.name] != parameter.defaultValue else { continue }
      resolution.refuse(
        parameter.name, "it applies only to a server",
        cure: "leave it out: a client connects to \"url\"; or set \"listen\" in place of \"url\"")
    }
  }

  private func checkServer(_ resolution: inout Resolution) {
    let parameters = resolution.parameters
    if !parameters.strings("headers").isEmpty {
      resolution.refuse("headers", "a server does not send any", cure: "use them with \"url\"")
    }
    if let problem = server(parameters, media: SignalMedia(audio: .receiveOnly)).problem {
      resolution.refuse(problem.parameter, problem.text, cure: problem.cure)
    }
  }

  // MARK: Settings

  /// The settings of a client for an endpoint.
  /// - Throws: what is wrong with them.
  func client(
    _ url: String, _ parameters: ParameterValues, media: SignalMedia
  ) throws(NodeProblem) -> WHIPSettings {
    var settings = WHIPSettings(
      url: try RTCCallParameters.address(url), media: media, isPlayback: self == .whep)
    settings.bearer = parameters.given("bearer")
    settings.headers = RTCCallParameters.headers(parameters)
    settings.timeout = parameters.integer("signal")
    settings.roots = parameters.text("roots")
    settings.proxy = try RTCCallParameters.proxy(parameters)
    settings.verify = parameters.bool("verify")
    settings.plain = parameters.bool("plain")
    if let problem = settings.problem { throw problem }
    return settings
  }

  /// The settings of a server.
  func server(_ parameters: ParameterValues, media: SignalMedia) -> ResourceServerSettings {
    var settings = ResourceServerSettings(
      role: self == .whip ? .ingest : .playback, port: parameters.integer("listen"),
      path: parameters.string("path"), media: media)
    settings.host = parameters.string("host")
    settings.bearer = parameters.given("bearer")
    settings.origins = parameters.strings("origins")
    settings.hosts = parameters.strings("hosts")
    settings.plain = parameters.bool("plain")
    settings.certificate = parameters.text("certificate")
    settings.key = parameters.text("key")
    if self == .whep { settings.viewers = parameters.integer("viewers") }
    settings.timeout = parameters.integer("signal")
    return settings
  }

  // MARK: The call

  /// Ports with a call: to an endpoint, or to those who connect.
  /// - Parameter endpoint: nil: it listens.
  func ports(_ setup: borrowing NodeSetup, _ endpoint: String?) throws(NodeProblem) -> RTCPorts {
    let (kept, parameters) = (copy setup, setup.parameters)
    let directions = directions(parameters)
    let media = RTCCallParameters.media(setup, sends: directions.sends, receives: directions.receives)
    var call = try RTCCallParameters.settings(setup, media)
    call.takesToken = endpoint != nil
    let settings = call
    let maker: RTCCall.Maker
    if let endpoint {
      maker = Self.maker(try client(endpoint, parameters, media: media))
    } else {
      maker = Self.maker(server(parameters, media: media))
    }
    return try RTCPorts(
      kept, RTCPorts.Inputs(audio: 0, video: 1, data: 2, control: 3),
      RTCPorts.Outputs(audio: 0, video: 1, data: 2)
    ) { (exchange) throws(NodeProblem) in try RTCNodeCall(kept, exchange, settings, maker) }
  }

  private static func maker(_ settings: WHIPSettings) -> RTCCall.Maker {
    // The servers that one attempt has learnt serve the next.
    let last = Locked<WHIPClient?>(nil)
    return { attempt in
      var settings = settings
      if let token = attempt.token { settings.bearer = token }
      if let known = last.withLock({ $0 }) { settings.servers = known.servers }
      let client = WHIPClient(settings)
      last.withLock { $0 = client }
      return .success(client)
    }
  }

  /// Makes a server for each attempt of a call.
  static func maker(_ settings: ResourceServerSettings) -> RTCCall.Maker {
    // A port that is in use at the start is a mistake; one that was had before is waited for.
    let last = Locked<ResourceServer?>(nil)
    return { _ in
      var settings = settings
      settings.hasHadPort = last.withLock { $0?.hasHadPort } ?? false
      let server = ResourceServer(settings)
      last.withLock { $0 = server }
      return .success(server)
    }
  }
}
