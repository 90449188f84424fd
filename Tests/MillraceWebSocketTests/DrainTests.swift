import MillraceCore
import MillraceNet
import MillraceWebSocket
import TestNet
import Testing

@testable import MillraceTesting

/// What the node does with texts that wait for a connection while a graph drains. Their input does not end: in a cycle it never would.
extension NetWebSocketTests {
  /// As a graph does that drains.
  private func drain(_ bench: NodeBench) { bench.wiring.node.pointee.isDraining = true }

  @Test("a server that drains does not wait with texts for a client that never comes")
  func drainsWithoutClient() throws {
    let bench = try NodeBench(NetWebSocket.self, ["listen": 0], inputs: ["text": lines], clock: .realtime)
    _ = try port(bench)
    bench.push(text: "hello", to: "text")
    try bench.run()
    #expect(!bench.hasEnded, "without draining a client is waited for")
    drain(bench)
    bench.push(text: "and more", to: "text")
    #expect(try wait(bench) { bench.hasEnded })
  }

  @Test("a client that drains does not wait with texts for its next attempt")
  func drainsBetweenAttempts() async throws {
    let backend = try await Backend(refusing: 503)
    let bench = try bench(backend.port, ["first": 600_000, "most": 600_000])
    #expect(try wait(bench) { bench.events().contains { $0.name == "reconnecting" } })
    drain(bench)
    bench.push(text: "hello", to: "text")
    #expect(try wait(bench) { bench.hasEnded })
    backend.stop()
  }

  @Test("texts that wait for a connection that is being opened are still sent")
  func drainsWhileOpening() async throws {
    let backend = try await Backend()
    let bench = try bench(backend.port)
    drain(bench)
    bench.push(text: "hello", to: "text")
    #expect(try wait(bench) { !backend.received.isEmpty })
    #expect(backend.received == [Backend.Message(isText: true, bytes: Array("hello".utf8))])
    #expect(!bench.hasEnded)
    try bench.finish()
    #expect(bench.hasEnded)
    backend.stop()
  }
}
