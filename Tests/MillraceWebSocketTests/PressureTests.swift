import MillraceCore
import MillraceDialog
import MillraceNet
import MillraceTesting
import Testing

@testable import MillraceWebSocket

/// What happens when one side takes less than the other gives, and what is left behind.
extension NetWebSocketTests {
  /// Sends until the node's side takes no more. Returns how many messages that were.
  private func flood(_ socket: WebSocket, _ bench: NodeBench, from start: Int, size: Int) throws -> Int {
    var sent = 0
    var isHeldBack = false
    // Refused for good: what waits has not moved while the node was at it.
    while !isHeldBack {
      let message = [UInt8](repeating: UInt8(truncatingIfNeeded: start + sent), count: size)
      if socket.send(message, isText: false) {
        sent += 1
        continue
      }
      let backlog = socket.backlog
      isHeldBack = try !wait(bench, 0.5) { socket.backlog != backlog }
    }
    return sent
  }

  @Test("a graph that does not take what comes holds the other side back, and loses none of it")
  func heldBack() async throws {
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

  /// So many messages of 5 KB that the link is full, and that the queue to the node is full, too.
  @Test(
    "what came before a good-bye and finds no room yet comes out all the same, and the node ends behind it",
    arguments: [80, 190])
  func heldAtTheEnd(count: Int) async throws {
    let backend = try await Backend(patience: 100)
    let bench = try bench(backend.port)
    bench.hold("text")
    #expect(try wait(bench) { backend.socket != nil })
    let socket = try #require(backend.socket)
    let texts = (0..<count).map { "\($0) " + String(repeating: "w", count: 5_000) }
    for text in texts { #expect(socket.send(text: text)) }
    socket.close()
    #expect(try wait(bench) { backend.ends == 1 })
    // However often the node is called now, it is still there.
    #expect(try !wait(bench, 0.5) { bench.hasEnded })
    bench.release("text")
    var came: [String] = []
    #expect(
      try wait(bench) {
        came += bench.texts("text")
        return bench.hasEnded
      })
    came += bench.texts("text")
    #expect(came == texts)
    backend.stop()
  }

  @Test("it is held back over the next connection, too")
  func heldBackAgain() async throws {
    let backend = try await Backend()
    let bench = try bench(backend.port)
    bench.hold("audio")
    for visit in 1...2 {
      #expect(try wait(bench) { backend.visits == visit })
      let socket = try #require(backend.socket)
      // What it has not read makes the system reset the connection, which is seen without reading.
      socket.pause()
      bench.push(text: "unread", to: "text")
      try bench.run()
      #expect(try flood(socket, bench, from: 0, size: 64_000) > 0)
      socket.cancel()
    }
    backend.stop()
  }

  @Test("a picture larger than what may wait to be sent goes out")
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
    "what was said before there was a connection is sent when the input ends first, and then the good-bye")
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

  @Test("sound that nobody took is told of: without room to keep it, and without anybody to send it to")
  func lost() async throws {
    // Busy at first, and the node tries again: there is no connection while the sound goes in.
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

  @Test("half a sample does not go before what comes over another connection")
  func halfSample() async throws {
    let backend = try await Backend()
    let bench = try bench(backend.port)
    #expect(try wait(bench) { backend.visits == 1 })
    let first = try #require(backend.socket)
    #expect(first.send([1, 0, 2], isText: false) && first.send(text: "there"))
    #expect(try wait(bench) { bench.texts("text") == ["there"] })
    first.cancel()
    #expect(try wait(bench) { backend.visits == 2 })
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

  @Test("nothing is left behind a node that is gone: connected, waiting for the next attempt, or listening")
  func gone() async throws {
    let backend = try await Backend()
    let nowhere = try await Backend()
    let free = nowhere.port
    nowhere.stop()
    for parameters: [String: ParameterValue] in [
      ["url": .string("ws://127.0.0.1:\(backend.port)/")], ["url": .string("ws://127.0.0.1:\(free)/")],
      ["listen": 0],
    ] {
      let keeper = try await kept(parameters)
      while keeper.isThere { try await Task.sleep(for: .milliseconds(1)) }
    }
    backend.stop()
  }

  /// Makes an exchange and its keeper as a node does, lets something happen, and stops them.
  private func kept(_ parameters: [String: ParameterValue]) async throws -> WeakExchange {
    let exchange = SocketExchange(largest: 1_000, waker: .none)
    let limits = WebSocketLimits()
    let side: SocketKeeper.Side =
      switch parameters["url"] {
      case .string(let url)?: .client(WebSocketRequest(try WebAddress(url)))
      default:
        .server(.init(host: "127.0.0.1", port: 0, path: "/", protocols: [], identity: nil, limits: limits))
      }
    SocketKeeper(exchange, side, ReconnectPolicy(Backoff(seed: 1)), takesEvents: false).start()
    while exchange.nextNote() == nil { try await Task.sleep(for: .milliseconds(1)) }
    exchange.stop()
    return WeakExchange(exchange)
  }
}

/// An exchange that is not held.
private final class WeakExchange: Sendable {
  private struct Weak { weak var value: SocketExchange? }
  private let exchange: Locked<Weak>
  init(_ exchange: SocketExchange) { self.exchange = Locked(Weak(value: exchange)) }
  var isThere: Bool { exchange.withLock { $0.value != nil } }
}
