public import MillraceConformance
internal import MillraceCore
public import MillraceDialog
public import MillraceJSON
internal import MillraceNet

/// A local backend for `net.websocket`, for the conformance suite.
///
/// It speaks the vocabulary of `MillraceDialog` in text frames, one event or command each, and sends audio in binary frames: the
/// protocol of a backend written for Millrace.
public final class BackendDouble: ServiceDouble {
  public static let traits: ServiceTraits = {
    var traits = ServiceTraits(nodeType: "net.websocket", vendor: "websocket", key: "sk-nobody-may-see-this")
    traits.control = "text"
    traits.takesReports = false
    traits.eventOutputs = ["text"]
    traits.detectsSpeech = false
    traits.endsUtterances = false
    traits.dropsStaleAudio = false
    let turn: Set<ServiceFault.Place> = [.thinking, .responding, .midway, .answered]
    let first: Set<ServiceFault.Place> = [.connecting, .listening]
    traits.faults = [
      .hold: turn.union(first), .stall: turn.union(first), .drop: turn.union(first),
      .malformed: turn.union([.listening]), .unknown: turn.union([.listening]), .oversized: turn,
      .failure: turn, .expire: turn.union([.listening]),
    ]
    return traits
  }()

  let script: ServiceScript
  private let mute: SilentPort?
  private let server = Locked<WebSocketServer?>(nil)
  private let report = Locked(ServiceReport())
  private let progress = Locked((hasBroken: false, hasExpired: false, replies: 0))

  public static func start(_ script: ServiceScript) async throws -> BackendDouble {
    let double = BackendDouble(script, script.isSilent ? try SilentPort() : nil)
    let server = try await WebSocketServer.listen(port: 0) { [double] client in double.decide(client) }
    double.server.withLock { $0 = server }
    return double
  }

  private init(_ script: ServiceScript, _ mute: SilentPort?) {
    self.script = script
    self.mute = mute
  }

  public var parameters: [JSONValue.Member] {
    let port = mute?.port ?? server.withLock { $0?.port } ?? 0
    var members: [JSONValue.Member] = [
      JSONValue.Member("url", .string("ws://127.0.0.1:\(port)/")),
      JSONValue.Member("headers", .array([.string("Authorization: Bearer \(Self.traits.key)")])),
      JSONValue.Member("first", 10), JSONValue.Member("most", 50), JSONValue.Member("proxy", "none"),
    ]
    if script.isSilent { members.append(JSONValue.Member("open", 300)) }
    if script.fault?.kind == .stall {
      members += [JSONValue.Member("ping", 200), JSONValue.Member("pong", 4_000)]
    }
    return members
  }

  public var seen: ServiceReport { report.withLock { $0 } }

  public func forget() { report.withLock { $0.audioBytes = [:] } }

  public func stop() { server.withLock { $0 }?.stop() }

  /// The node's own events report the connection; the rest arrives through it.
  public static func events(in json: JSONValue) throws -> [DialogEvent] {
    switch json["event"]?.string {
    case "connected": return [.connected]
    case "reconnecting": return [.state(.reconnecting)]
    case "disconnected": return []
    case "lost", "badFrame":
      return [.extra(name: json["event"]?.string ?? "", payload: json)]
    default: break
    }
    do { return [try DialogEvent(json: json)] } catch {
      // Messages of the backend are passed on unchanged. The node's own events have a time, and must be known.
      guard json["time"] == nil else { throw error }
      return [.unknown(json)]
    }
  }

  // MARK: For connections

  private func decide(_ client: WebSocketServer.Client) -> WebSocketServer.Decision {
    let connection = change { report in
      report.connections += 1
      return report.connections
    }
    if client["Authorization"] != "Bearer \(Self.traits.key)" {
      change { $0.violations.append("noKey: the header is missing") }
    }
    if progress.withLock({ $0.hasExpired }) { return .refuse(status: 401, "the key has expired") }
    switch script.refusal {
    case .busy(let count)? where connection <= count: return .refuse(status: 503, "busy")
    case .key?: return .refuse(status: 401, "invalid key")
    default: break
    }
    return .accept { [self] socket in
      let connection = BackendConnection(self, socket)
      return { connection.handle($0) }
    }
  }

  @discardableResult
  func change<Answer>(_ body: (inout ServiceReport) -> Answer) -> Answer { report.withLock { body(&$0) } }

  /// The script's fault, the first time its place is reached; a fault within a turn applies to the first turn only.
  func fault(at place: ServiceFault.Place) -> ServiceFault? {
    guard let fault = script.fault, fault.place == place else { return nil }
    return progress.withLock { progress in
      guard progress.replies <= 1 else { return nil }
      defer { progress.hasBroken = true }
      if fault.kind == .expire { progress.hasExpired = true }
      return progress.hasBroken ? nil : fault
    }
  }

  func nextReply() -> Int {
    change { $0.turns += 1 }
    return progress.withLock { progress in
      progress.replies += 1
      return progress.replies
    }
  }
}
