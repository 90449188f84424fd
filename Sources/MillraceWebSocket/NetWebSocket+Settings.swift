internal import MillraceCore
internal import MillraceNet

/// From parameters to a client's request or a server's settings.
extension NetWebSocket {
  static func side(_ parameters: ParameterValues) throws(NetError) -> SocketConnection.Side {
    guard parameters.has("listen") else { return .client(try request(parameters), try NetLoop.assign()) }
    let listener = try listener(parameters)
    try NetLoop.begin()
    return .server(listener)
  }

  private static func limits(_ parameters: ParameterValues) -> WebSocketLimits {
    var limits = WebSocketLimits()
    limits.message = parameters.integer("largest")
    limits.open = parameters.integer("open")
    limits.ping = parameters.integer("ping")
    limits.pong = parameters.integer("pong")
    // Well within the time a graph has to stop.
    limits.close = 1_000
    return limits
  }

  // MARK: Server

  static func admission(_ parameters: ParameterValues) -> ServerAdmission {
    var admission = ServerAdmission()
    admission.origins = parameters.strings("origins")
    admission.hosts = parameters.strings("hosts")
    if parameters.has("token") { admission.token = parameters.string("token") }
    admission.allowsPlaintext = parameters.bool("plain")
    admission.maxRequestBytes = parameters.integer("handshake")
    admission.halfOpen = parameters.integer("halfOpen")
    admission.halfOpenPerAddress = parameters.integer("halfOpenPerAddress")
    return admission
  }

  private static func listener(_ parameters: ParameterValues) throws(NetError) -> SocketConnection.Listener {
    var listener = SocketConnection.Listener(
      host: parameters.string("host"), port: parameters.integer("listen"), path: parameters.string("path"),
      protocols: parameters.strings("protocols"), limits: limits(parameters), admission: admission(parameters)
    )
    if parameters.has("certificate") {
      let identity = NetIdentity(
        certificate: parameters.string("certificate"), key: parameters.string("key"))
      try identity.check()
      listener.identity = identity
    }
    return listener
  }

  // MARK: Client

  private static func request(_ parameters: ParameterValues) throws(NetError) -> WebSocketRequest {
    var request = WebSocketRequest(try WebAddress(parameters.string("url")))
    request.limits = limits(parameters)
    request.protocols = parameters.strings("protocols")
    request.headers = headers(parameters)
    request.allowsPlainCredentials = parameters.bool("plain")
    if !parameters.bool("verify") { request.trust = .anyCertificate }
    if parameters.has("roots") { request.trust = .file(parameters.string("roots")) }
    switch parameters.string("proxy") {
    case "environment": request.proxy = .environment
    case "none": request.proxy = .direct
    case let text: request.proxy = .server(try NetProxy.Server(text))
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

  /// What is wrong with sending a client's credentials to this address, or nil.
  static func plainProblem(_ parameters: ParameterValues, _ address: WebAddress) -> String? {
    var request = WebSocketRequest(address)
    request.headers = headers(parameters)
    return request.plainCredential.map { "\($0) would go over the network in plain text" }
  }
}
