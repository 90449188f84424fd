internal import MillraceConformance
public import MillraceDoubles
internal import MillraceJSON
internal import MillraceNet
internal import MillraceService

/// A local double of the service: requests and command channels of both generations on one port. It plays a scenario, and reports a client's
/// mistakes.
///
/// It shares no code with the client's messages, so that the same mistake cannot be made on both sides.
public final class IVHDouble: Sendable {
  typealias Server = DoubleServer<IVHMembers, IVHTurnMembers>

  private let server: Server
  private let desk: IVHRequestHandler
  /// Carries the pictures; nil: there are none, or the scenario names a server.
  private let pictures: PictureServer?

  /// The port it listens on.
  public var port: Int { server.port }
  /// The address for clients on this machine.
  public var address: String { Self.address(port, isSecure: server.isSecure) }
  /// What has happened so far. Any thread.
  public var seen: DoubleReport { server.report }

  static func address(_ port: Int, isSecure: Bool = false) -> String {
    "\(isSecure ? "https" : "http")://127.0.0.1:\(port)"
  }

  private init(_ server: Server, _ desk: IVHRequestHandler, _ pictures: PictureServer?) {
    self.server = server
    self.desk = desk
    self.pictures = pictures
  }

  /// Starts listening on this machine.
  /// - Throws: why it cannot listen.
  public static func listen(
    _ scenario: IVHScenario = IVHScenario(), _ options: DoubleOptions = DoubleOptions()
  ) async throws(DoubleProblem) -> IVHDouble {
    var scenario = scenario
    var pictures: PictureServer?
    if scenario.hasPicture && scenario.stream.isEmpty { pictures = try await PictureServer.start() }
    if scenario.stream.isEmpty { scenario.stream = pictures?.address ?? "rtmp://127.0.0.1:1935/live" }
    let server = Server(scenario, observer: options.observer, watch: options.watch)
    let desk = IVHRequestHandler(server)
    try await server.listenForRequests(options) { desk.decide($0) }
    return IVHDouble(server, desk, pictures)
  }

  /// Adds a line to what the double prints.
  func note(_ line: String) { server.note(line) }

  /// Discards what the report lists of a dialogue.
  public func forget() { server.forget() }

  /// Stops listening, and ends all pictures.
  public func stop() {
    server.stop()
    desk.stop()
    pictures?.stop()
  }
}

/// Receives requests and channels. On the network thread.
final class IVHRequestHandler: @unchecked Sendable {
  typealias Server = IVHDouble.Server

  private static let stream = "/v2/ivh/streammanager/streamservice/"
  private static let session = "/v2/ivh/sessionmanager/sessionmanagerservice/"
  private static let command = "/v2/ivh/interactdriver/interactdriverservice/command"
  private static let streamChannel = "/v2/ws/ivh/streammanager/streamservice/commandchannel"
  private static let sessionChannel = "/v2/ws/ivh/interactdriver/interactdriverservice/commandchannel"

  let server: Server
  private var avatars: [String: DoubleSession] = [:]
  private var failing: [IVHMembers.Failure]
  private var requestIDs: Set<String> = []
  /// Requests that are never answered.
  private var unanswered: [HTTPReply] = []

  init(_ server: Server) {
    self.server = server
    failing = server.scenario.failing
  }

  /// Ends all pictures. Any thread.
  func stop() {
    NetLoop.shared.run { [self] in
      for avatar in avatars.values { avatar.endPicture() }
    }
  }

  private var time: Int { UnixTime.seconds + server.scenario.clock }
  private var tokens: [String] { server.scenario.keys.isEmpty ? [IVHSignature.token] : server.scenario.keys }

  func decide(_ request: HTTPServer.Request) -> HTTPServer.Decision {
    let path = request.path
    switch path {
    case Self.streamChannel: return channel(request, isSession: false)
    case Self.sessionChannel: return channel(request, isSession: true)
    case Self.command: return receive("command", isSession: true)
    default:
      if path.hasPrefix(Self.stream) {
        return receive(String(path.dropFirst(Self.stream.count)), isSession: false)
      }
      if path.hasPrefix(Self.session) {
        return receive(String(path.dropFirst(Self.session.count)), isSession: true)
      }
      server.violate("noEndpoint", "there is no \(path)")
      return .refuse(status: 404, "not found")
    }
  }

  // MARK: Requests

  private func receive(_ operation: String, isSession: Bool) -> HTTPServer.Decision {
    .receive { [self] request, reply in
      let failure = failing.firstIndex { $0.operation == operation }.map { failing.remove(at: $0) }
      if failure?.drops == true { return reply.drop() }
      let answer = failure.flatMap {
        $0.code == 0 ? nil : IVHResponse.refusal($0.code, "as the scenario requires")
      }
      server.later(failure?.delay ?? 0) { [self] in
        guard var result = answer ?? self.answer(operation, isSession: isSession, request) else {
          // One that is let go is answered as a failure.
          return unanswered.append(reply)
        }
        if let failure, failure.status != 200 { result.status = failure.status }
        if result.isRefusal { server.note("< \(operation) refused: \(result.reason)") }
        reply.send(result.response(at: time))
      }
    }
  }

  /// Nil: it is not answered.
  private func answer(_ operation: String, isSession: Bool, _ request: HTTPServer.Request) -> IVHResponse? {
    if request.method != "POST" { server.violate("noPost", "\(operation) came as \(request.method)") }
    if request[header: "Content-Type"]?.lowercased().hasPrefix("application/json") != true {
      server.violate("noJSONType", "\(operation) has no Content-Type of JSON")
    }
    if let refusal = checkQuery(request, isChannel: false) { return refusal }
    let json: JSONValue
    do throws(JSONProblem) { json = try JSONValue(parsing: request.body) } catch {
      server.violate("noJSON", "\(operation): \(error)")
      return .refusal(100_001, "not JSON")
    }
    guard json["Header"]?.members != nil, let payload = json["Payload"], payload.members != nil else {
      server.violate("noEnvelope", "\(operation) lacks Header or Payload")
      return .refusal(100_001, "Header or Payload is missing")
    }
    server.note("> \(operation)")
    if isSession { checkID(payload["ReqId"]?.string, operation) }
    let result = perform(operation, isSession: isSession, payload)
    return isSession ? result?.repeating(payload["ReqId"]) : result
  }

  /// The refusal of a query that is not signed as it should be.
  private func checkQuery(_ request: HTTPServer.Request, isChannel: Bool) -> IVHResponse? {
    if server.haveKeysExpired { return .refusal(100_005, "the accesstoken has expired") }
    switch IVHSignature.check({ request[query: $0] }, isChannel: isChannel, tokens: tokens, at: time) {
    case .valid: return nil
    case .missing(let name):
      server.violate("noSignature", "\(name) is missing")
      return .refusal(100_001, "\(name) is missing")
    case .late(let seconds): return .refusal(100_005, "the timestamp is \(seconds) s off")
    case .wrong: return .refusal(100_005, "the signature is wrong")
    }
  }

  private func checkID(_ id: String?, _ what: String) {
    guard let id, id.utf8.count == 32,
      id.utf8.allSatisfy({
        UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || UInt8(ascii: "a")...UInt8(ascii: "f") ~= $0
      })
    else { return server.violate("noRequestID", "\(what) has no ReqId of 32 hexadecimal digits") }
    if server.scenario.keeps, !requestIDs.insert(id).inserted {
      server.violate("oldRequestID", "\(what) has the ReqId of another request")
    }
  }

  private func perform(_ operation: String, isSession: Bool, _ payload: JSONValue) -> IVHResponse? {
    switch (operation, isSession) {
    case ("newsession", false), ("createsession", true), ("createsessionbyasset", true):
      return create(operation, isSession: isSession, payload)
    case ("listsession", false), ("listsessionofuin", true), ("listsessionofprojectid", true),
      ("listsessionofassetvk", true):
      return list(isSession: isSession)
    case ("queryconfig", false):
      return IVHResponse(["DriverTypes": [1, 2, 3], "RepaySource": "double"])
    default: break
    }
    let id = payload["SessionId"]?.string ?? ""
    guard let avatar = avatars[id], avatar.isSession == isSession else {
      // The stream generation reports an unknown session as closed, not as an error.
      if operation == "statsession" && !isSession { return IVHResponse(["SessionStatus": 2]) }
      return .refusal(isSession ? 110_018 : 110_006, "there is no such session")
    }
    switch operation {
    case "startsession": return avatar.start()
    case "statsession": return avatar.status()
    case "closesession":
      guard avatar.state != .closed else {
        return .refusal(isSession ? 110_013 : 110_006, "the session is closed")
      }
      server.change { $0.stops += 1 }
      avatar.close()
      return IVHResponse()
    case "command":
      guard payload["Command"]?.string == "SEND_TEXT" else {
        server.violate("wrongCommand", "command takes SEND_TEXT")
        return .refusal(100_002, "Command")
      }
      return avatar.take(payload).map { .refusal($0.code, $0.text) } ?? IVHResponse()
    case "configsession" where !isSession, "updatesessionconfig" where isSession: return configure(payload)
    default:
      server.violate("noOperation", "there is no \(operation)")
      return .refusal(100_009, "there is no \(operation)")
    }
  }

  private func create(_ operation: String, isSession: Bool, _ payload: JSONValue) -> IVHResponse {
    let number = server.countConnection()
    if number <= server.scenario.refusals {
      return .refusal(server.scenario.refusalStatus == 401 ? 100_005 : 100_000, "busy")
    }
    guard let user = payload["UserId"]?.string, !user.isEmpty else {
      server.violate("wrongCreation", "UserId is missing")
      return .refusal(100_003, "UserId")
    }
    guard let driver = payload["DriverType"]?.integer, (isSession ? [1, 3] : [1, 2, 3]).contains(driver)
    else {
      server.violate("wrongCreation", "DriverType")
      return .refusal(100_002, "DriverType")
    }
    let names = ["createsession": "VirtualmanProjectId", "createsessionbyasset": "AssetVirtualmanKey"]
    if let name = names[operation], (payload[name]?.string ?? "").isEmpty {
      server.violate("wrongCreation", "\(name) is missing")
      return .refusal(100_003, name)
    }
    guard avatars.values.count(where: { $0.state != .closed }) < server.scenario.quota else {
      return .refusal(100_008, "too many sessions")
    }
    for other in avatars.values where other.user == user && other.state != .closed { other.replace() }
    let id = "double-\(number)-\(UInt32.random(in: 1...UInt32.max))"
    _ = server.begin(session: id, payload)
    let avatar = DoubleSession(server, id: id, user: user, driver: driver, isSession: isSession)
    avatars = avatars.filter { $0.value.state != .closed || server.scenario.keeps }
    avatars[id] = avatar
    avatar.prepare()
    return avatar.status()
  }

  private func list(isSession: Bool) -> IVHResponse {
    let sessions = avatars.values.filter { $0.state != .closed && $0.isSession == isSession }.map {
      avatar -> JSONValue in
      [
        "UserId": .string(avatar.user), "SessionId": .string(avatar.id), "SessionStatus": 1,
        // The vendor's table says text, its example a number.
        "DriverType": isSession ? .integer(avatar.driver) : .string(String(avatar.driver)),
      ]
    }
    return IVHResponse(["Sessions": .array(sessions)])
  }

  private func configure(_ payload: JSONValue) -> IVHResponse {
    let space = payload["SpaceParam"]
    for (name, range) in [("ImagePosition", -0.5...0.5), ("ImagePositionVertical", -0.5...0.25)] {
      guard let value = space?[name]?.double, range.contains(value) else {
        server.violate("wrongPicture", name)
        return .refusal(100_002, name)
      }
    }
    if space?["ImageZoom"]?.double == nil || payload["ImageParam"] == nil {
      server.violate("wrongPicture", "ImageZoom or ImageParam is missing")
      return .refusal(100_003, "ImageZoom")
    }
    if space?["BackgroundUrl"]?.string?.contains("missing") == true {
      return .refusal(110_008, "the picture could not be downloaded")
    }
    return IVHResponse()
  }

  // MARK: Channels

  private func channel(_ request: HTTPServer.Request, isSession: Bool) -> HTTPServer.Decision {
    if let refusal = checkQuery(request, isChannel: true) {
      return .refuse(status: 401, refusal.text)
    }
    guard let avatar = avatars[request[query: "requestid"] ?? ""], avatar.isSession == isSession else {
      server.violate("noSession", "a channel of no session: requestid is the SessionId")
      return .refuse(status: 404, "no such session")
    }
    if let index = failing.firstIndex(where: { $0.operation == IVHMembers.Failure.channel }) {
      return fail(failing.remove(at: index))
    }
    if let refusal = avatar.refusalOfChannel { return .refuse(status: refusal.status, refusal.text) }
    return .webSocket { socket in
      avatar.open(socket)
      return { avatar.handle($0, of: socket) }
    }
  }
}

extension IVHRequestHandler {
  /// Refuses a channel, or does not answer.
  private func fail(_ failure: IVHMembers.Failure) -> HTTPServer.Decision {
    .receive { [self] _, reply in
      server.later(failure.delay) { [self] in
        if failure.drops { return reply.drop() }
        var result = IVHResponse.refusal(failure.code, "as the scenario requires")
        result.status = failure.status == 200 ? 403 : failure.status
        server.note("< commandchannel refused: \(result.reason)")
        reply.send(result.response(at: time))
      }
    }
  }
}

/// The answer to a request.
struct IVHResponse {
  var status = 200
  private var code = 0
  private(set) var text = ""
  private var payload: JSONValue

  init(_ payload: JSONValue = .object([] as [JSONValue.Member])) { self.payload = payload }

  static func refusal(_ code: Int, _ text: String) -> IVHResponse {
    var reply = IVHResponse()
    reply.code = code
    reply.text = text
    return reply
  }

  var isRefusal: Bool { code != 0 || status >= 400 }

  /// The code or status, and the text.
  var reason: String { "\(code == 0 ? status : code) \(text)" }

  /// With the request's id, as the session generation answers.
  func repeating(_ id: JSONValue?) -> IVHResponse {
    var reply = self
    if let id { reply.payload = .object((payload.members ?? []) + [JSONValue.Member("ReqId", id)]) }
    return reply
  }

  func response(at time: Int) -> HTTPServer.Response {
    let body: JSONValue = [
      "Header": [
        "RequestID": "double", "SessionID": "trace", "DialogID": "", "Code": .integer(code),
        "Message": .string(text),
      ], "Payload": payload,
    ]
    return HTTPServer.Response(
      status: status,
      headers: [("Content-Type", "application/json"), ("Date", HTTPDate.text(ofSeconds: time))],
      body: body.bytes)
  }
}
