import MillraceCore
import MillraceDialog
import MillraceNet
import MillraceTesting
import Testing

@testable import MillraceWebSocket

/// Back-pressure in both directions, and what remains of a node.
extension NetWebSocketTests {
  /// Sends until the node accepts no more, and returns the number of messages sent.
  private func flood(_ socket: WebSocket, _ bench: NodeBench, from start: Int, size: Int) throws -> Int {
    var sent = 0
    var isBlocked = false
    // Blocked for good: the backlog did not move while the node was running.
    while !isBlocked {
      let message = [UInt8](repeating: UInt8(truncatingIfNeeded: start + sent), count: size)
      if socket.send(message, isText: false) {
        sent += 1
        continue
      }
      let backlog = socket.backlog
      isBlocked = try !wait(bench, 0.5) { socket.backlog != backlog }
    }
    return sent
  }

  @Test("a graph that does not read applies back-pressure to the peer, and loses nothing")
  func backPressure() async throws {
    let backend = try await Backend()
    let bench = try bench(backend.port)
    bench.hold("audio")
    #expect(try wait(bench) { backend.socket != nil })
    let socket = try #require(backend.socket)
    let size = 64_000
    let sent = try flood(socket, bench, from: 0, size: size)
    #expect(bench.linkCounts("audio")?.droppedNewest == 0)
    bench.release("audio")
    var bytes = 0
    var isInOrder = true
    #expect(
      try wait(bench) {
        for packet in bench.packets("audio") {
          for byte in packet.bytes {
            isInOrder = isInOrder && byte == UInt8(truncatingIfNeeded: bytes / size)
            bytes += 1
          }
        }
        return bytes == sent * size
      }, "\(bytes) of \(sent * size)")
    #expect(isInOrder)
    backend.stop()
  }

  /// With enough messages of 5 KB to fill the link, and with enough to fill the queue to the node as well.
  @Test(
    "messages before a close frame that find no room are still delivered, and then the node ends",
    arguments: [80, 190])
  func fullAtTheEnd(count: Int) async throws {
    let backend = try await Backend(closeTimeout: 100)
    let bench = try bench(backend.port)
    bench.hold("text")
    #expect(try wait(bench) { backend.socket != nil })
    let socket = try #require(backend.socket)
    let texts = (0..<count).map { "\($0) " + String(repeating: "w", count: 5_000) }
    for text in texts { #expect(socket.send(text: text)) }
    socket.close()
    #expect(try wait(bench) { backend.ends == 1 })
    // However often the node is called now, it does not end.
    #expect(try !wait(bench, 0.5) { bench.hasEnded })
    bench.release("text")
    var received: [String] = []
    #expect(
      try wait(bench) {
        received += bench.texts("text")
        return bench.hasEnded
      })
    received += bench.texts("text")
    #expect(received == texts)
    backend.stop()
  }

  @Test("back-pressure works on the next connection, too")
  func backPressureAfterReconnect() async throws {
    let backend = try await Backend()
    let bench = try bench(backend.port)
    bench.hold("audio")
    for connection in 1...2 {
      #expect(try wait(bench) { backend.connections == connection })
      let socket = try #require(backend.socket)
      // With unread data the system resets the connection, which the node notices without reading.
      socket.pause()
      bench.push(text: "unread", to: "text")
      try bench.run()
      #expect(try flood(socket, bench, from: 0, size: 64_000) > 0)
      socket.cancel()
    }
    backend.stop()
  }

  @Test("an image larger than the send backlog is sent")
  func largePicture() async throws {
    let backend = try await Backend(large: 4 << 20)
    let pictures = OutputShape(.jpeg, packetDuration: nil, packetBytes: 3 << 20)
    let bench = try bench(backend.port, ["largest": 4_194_304], inputs: ["image": pictures])
    let picture = (0..<2_500_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    for _ in 0..<3 { bench.push(bytes: picture, to: "image") }
    #expect(try wait(bench) { backend.received.count == 3 })
    #expect(backend.received.allSatisfy { $0.bytes == picture })
    try bench.finish()
    backend.stop()
  }

  @Test(
    "audio from before the connection is sent when the input ends first, followed by the close frame")
  func endsFirst() async throws {
    let backend = try await Backend()
    let bench = try bench(backend.port)
    for index in 0..<20 { bench.push([Int16](repeating: Int16(index), count: 160), to: "audio") }
    try bench.finish()
    #expect(bench.hasEnded)
    #expect(backend.received.map { $0.bytes.first ?? 0 } == (0..<20).map { UInt8($0) })
    #expect(!bench.events().contains { $0.name == "lost" })
    backend.stop()
  }

  @Test("discarded audio is reported: without room in the pre-roll, and without a peer")
  func lost() async throws {
    // Busy at first, and the node retries: there is no connection while the audio arrives.
    let backend = try await Backend(refusing: 503)
    let bench = try bench(backend.port, ["preRoll": 0])
    bench.push([Int16](repeating: 1, count: 320), to: "audio")
    try bench.run()
    backend.admit()
    var lost: Double?
    #expect(
      try wait(bench) {
        lost = bench.events().first { $0.name == "lost" }?.number("ms") ?? lost
        return lost != nil
      })
    #expect(lost == 20)
    backend.stop()
    let nobody = try NodeBench(
      NetWebSocket.self, ["listen": 0], inputs: ["audio": sound], clock: .realtime)
    nobody.push([Int16](repeating: 1, count: 1_600), to: "audio")
    try nobody.finish()
    #expect(nobody.events().first { $0.name == "lost" }?.number("ms") == 100)
  }

  @Test("half a sample is not joined with what arrives over another connection")
  func halfSample() async throws {
    let backend = try await Backend()
    let bench = try bench(backend.port)
    #expect(try wait(bench) { backend.connections == 1 })
    let first = try #require(backend.socket)
    #expect(first.send([1, 0, 2], isText: false) && first.send(text: "there"))
    #expect(try wait(bench) { bench.texts("text") == ["there"] })
    first.cancel()
    #expect(try wait(bench) { backend.connections == 2 })
    #expect(backend.socket?.send([3, 0, 4, 0], isText: false) == true)
    var samples: [Int16] = []
    #expect(
      try wait(bench) {
        samples += bench.int16("audio")
        return samples.count >= 3
      })
    #expect(samples == [1, 3, 4])
    backend.stop()
  }

  @Test("nothing remains of a deallocated node: connected, waiting to reconnect, or listening")
  func gone() async throws {
    let backend = try await Backend()
    let nowhere = try await Backend()
    let free = nowhere.port
    nowhere.stop()
    for parameters: [String: ParameterValue] in [
      ["url": .string("ws://127.0.0.1:\(backend.port)/")], ["url": .string("ws://127.0.0.1:\(free)/")],
      ["listen": 0],
    ] {
      let exchange = try await stopped(parameters)
      while exchange.isThere { try await Task.sleep(for: .milliseconds(1)) }
    }
    backend.stop()
  }

  /// Starts a connection as a node does, waits for its first event, and stops it.
  private func stopped(_ parameters: [String: ParameterValue]) async throws -> WeakExchange {
    let exchange = SocketExchange(largest: 1_000, waker: .none)
    let limits = WebSocketLimits()
    let side: SocketConnection.Side =
      switch parameters["url"] {
      case .string(let url)?: .client(WebSocketRequest(try WebAddress(url)), try NetLoop.assign())
      default:
        .server(.init(host: "127.0.0.1", port: 0, path: "/", protocols: [], identity: nil, limits: limits))
      }
    SocketConnection(exchange, side, ReconnectPolicy(Backoff(seed: 1)), takesEvents: false).start()
    while exchange.nextEvent() == nil { try await Task.sleep(for: .milliseconds(1)) }
    exchange.stop()
    return WeakExchange(exchange)
  }
}

/// A weak reference to an exchange.
private final class WeakExchange: Sendable {
  private struct Weak { weak var value: SocketExchange? }
  private let exchange: Locked<Weak>
  init(_ exchange: SocketExchange) { self.exchange = Locked(Weak(value: exchange)) }
  var isThere: Bool { exchange.withLock { $0.value != nil } }
}
