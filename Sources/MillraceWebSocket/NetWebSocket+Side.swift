internal import MillraceCore
internal import MillraceNet

/// From parameters to a client's request, or to where visitors are waited for.
extension NetWebSocket {
  static func side(_ parameters: ParameterValues) throws(NetProblem) -> SocketKeeper.Side {
    parameters.has("listen") ? .server(try reception(parameters)) : .client(try request(parameters))
  }

  private static func limits(_ parameters: ParameterValues) -> WebSocketLimits {
    var limits = WebSocketLimits()
    limits.message = parameters.integer("largest")
    limits.open = parameters.integer("open")
    limits.ping = parameters.integer("ping")
    limits.pong = parameters.integer("pong")
    // Well within the time a graph has to stop in.
    limits.close = 1_000
    return limits
  }

  // MARK: Server

  static func door(_ parameters: ParameterValues) -> WebSocketDoor {
    var door = WebSocketDoor()
    door.origins = parameters.strings("origins")
    door.hosts = parameters.strings("hosts")
    if parameters.has("token") { door.token = parameters.string("token") }
    door.plain = parameters.bool("plain")
    door.handshake = parameters.integer("handshake")
    door.halfOpen = parameters.integer("halfOpen")
    door.halfOpenPerAddress = parameters.integer("halfOpenPerAddress")
    return door
  }

  private static func reception(_ parameters: ParameterValues) throws(NetProblem) -> SocketKeeper.Reception {
    var reception = SocketKeeper.Reception(
      host: parameters.string("host"), port: parameters.integer("listen"), path: parameters.string("path"),
      protocols: parameters.strings("protocols"), limits: limits(parameters), door: door(parameters))
    if parameters.has("certificate") {
      let identity = NetIdentity(
        certificate: parameters.string("certificate"), key: parameters.string("key"))
      try identity.check()
      reception.identity = identity
    }
    return reception
  }

  // MARK: Client

  private static func request(_ parameters: ParameterValues) throws(NetProblem) -> WebSocketRequest {
    var request = WebSocketRequest(try WebAddress(parameters.string("url")))
    request.limits = limits(parameters)
    request.protocols = parameters.strings("protocols")
    request.headers = headers(parameters)
    request.allowsPlainCredentials = parameters.bool("plain")
    if !parameters.bool("verify") { request.trust = .anybody }
    if parameters.has("roots") { request.trust = .file(parameters.string("roots")) }
    switch parameters.string("proxy") {
    case "environment": request.proxy = .environment
    case "none": request.proxy = .direct
    case let text: request.proxy = .at(try NetProxy.Place(text))
    }
    if let problem = request.problem { throw problem }
    return request
  }

  private static func headers(_ parameters: ParameterValues) -> [(name: String, value: String)] {
    parameters.strings("headers").map { text in
      let colon = text.firstIndex(of: ":") ?? text.endIndex
      return (String(text[..<colon]), String(text[colon...].dropFirst().drop { $0 == " " }))
    }
  }

  /// What of a client would go out in plain text and must not; nil: nothing.
  static func plainProblem(_ parameters: ParameterValues, _ address: WebAddress) -> String? {
    var request = WebSocketRequest(address)
    request.headers = headers(parameters)
    return request.plainCredential.map { "\($0) would go over the network in plain text" }
  }
}
