public import MillraceConformance
public import MillraceDoubles
internal import MillraceNet

/// A backend of one's own for runners: `millrace double websocket`.
public enum WebSocketProgram: ServiceProgram {
  public static let name = "websocket"
  public static let summary = "a backend that speaks the common vocabulary over a WebSocket"
  public static let nodeTypes = ["net.websocket"]
  public static var conformance: [any ServiceDouble.Type] { [BackendDouble.self] }

  public static func start(_ options: DoubleOptions) async throws(DoubleProblem) -> any RunningDouble {
    try await Backend.listen(try options.load(faults: BackendDouble.traits.faults), options)
  }
}

/// A backend that is listening.
final class Backend: RunningDouble {
  typealias Server = DoubleServer<NoMembers, NoMembers>

  private let server: Server

  private init(_ server: Server) { self.server = server }

  static func listen(
    _ scenario: Server.Scenario, _ options: DoubleOptions = DoubleOptions()
  ) async throws(DoubleProblem) -> Backend {
    let server = Server(scenario, observer: options.observer, watch: options.watch)
    try await server.listen(options) { client, number in
      // A backend of one's own may do without a key.
      let key = client.bearerKey ?? (scenario.keys.isEmpty ? "" : nil)
      if let refusal = server.refusal(of: number, key: key) {
        return .refuse(status: refusal.status, refusal.text)
      }
      return .accept { socket in
        let connection = BackendConnection(server, socket)
        return { connection.handle($0) }
      }
    }
    return Backend(server)
  }

  static func address(_ port: Int, isSecure: Bool = false) -> String {
    "\(isSecure ? "wss" : "ws")://127.0.0.1:\(port)/"
  }

  var port: Int { server.port }
  var address: String { Self.address(port, isSecure: server.isSecure) }
  var settings: [DoubleSetting] {
    [
      DoubleSetting("url", address, requirement: "the address of the double"),
      DoubleSetting("key", "sk-of-the-double"),
    ]
  }
  var seen: DoubleReport { server.report }
  func forget() { server.forget() }
  func stop() { server.stop() }
}
