import MillraceCore
import MillraceNet
import MillraceTesting
import MillraceWebSocket
import TestNet
import Testing

/// The port a node reports to listen on.
func port(_ bench: NodeBench) throws -> Int {
  var port = 0
  #expect(
    try wait(bench) {
      for event in bench.events() {
        port = event.string("text").flatMap { Int($0.split(separator: " ").last ?? "") } ?? port
      }
      return port > 0
    })
  return port
}

/// A client of a node: what it received, and how its connection ended.
private final class Client: Sendable {
  private let texts = Locked<[String]>([])
  private let ending = Locked<WebSocketEnd?>(nil)
  private let opening = Locked<String??>(nil)
  private let socket = Locked<WebSocket?>(nil)
  var received: [String] { texts.withLock { $0 } }
  var end: WebSocketEnd? { ending.withLock { $0 } }
  /// The subprotocol, once the connection is open.
  var opened: String?? { opening.withLock { $0 } }

  init(_ address: String, _ change: (inout WebSocketRequest) -> Void = { _ in }) throws {
    var request = WebSocketRequest(try WebAddress(address))
    request.limits = .patient
    change(&request)
    let opened = WebSocket.open(request) { [self] event in
      switch event {
      case .opened(let subprotocol): opening.withLock { $0 = .some(subprotocol) }
      case .text(let bytes): texts.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) }
      case .closed(let end): ending.withLock { $0 = end }
      default: break
      }
    }
    socket.withLock { $0 = opened }
  }

  func close() { socket.withLock { $0 }?.close() }
}

/// The node as a server.
extension NetWebSocketTests {
  @Test("as a server it accepts a client, and reports where it listens")
  func server() async throws {
    let bench = try NodeBench(
      NetWebSocket.self, ["listen": 0, "path": "/bot"], inputs: ["text": lines], clock: .realtime)
    let port = try port(bench)
    let received = Locked<[String]>([])
    var request = WebSocketRequest(try WebAddress("ws://127.0.0.1:\(port)/bot?x"))
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

  @Test("with a certificate it uses TLS, and it chooses its preferred subprotocol of those offered")
  func secure() async throws {
    let bench = try NodeBench(
      NetWebSocket.self,
      [
        "listen": 0, "certificate": .string(Certificates.path("localhost.pem")),
        "key": .string(Certificates.path("localhost.key")), "protocols": .list(["two", "one"]),
      ], inputs: ["text": lines], clock: .realtime)
    let port = try port(bench)
    let client = try Client("wss://localhost:\(port)/") {
      $0.trust = .file(Certificates.path("ca.pem"))
      $0.protocols = ["one", "zero", "two"]
    }
    bench.push(text: "hello", to: "text")
    #expect(try wait(bench) { client.received == ["hello"] })
    #expect(client.opened == .some("two"))
    try bench.finish()
    #expect(try wait(bench) { client.end?.code == 1000 })
  }

  @Test("an invalid certificate is refused before the node listens")
  func invalidCertificate() {
    #expect {
      _ = try NodeBench(
        NetWebSocket.self,
        [
          "listen": 0, "certificate": .string("/dev/null"),
          "key": .string(Certificates.path("localhost.key")),
        ],
        inputs: ["text": lines], clock: .realtime)
    } throws: {
      "\($0)".contains("are not a certificate and its key (PEM)")
    }
  }

  @Test("a second client is refused, and the first stays connected; after it the next is accepted")
  func oneAtATime() async throws {
    let bench = try NodeBench(
      NetWebSocket.self, ["listen": 0], inputs: ["text": lines], clock: .realtime)
    let port = try port(bench)
    let first = try Client("ws://127.0.0.1:\(port)/")
    #expect(try wait(bench) { first.opened != nil })
    let second = try Client("ws://127.0.0.1:\(port)/")
    #expect(try wait(bench) { second.end != nil })
    #expect(second.end?.problem?.status == 503)
    bench.push(text: "to you", to: "text")
    #expect(try wait(bench) { first.received == ["to you"] })
    first.close()
    #expect(try wait(bench) { bench.events().contains { $0.name == "disconnected" } })
    let third = try Client("ws://127.0.0.1:\(port)/")
    bench.push(text: "and you", to: "text")
    #expect(try wait(bench) { third.received == ["and you"] })
    try bench.finish()
    #expect(bench.close() == [])
  }

  @Test("of many simultaneous clients one stays connected, and receives what is sent")
  func simultaneousClients() async throws {
    let bench = try NodeBench(
      NetWebSocket.self, ["listen": 0], inputs: ["text": lines], clock: .realtime)
    let port = try port(bench)
    let clients = try (0..<20).map { _ in try Client("ws://127.0.0.1:\(port)/") }
    #expect(try wait(bench) { clients.count { $0.end != nil } == 19 })
    bench.push(text: "you", to: "text")
    #expect(try wait(bench) { clients.contains { $0.received == ["you"] && $0.end == nil } })
    try bench.finish()
    #expect(bench.close() == [])
  }
}
