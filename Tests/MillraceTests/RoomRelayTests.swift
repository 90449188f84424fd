import Millrace
import MillraceTesting
import MillraceVideo
import TestMedia
import TestSystem
import Testing

@Suite("The graph that relays a room", .timeLimit(.minutes(30)))
struct RoomRelayTests {
  private func start(_ text: String, _ values: [String: String] = [:]) throws -> GraphRun {
    let plan = try Graph.load(
      text: text, name: "room.json", settings: GraphSettings(set: values), catalogue: .standard)
    return try Engine(catalogue: .standard).start(plan)
  }

  private func stop(_ run: GraphRun) throws {
    run.stop()
    let report = try #require(run.waitUntilStopped(timeout: .milliseconds(60_000)))
    #expect(report.failure == nil && report.detachedNodes.isEmpty && report.leakedBlocks == 0)
  }

  /// The graph, with sessions within this machine: there may be no other network.
  private func relay() throws -> String {
    let text = String(decoding: contents(Package.graph("room-relay")), as: UTF8.self)
    let role = #""role": "viewer","#
    try #require(text.contains(role))
    return text.replacing(role, with: role + #" "interfaces": ["127.0.0.1"],"#)
  }

  @Test(
    "who speaks in the room is heard in the stream, beside pictures, and its name is not in the log",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"))
  func heard() throws {
    let folder = TemporaryFolder()
    let server = try #require(StreamServer())
    let port = Loopback.freePort()
    let hub = try start(
      """
      { "millrace": 1, "name": "hub", "clock": "realtime", "nodes": {
        "tone": { "type": "audio.tone", "frequency": 440 },
        "room": { "type": "rtc.room", "listen": \(port), "page": false, "interfaces": ["127.0.0.1"] }
      }, "links": ["tone -> room.audio"] }
      """)
    let run = try start(
      try relay(),
      [
        "url": "ws://127.0.0.1:\(port)", "to": server.url("secret-name"),
        "card": Package.root + "/graphs/slide.png", "width": "160", "height": "120", "rate": "25",
        "log": folder.file("log.jsonl"),
      ])
    let watch = try NodeBench(
      RTMPPull.self,
      [
        "url": .string(server.url("secret-name")), "width": 160, "height": 120, "first": 50, "most": 200,
        "timeout": 60_000,
      ], outputs: ["out", "audio", "events"], clock: .realtime)
    var pictures = 0
    var loud = 0
    let isHeard = try watch.wait(180) {
      pictures += watch.packets().count
      // A tenth of full scale, but for what the codecs change.
      loud += watch.int16("audio").count { abs(Int($0)) > 2_000 }
      return pictures > 20 && loud > 4_800
    }
    #expect(isHeard, "\(pictures) pictures, \(loud) samples: \(watch.events()) \(server.log)")
    #expect(watch.close() == [])
    try stop(run)
    try stop(hub)
    let log = String(decoding: contents(folder.file("log.jsonl")), as: UTF8.self)
    #expect(log.contains("\"connected\"") && !log.contains("secret-name"), "\(log)")
  }
}
