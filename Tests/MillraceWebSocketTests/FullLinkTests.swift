import MillraceCore
import MillraceEngine
import MillraceGraph
import MillraceNet
import MillraceWebSocket
import Synchronization
import Testing

/// A microphone of silence in packets of 10 ms.
private struct SilentMicrophone: Node {
  static let contract = NodeContract(
    "test.silence", "silence", outputs: [PortContract("out", .kind(.pcm), text: "audio")], drive: .itself
  ) { resolution in
    resolution.outputs["out"] = .pcm(rate: 16_000, channels: 1, sample: .s16, frames: 160)
    resolution.pacing = .live
  }

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    var packet = try ports.makePacket(bytes: 320, of: .none)
    packet.duration = 160
    var samples = packet.mutableSamples(of: UInt8.self)
    for index in samples.indices { samples[index] = 0 }
    ports.emit(packet)
    ports.wake(at: ports.now + 10_000_000)
    return .done
  }
}

/// Reads nothing until it is opened, and then counts.
private struct StalledReader: Node {
  static let contract = NodeContract(
    "test.stalled", "reads nothing", inputs: [PortContract("in", .any, text: "texts", required: true)],
    drive: .itself)
  static let isOpen = Atomic<Bool>(false)
  static let taken = Locked<[String]>([])

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if Self.isOpen.load(ordering: .acquiring), let packet = ports.next(0) {
      let bytes = packet.samples(of: UInt8.self)
      Self.taken.withLock { $0.append(String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self)) }
      return .again
    }
    ports.wake(at: ports.now + 1_000_000)
    return ports.isOver(0) ? .ended : .done
  }
}

@Suite("A full link behind net.websocket", .serialized, .timeLimit(.minutes(30))) struct FullLinkTests {
  @Test("unread texts apply back-pressure to the peer but not to the microphone; none is lost")
  func texts() async throws {
    let backend = try await Backend()
    var catalogue = Catalogue.webSocket
    catalogue.add(SilentMicrophone.self)
    catalogue.add(StalledReader.self)
    let plan = try Graph.load(
      text: """
        { "millrace": 1, "name": "full", "clock": "realtime", "nodes": {
          "mic": { "type": "test.silence" }, "reader": { "type": "test.stalled" },
          "socket": { "type": "net.websocket", "url": "ws://127.0.0.1:\(backend.port)/",
            "reconnect": false, "open": 600000, "ping": 0 } },
          "links": ["mic -> socket.audio", { "from": "socket.text", "to": "reader", "capacity": 4 }] }
        """, name: "full.json", catalogue: catalogue)
    let run = try Engine(catalogue: catalogue, workers: 1).prepare(plan, observesEvents: false)
    run.start()
    try await until { backend.socket != nil }
    let socket = try #require(backend.socket)
    // Until the peer has to wait: every buffer of the system and the node is full.
    let words = String(repeating: "w", count: 60_000)
    var sent = 0
    var stuck = ContinuousClock.now
    while ContinuousClock.now - stuck < .milliseconds(500) {
      if socket.send(text: "\(sent) \(words)") {
        sent += 1
        stuck = ContinuousClock.now
      } else {
        try await Task.sleep(for: .milliseconds(5))
      }
    }
    #expect(sent > 5)
    // The microphone continues.
    let before = backend.received.count
    try await until { backend.received.count >= before + 50 }
    #expect(StalledReader.taken.withLock { $0.isEmpty })
    StalledReader.isOpen.store(true, ordering: .releasing)
    try await until { StalledReader.taken.withLock { $0.count } == sent }
    run.stop()
    let report = await run.wait()
    #expect(report.failure == nil)
    #expect(
      StalledReader.taken.withLock { $0.map { $0.prefix { $0 != " " } } } == (0..<sent).map { "\($0)"[...] })
    backend.stop()
  }

  private func until(_ condition: () -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(240)
    while !condition() {
      try #require(ContinuousClock.now < end, "the condition did not hold within four minutes")
      try await Task.sleep(for: .milliseconds(2))
    }
  }
}
