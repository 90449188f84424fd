import Millrace
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@Suite("The graphs with sessions of WebRTC and RTP", .serialized, .timeLimit(.minutes(30)))
struct RTCGraphTests {
  private static let names = ["rtc-echo", "rtc-janus-room", "rtc-whep-play", "rtc-whip-push", "rtp-bridge"]

  private func load(_ name: String, _ values: [String: String]) throws -> GraphPlan {
    try Graph.load(path: Package.graph(name), settings: GraphSettings(set: values), catalogue: .standard)
  }

  @Test("each one loads", arguments: names)
  func loads(name: String) throws {
    let folder = TemporaryFolder()
    var values: [String: String] = [:]
    switch name {
    case "rtc-janus-room": values["output"] = folder.file("out.wav")
    case "rtc-whep-play":
      values = ["output": folder.file("out.wav"), "picture": folder.file("out.jpg")]
    default: break
    }
    #expect(throws: Never.self) { try load(name, values) }
  }

  @Test("a published graph with other codecs is checked before it runs")
  func codecs() {
    #expect(throws: Never.self) { try load("rtc-whip-push", ["codec": "vp8"]) }
    #expect(throws: Problems.self) { try load("rtc-whip-push", ["url": "http://192.0.2.1/live"]) }
    #expect(throws: Problems.self) { try load("rtc-whip-push", ["url": "rtmp://127.0.0.1/live"]) }
    #expect(throws: Problems.self) { try load("rtc-janus-room", ["room": ""]) }
  }

  @Test("a peer with its signalling over a WebSocket, in a cycle, can be drained while nobody is connected")
  func direct() throws {
    let text = """
      { "millrace": 1, "name": "direct", "clock": "realtime", "nodes": {
        "socket": { "type": "net.websocket", "listen": \(Loopback.freePort()) },
        "peer": { "type": "rtc.peer" },
        "loud": { "type": "audio.level", "window": 200 }
      }, "links": [
        "socket.text -> peer.control", "peer.events -> socket.text", "peer.audio -> loud -> peer.audio"
      ] }
      """
    let plan = try Graph.load(text: text, name: "direct", catalogue: .standard)
    let run = try Engine(catalogue: .standard).prepare(plan)
    run.start()
    run.drain()
    let report = try #require(run.waitUntilStopped(timeout: .milliseconds(180_000)))
    #expect(report.failure == nil && report.detachedNodes.isEmpty && report.leakedBlocks == 0, "\(report)")
  }

  @Test("the echo listens until it is stopped, and its log says where")
  func echo() async throws {
    let folder = TemporaryFolder()
    let log = folder.file("log.jsonl")
    let plan = try load("rtc-echo", ["port": "\(Loopback.freePort())", "log": log])
    let run = try Engine(catalogue: .standard).prepare(plan)
    run.start()
    let end = ContinuousClock.now + .seconds(180)
    var text = ""
    while ContinuousClock.now < end, !text.contains("\"listening\"") {
      try await Task.sleep(for: .milliseconds(20))
      text = String(decoding: contents(log), as: UTF8.self)
    }
    #expect(text.contains("\"listening\""), "\(text)")
    run.stop()
    let report = try #require(run.waitUntilStopped(timeout: .milliseconds(60_000)))
    #expect(report.failure == nil && report.detachedNodes.isEmpty && report.leakedBlocks == 0)
  }
}
