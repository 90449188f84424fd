public import MillraceConformance
public import MillraceDialog
internal import MillraceDoubles
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
      .fail: turn, .expire: turn.union([.listening]),
    ]
    return traits
  }()

  private let backend: Backend
  private let script: ServiceScript
  private let mute: SilentPort?

  public static func start(_ script: ServiceScript) async throws -> BackendDouble {
    let mute = script.isSilent ? try SilentPort() : nil
    var scenario = Backend.Server.Scenario(script)
    if scenario.keys.isEmpty { scenario.keys = [traits.key] }
    return BackendDouble(try await Backend.listen(scenario), script, mute)
  }

  private init(_ backend: Backend, _ script: ServiceScript, _ mute: SilentPort?) {
    self.backend = backend
    self.script = script
    self.mute = mute
  }

  public var parameters: [JSONValue.Member] {
    let address = Backend.address(mute?.port ?? backend.port)
    var members: [JSONValue.Member] = [
      JSONValue.Member("url", .string(address)),
      JSONValue.Member("headers", .array([.string("Authorization: Bearer \(Self.traits.key)")])),
      JSONValue.Member("first", 10), JSONValue.Member("most", 50), JSONValue.Member("proxy", "none"),
    ]
    if script.isSilent { members.append(JSONValue.Member("open", 300)) }
    if script.fault?.kind == .stall {
      members += [JSONValue.Member("ping", 200), JSONValue.Member("pong", 4_000)]
    }
    return members
  }

  public var seen: ServiceReport { ServiceReport(backend.seen) }

  public func forget() { backend.forget() }

  public func stop() { backend.stop() }

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
}
