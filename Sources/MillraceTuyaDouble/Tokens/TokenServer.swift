internal import MillraceDoubles
internal import MillraceJSON
internal import MillraceNet

/// The token server: `POST /d.json` over HTTP on this machine.
final class TokenServer: Sendable {
  private static let path = "/d.json"

  private let server: HTTPServer

  /// The address for clients on this machine.
  var address: String { "http://127.0.0.1:\(server.port)\(Self.path)" }

  static func listen(_ desk: TokenDesk) async throws(DoubleProblem) -> TokenServer {
    var limits = HTTPServer.Limits()
    // As for the other servers of doubles.
    limits.patience = 60_000
    limits.connections = 4_096
    do throws(NetError) {
      let server = try await HTTPServer.listen(port: 0, on: .shared, limits: limits, admission: .loadTest) {
        decide($0, desk)
      }
      return TokenServer(server)
    } catch { throw .listening(error) }
  }

  private init(_ server: HTTPServer) { self.server = server }

  func stop() { server.stopListening() }

  private static func decide(_ request: HTTPServer.Request, _ desk: TokenDesk) -> HTTPServer.Decision {
    let double = desk.server
    guard request.path == path else {
      double.violate("noEndpoint", "the token server has no \(request.path)")
      return .refuse(status: 404, "not found")
    }
    return .receive { request, reply in
      if request.method != "POST" { double.violate("noPost", "a token was asked for with \(request.method)") }
      double.note("> token")
      reply.send(
        HTTPServer.Response(
          headers: [("Content-Type", "application/json")],
          body: desk.answer(port: double.port, isSecure: double.isSecure).bytes))
    }
  }
}
