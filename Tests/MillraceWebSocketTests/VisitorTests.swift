import Foundation
import MillraceCore
import MillraceNet
import MillraceTesting
import MillraceWebSocket
import Testing

/// Whom the node lets in as a server.
extension NetWebSocketTests {
  private func ends(_ port: Int, _ change: (inout WebSocketRequest) -> Void = { _ in }) async throws -> Int? {
    var request = WebSocketRequest(try WebAddress("ws://127.0.0.1:\(port)/"))
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
    "pages of other sites, strange names and visitors without the token are refused and told, once for many")
  func refusedVisitors() async throws {
    let bench = try NodeBench(
      NetWebSocket.self, ["listen": 0, "token": "s3cret", "origins": .list(["https://app.example.org"])],
      inputs: ["text": lines], clock: .realtime)
    let port = try port(bench)
    let key = ("Authorization", "Bearer s3cret")
    #expect(try await ends(port) == 401)
    #expect(try await ends(port) { $0.headers = [("Authorization", "Bearer wrong")] } == 401)
    #expect(try await ends(port) { $0.headers = [key, ("Origin", "https://evil.example")] } == 403)
    #expect(try await ends(port) { $0.headers = [key, ("Host", "evil.example")] } == 403)
    var told: [BenchEvent] = []
    #expect(
      try wait(bench) {
        told += bench.events().filter { $0.name == "refused" }
        return told.map { $0.number("count").map { Int($0) } ?? 0 }.reduce(0, +) == 4
      })
    // Told together where the machine was slow: with the code of the last.
    #expect(told.count <= 4 && told.allSatisfy { [401, 403].contains($0.number("code")) })
    #expect(told.last?.number("code") == 403)
    #expect(told.last?.string("text")?.hasSuffix("its \"hosts\" may name it: evil.example") == true)
    #expect(!told.contains { $0.json.contains("s3cret") })
    let guest = Locked<[String]>([])
    var request = WebSocketRequest(try WebAddress("ws://127.0.0.1:\(port)/"))
    request.headers = [key, ("Origin", "https://app.example.org")]
    let socket = WebSocket.open(request) { event in
      if case .text(let bytes) = event {
        guest.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) }
      }
    }
    bench.push(text: "hello", to: "text")
    #expect(try wait(bench) { guest.withLock { $0 == ["hello"] } })
    socket.close()
    try bench.finish()
    #expect(bench.close() == [])
  }

  @Test("a graph that takes nothing is not filled by visitors who come and go")
  func filled() async throws {
    let bench = try NodeBench(
      NetWebSocket.self, ["listen": 0, "largest": 16_384], inputs: ["text": lines], clock: .realtime)
    let port = try port(bench)
    let sent = Locked(0)
    // The node does not run from here on.
    var status: Int?
    for _ in 0..<2_000 where status == nil {
      var request = WebSocketRequest(try WebAddress("ws://127.0.0.1:\(port)/"))
      // A node that takes nothing does not read the good-bye either.
      request.limits.close = 50
      status = await withCheckedContinuation { continuation in
        // Whichever comes last, the socket's word that it is open or the socket itself, has it speak.
        let visit = Locked((socket: WebSocket?.none, isOpen: false))
        let speak: @Sendable (WebSocket?) -> Void = { socket in
          guard let socket else { return }
          for _ in 0..<4 where socket.send(.init(repeating: 65, count: 16_000), isText: true) {
            sent.withLock { $0 += 1 }
          }
          socket.close()
        }
        let socket = WebSocket.open(request) { event in
          switch event {
          case .opened:
            speak(
              visit.withLock {
                $0.isOpen = true
                return $0.socket
              })
          case .closed(let end): continuation.resume(returning: end.problem?.status)
          default: break
          }
        }
        let isOpen = visit.withLock {
          $0.socket = socket
          return $0.isOpen
        }
        if isOpen { speak(socket) }
      }
      // The one before may not have gone yet.
      if status == 503 && sent.withLock({ $0 }) < 16 { status = nil }
    }
    #expect(status == 503)
    // What the queue to the node holds, and one visitor's last words.
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
    "what would let anybody in, or be heard by anybody, is refused before anything starts",
    arguments: [
      (["listen": 1, "host": "0.0.0.0"], "other machines could reach \"0.0.0.0\" without TLS"),
      (
        ["listen": 1, "host": "bot.example.org"], "other machines could reach \"bot.example.org\" without TLS"
      ),
      (["listen": 1, "token": ""], "an empty token lets anybody in"),
      (
        ["listen": 1, "origins": .list(["app.example.org"])],
        "an origin is written https://app.example.org, or * for any"
      ),
      (["listen": 1, "hosts": .list(["a:1"])], "a host is a name without scheme and port, or * for any"),
      (["url": "ws://a", "token": "x"], "only a server asks for one"),
      (["url": "ws://a", "origins": .list(["*"])], "only a server has visitors"),
      (
        ["url": "ws://a", "headers": .list(["Authorization: Bearer x"])],
        "the header \"Authorization\" would go over the network in plain text"
      ),
      (["url": "ws://a/?token=x"], "\"token\" of the query would go over the network in plain text"),
    ] as [([String: ParameterValue], String)])
  func openDoors(parameters: [String: ParameterValue], words: String) throws {
    let problems = try NodeBench.resolve(NetWebSocket.self, parameters).problems
    #expect(problems.map(\.text) == [words])
  }

  @Test(
    "plain text is accepted where it is allowed or stays on this machine, and TLS anywhere",
    arguments: [
      ["listen": 1, "host": "0.0.0.0", "plain": true], ["listen": 1, "host": "127.0.0.2"],
      ["listen": 1, "host": "0.0.0.0", "certificate": "c", "key": "k", "token": "x"],
      ["url": "ws://a", "headers": .list(["Authorization: Bearer x"]), "plain": true],
      ["url": "wss://a", "headers": .list(["Authorization: Bearer x"])],
      ["url": "ws://localhost", "headers": .list(["Authorization: Bearer x"])],
    ] as [[String: ParameterValue]])
  func closedDoors(parameters: [String: ParameterValue]) throws {
    #expect(try NodeBench.resolve(NetWebSocket.self, parameters).problems.map(\.text) == [])
  }
}
