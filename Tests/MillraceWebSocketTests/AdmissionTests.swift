import Foundation
import MillraceCore
import MillraceNet
import MillraceTesting
import MillraceWebSocket
import TestNet
import Testing

/// Which clients the node accepts as a server.
extension NetWebSocketTests {
  private func ends(_ port: Int, _ change: (inout WebSocketRequest) -> Void = { _ in }) async throws -> Int? {
    var request = WebSocketRequest(try WebAddress("ws://127.0.0.1:\(port)/"))
    request.limits = .patient
    change(&request)
    return await withCheckedContinuation { continuation in
      let socket = Locked<WebSocket?>(nil)
      let opened = WebSocket.open(request) { event in
        switch event {
        case .opened: socket.withLock { $0 }?.close()
        case .closed(let end): continuation.resume(returning: end.problem?.status)
        default: break
        }
      }
      socket.withLock { $0 = opened }
    }
  }

  @Test(
    "foreign origins, unknown host names and clients without the token are refused and reported, several at a time"
  )
  func refusedClients() async throws {
    let bench = try NodeBench(
      NetWebSocket.self, ["listen": 0, "token": "s3cret", "origins": .list(["https://app.example.org"])],
      inputs: ["text": lines], clock: .realtime)
    let port = try port(bench)
    let key = ("Authorization", "Bearer s3cret")
    #expect(try await ends(port) == 401)
    #expect(try await ends(port) { $0.headers = [("Authorization", "Bearer wrong")] } == 401)
    #expect(try await ends(port) { $0.headers = [key, ("Origin", "https://evil.example")] } == 403)
    #expect(try await ends(port) { $0.headers = [key, ("Host", "evil.example")] } == 403)
    var reports: [BenchEvent] = []
    #expect(
      try wait(bench) {
        reports += bench.events().filter { $0.name == "refused" }
        return reports.map { $0.number("count").map { Int($0) } ?? 0 }.reduce(0, +) == 4
      })
    // On a slow machine several are reported together, with the code of the last.
    #expect(reports.count <= 4 && reports.allSatisfy { [401, 403].contains($0.number("code")) })
    #expect(reports.last?.number("code") == 403)
    #expect(reports.last?.string("text")?.hasSuffix("\"hosts\": evil.example") == true)
    #expect(!reports.contains { $0.json.contains("s3cret") })
    let received = Locked<[String]>([])
    var request = WebSocketRequest(try WebAddress("ws://127.0.0.1:\(port)/"))
    request.headers = [key, ("Origin", "https://app.example.org")]
    request.limits = .patient
    let socket = WebSocket.open(request) { event in
      if case .text(let bytes) = event {
        received.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) }
      }
    }
    bench.push(text: "hello", to: "text")
    #expect(try wait(bench) { received.withLock { $0 == ["hello"] } })
    socket.close()
    try bench.finish()
    #expect(bench.close() == [])
  }

  @Test("clients that come and go do not fill a graph that reads nothing")
  func filled() async throws {
    let bench = try NodeBench(
      NetWebSocket.self, ["listen": 0, "largest": 16_384], inputs: ["text": lines], clock: .realtime)
    let port = try port(bench)
    let sent = Locked(0)
    // The node does not run from here on.
    var status: Int?
    for _ in 0..<2_000 where status == nil {
      var request = WebSocketRequest(try WebAddress("ws://127.0.0.1:\(port)/"))
      request.limits = .patient
      // While the node does not read, the close frame is not read either.
      request.limits.close = 50
      status = await withCheckedContinuation { continuation in
        // Sends once both are there: the socket, and the event that it is open.
        let connection = Locked((socket: WebSocket?.none, isOpen: false))
        let send: @Sendable (WebSocket?) -> Void = { socket in
          guard let socket else { return }
          for _ in 0..<4 where socket.send(.init(repeating: 65, count: 16_000), isText: true) {
            sent.withLock { $0 += 1 }
          }
          socket.close()
        }
        let socket = WebSocket.open(request) { event in
          switch event {
          case .opened:
            send(
              connection.withLock {
                $0.isOpen = true
                return $0.socket
              })
          case .closed(let end): continuation.resume(returning: end.problem?.status)
          default: break
          }
        }
        let isOpen = connection.withLock {
          $0.socket = socket
          return $0.isOpen
        }
        if isOpen { send(socket) }
      }
      // The client before may still be connected.
      if status == 503 && sent.withLock({ $0 }) < 16 { status = nil }
    }
    #expect(status == 503)
    // What the queue to the node holds, and the last messages of one client.
    #expect(sent.withLock { $0 } < 100)
    var count = 0
    #expect(
      try wait(bench) {
        count += bench.events().count { $0.name == "disconnected" }
        return count > 0
      })
    bench.push(text: "hello", to: "text")
    try bench.finish()
    #expect(bench.close() == [])
  }

  @Test(
    "parameters that would expose the server or a credential are refused before anything starts",
    arguments: [
      (["listen": 1, "host": "0.0.0.0"], "other machines could reach \"0.0.0.0\" without TLS"),
      (
        ["listen": 1, "host": "bot.example.org"], "other machines could reach \"bot.example.org\" without TLS"
      ),
      (["listen": 1, "token": ""], "an empty token would admit every client"),
      (
        ["listen": 1, "origins": .list(["app.example.org"])],
        "an origin must look like https://app.example.org, or be * for any"
      ),
      (
        ["listen": 1, "hosts": .list(["a:1"])], "a host must be a name without scheme and port, or * for any"
      ),
      (["url": "ws://a", "token": "x"], "only a server requires one"),
      (["url": "ws://a", "origins": .list(["*"])], "it applies only to a server"),
      (
        ["url": "ws://a", "headers": .list(["Authorization: Bearer x"])],
        "the header \"Authorization\" would go over the network in plain text"
      ),
      (["url": "ws://a/?token=x"], "\"token\" of the query would go over the network in plain text"),
    ] as [([String: ParameterValue], String)])
  func exposed(parameters: [String: ParameterValue], message: String) throws {
    let problems = try NodeBench.resolve(NetWebSocket.self, parameters).problems
    #expect(problems.map(\.text) == [message])
  }

  @Test(
    "plain text is accepted where it is allowed or stays on this machine, and TLS everywhere",
    arguments: [
      ["listen": 1, "host": "0.0.0.0", "plain": true], ["listen": 1, "host": "127.0.0.2"],
      ["listen": 1, "host": "0.0.0.0", "certificate": "c", "key": "k", "token": "x"],
      ["url": "ws://a", "headers": .list(["Authorization: Bearer x"]), "plain": true],
      ["url": "wss://a", "headers": .list(["Authorization: Bearer x"])],
      ["url": "ws://localhost", "headers": .list(["Authorization: Bearer x"])],
    ] as [[String: ParameterValue]])
  func protected(parameters: [String: ParameterValue]) throws {
    #expect(try NodeBench.resolve(NetWebSocket.self, parameters).problems.map(\.text) == [])
  }
}
