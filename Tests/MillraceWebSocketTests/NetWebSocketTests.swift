import MillraceCore
import MillraceNet
import MillraceTesting
import MillraceWebSocket
import Synchronization
import Testing

@Suite("net.websocket", .serialized, .timeLimit(.minutes(30))) struct NetWebSocketTests {
  @Test("audio and texts are sent as frames, in order, with the audio from before the connection first")
  func out() async throws {
    let backend = try await Backend()
    let bench = try bench(backend.port)
    bench.push([Int16](repeating: 257, count: 320), to: "audio")
    bench.push(text: "{\"a\":1}", to: "text")
    #expect(try wait(bench) { backend.received.count == 3 })
    let audio = backend.received.filter { !$0.isText }.map(\.bytes)
    #expect(audio == [.init(repeating: 1, count: 320), .init(repeating: 1, count: 320)])
    #expect(backend.received.filter(\.isText).map(\.bytes) == [Array("{\"a\":1}".utf8)])
    try bench.finish()
    #expect(bench.hasEnded)
    #expect(bench.close() == [])
    backend.stop()
  }

  @Test("frames that split samples become whole samples with positions, and texts arrive unchanged")
  func incoming() async throws {
    let backend = try await Backend()
    let bench = try bench(backend.port)
    #expect(try wait(bench) { backend.socket != nil })
    let samples = (0..<1_000).map { Int16($0) }
    let bytes = samples.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
    for cut in [0..<1, 1..<778, 778..<781, 781..<2_000] {
      _ = backend.socket?.send(Array(bytes[cut]), isText: false)
    }
    _ = backend.socket?.send(text: "grüß dich")
    var packets: [CapturedPacket] = []
    var texts: [String] = []
    #expect(
      try wait(bench) {
        packets += bench.packets("audio")
        texts += bench.texts("text")
        return !texts.isEmpty
      })
    #expect(packets.flatMap(\.int16) == samples && texts == ["grüß dich"])
    var next: Int64 = 0
    for packet in packets {
      #expect(packet.position == next && packet.generation == 0 || packet.generation == bench.generation)
      next += Int64(packet.duration)
    }
    backend.stop()
  }

  @Test(
    "where texts are linked as events, an invalid one is reported with its error position, and without its content"
  )
  func invalidEvents() async throws {
    let secret = "what a user said"
    let backend = try await Backend(
      greeting: [
        #"{"event":"first"}"#, #"{"event":"\#(secret)"#, "[1]", "", #"{"event":"last"}"#,
      ])
    let bench = try NodeBench(
      NetWebSocket.self,
      ["url": .string("ws://127.0.0.1:\(backend.port)/"), "first": 10, "most": 20, "open": 600_000],
      inputs: ["text": lines], wanted: ["text": .kind(.event)], clock: .realtime)
    var texts: [String] = []
    var events: [BenchEvent] = []
    #expect(
      try wait(bench) {
        texts += bench.texts("text")
        events += bench.events()
        return texts.count >= 2
      })
    events += bench.events()
    #expect(texts == [#"{"event":"first"}"#, #"{"event":"last"}"#])
    let errors = events.filter { $0.name == "error" }
    #expect(
      errors.compactMap { $0.string("text") } == [
        "a message of 26 bytes is not an event: invalid JSON at byte 26: unterminated string",
        "a message of 3 bytes is not an event: expected a JSON object",
        "a message of 0 bytes is not an event: invalid JSON at byte 0: unexpected end, expected a value",
      ])
    #expect(errors.allSatisfy { $0.string("reaction") == "continue" && $0.string("vendor") == "websocket" })
    #expect(!events.contains { $0.json.contains(secret) })
    backend.stop()
  }

  @Test("where texts are linked as texts, they need not be JSON")
  func anyText() async throws {
    let backend = try await Backend(greeting: ["{ not JSON"])
    let bench = try bench(backend.port)
    var texts: [String] = []
    #expect(
      try wait(bench) {
        texts += bench.texts("text")
        return !texts.isEmpty
      })
    #expect(texts == ["{ not JSON"] && !bench.events().contains { $0.name == "error" })
    backend.stop()
  }

  @Test("a lost connection is reopened and reported, and works again")
  func reconnects() async throws {
    let backend = try await Backend()
    let bench = try bench(backend.port)
    for connection in 1...3 {
      #expect(try wait(bench) { backend.connections == connection })
      backend.socket?.cancel()
    }
    #expect(try wait(bench) { backend.connections == 4 })
    bench.push(text: "still here", to: "text")
    var names: [String] = []
    #expect(
      try wait(bench) {
        names += bench.events().map(\.name)
        return backend.received.contains { $0.bytes == Array("still here".utf8) }
          && names.count { $0 == "connected" } >= 4
      })
    #expect(names.count { $0 == "connected" } == 4 && names.count { $0 == "reconnecting" } == 3)
    #expect(names.count { $0 == "disconnected" } == 3)
    backend.stop()
  }

  @Test("a refusal that would repeat fails the node with a message; a server's normal close ends it")
  func ends() async throws {
    let refusing = try await Backend(refusing: 401)
    let failing = try bench(refusing.port)
    do {
      _ = try wait(failing) { failing.hasEnded }
      Issue.record("it did not fail")
    } catch {
      #expect(
        "\(error)" == "127.0.0.1:\(refusing.port) refused the WebSocket handshake with status 401")
    }
    refusing.stop()
    let backend = try await Backend()
    let ending = try bench(backend.port)
    #expect(try wait(ending) { backend.socket != nil })
    backend.socket?.close(code: 1000)
    #expect(try wait(ending) { ending.hasEnded })
    backend.stop()
  }

  @Test("without a server for as long as \"giveUp\" the node fails")
  func givesUp() async throws {
    let backend = try await Backend()
    let port = backend.port
    backend.stop()
    let bench = try bench(port, ["giveUp": 100])
    #expect(throws: BenchFault.self) { _ = try wait(bench) { bench.hasEnded } }
    let events = bench.events()
    #expect(events.contains { $0.name == "error" && $0.string("category") == "network" })
    // There was no connection that could be reported as ended.
    #expect(!events.contains { $0.name == "disconnected" })
  }

  @Test(
    "invalid parameters are refused before anything starts",
    arguments: [
      ([:] as [String: ParameterValue], "neither an address nor a port is set"),
      (["url": "ws://a", "listen": 1], "it cannot both connect and listen"),
      (["url": "http://a"], "a WebSocket address must begin with ws: or wss:"),
      (
        ["url": "wss://example.org", "verify": false],
        "verification may be disabled only for this machine"
      ),
      (["url": "ws://u:p@a"], "an address must not contain a user or password; send them in a header"),
      (["url": "ws://a", "headers": .list(["x"])], "a header has no colon"),
      (["url": "ws://a", "proxy": "ftp://x"], "a proxy address begins with http://"),
      (
        ["listen": 1, "certificate": .string("c.pem")],
        "a certificate needs its key, and a key its certificate"
      ),
      (["listen": 1, "key": .string("k.pem")], "a certificate needs its key, and a key its certificate"),
      (["url": "ws://a", "certificate": .string("c"), "key": .string("k")], "only a server has one"),
      (["listen": 1, "headers": .list(["a: b"])], "a server does not send any"),
    ])
  func refusals(parameters: [String: ParameterValue], message: String) throws {
    let resolution = try NodeBench.resolve(NetWebSocket.self, parameters)
    #expect(resolution.problems.map(\.text).contains(message), "\(resolution.problems.map(\.text))")
  }
}
