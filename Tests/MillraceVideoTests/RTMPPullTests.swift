import MillraceCore
import MillraceTesting
import MillraceVideo
import TestMedia
import TestSystem
import Testing

/// Serialized: each test has a server, a sender and a player on the real-time clock.
@Suite("rtmp.pull", .serialized)
struct RTMPPullTests {
  private let folder = TemporaryFolder()

  /// Two seconds with a flash and a click after one second.
  private func makeVideo(width: Int = 160, height: Int = 120) -> String {
    var video = TestVideo()
    (video.width, video.height, video.pictures) = (width, height, 50)
    video.colour = { number in ((25..<28).contains(number) ? 230 : 60, 128, 128) }
    video.sound = (0..<96_000).map {
      (48_000..<48_480).contains($0) ? ($0 / 12 % 2 == 0 ? 20_000 : -20_000) : 0
    }
    let path = folder.file("video\(width).mp4")
    video.write(to: path)
    return path
  }

  private func bench(
    _ url: String, _ parameters: [String: ParameterValue] = [:],
    outputs: [String] = ["out", "audio", "events"]
  ) throws -> NodeBench {
    var values: [String: ParameterValue] = [
      "url": .string(url), "width": 160, "height": 120, "first": 20, "most": 100, "timeout": 60_000,
    ]
    values.merge(parameters) { _, new in new }
    return try NodeBench(RTMPPull.self, values, outputs: outputs, clock: .realtime)
  }

  /// The message of a run that fails; nil if it does not.
  private func failure(_ url: String, _ parameters: [String: ParameterValue] = [:]) -> String? {
    do {
      let bench = try bench(url, parameters)
      _ = try bench.wait(120) { false }
      return nil
    } catch let fault as BenchFault { return fault.text } catch { return "\(error)" }
  }

  private static func closed() -> String { "rtmp://127.0.0.1:\(Loopback.freePort())/live/hush-key" }

  @Test(
    "pictures and audio of a stream arrive unchanged, on one clock",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func sync() throws {
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(), to: server.url("sync"))
    defer { stream.stop() }
    try #require(stream.waitForStart(), "\(stream.problem ?? "")")
    let bench = try bench(server.url("sync"))
    var pictures: [CapturedPacket] = []
    var sound: [CapturedPacket] = []
    func first(after place: Int) -> Int? {
      pictures.indices.first { $0 > place && pictures[$0].bytes[0] > 150 && pictures[$0 - 1].bytes[0] < 100 }
    }
    let hasAll = try bench.wait(120) {
      pictures += bench.packets()
      sound += bench.packets("audio")
      return pictures.count > 110 && sound.count > 250
    }
    #expect(
      hasAll, "\(pictures.count) pictures, \(sound.count) sounds, \(bench.events()) \(stream.problem ?? "")")
    #expect(pictures.map(\.position) == (0..<Int64(pictures.count)).map { $0 })
    #expect(zip(pictures, pictures.dropFirst()).allSatisfy { $0.timestamp < $1.timestamp })
    #expect(pictures.allSatisfy { abs(Int($0.bytes[0]) - 60) < 6 || abs(Int($0.bytes[0]) - 230) < 6 })
    #expect(sound.dropLast().allSatisfy { $0.duration == 960 && $0.bytes.count == 1_920 })
    #expect(zip(sound, sound.dropFirst()).allSatisfy { $0.position + Int64($0.duration) <= $1.position })
    // A flash and the nearest click.
    let flash = pictures[try #require(first(after: 26))]
    let clicks = sound.compactMap { packet in
      packet.int16.firstIndex { abs(Int($0)) > 8_000 }.map {
        packet.timestamp + .samples(Int64($0), rate: 48_000)
      }
    }
    let distance = try #require(clicks.map { abs($0 - flash.timestamp) }.min())
    #expect(distance < 40_000_000, "\(Double(distance) / 1e6) ms apart")
    let events = bench.events()
    #expect(events.contains { $0.name == "connected" }, "\(events)")
    #expect(events.contains { $0.name == "size" && $0.json.contains("\"width\":160,\"height\":120") })
    #expect(bench.close() == [])
  }

  @Test(
    "a picture with another aspect ratio is letterboxed",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func fitted() throws {
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(width: 96, height: 96), to: server.url("square"))
    defer { stream.stop() }
    let bench = try bench(server.url("square"), ["width": 200, "height": 100], outputs: ["out", "events"])
    var pictures: [CapturedPacket] = []
    let hasCome = try bench.wait(120) {
      pictures += bench.packets()
      return !pictures.isEmpty
    }
    #expect(hasCome)
    let bytes = try #require(pictures.first).bytes
    let row = Array(bytes[50 * 200..<51 * 200])
    #expect(row[..<50].allSatisfy { $0 == 0 } && row[150...].allSatisfy { $0 == 0 }, "\(row)")
    #expect(row[50..<150].allSatisfy { abs(Int($0) - 60) < 6 }, "\(row)")
    #expect(bytes[(200 * 100)...].allSatisfy { abs(Int($0) - 128) < 4 })
    #expect(bench.close() == [])
  }

  @Test(
    "a stream lost with its server or its sender is played again when it returns",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func again() throws {
    let server = try #require(StreamServer())
    let video = makeVideo()
    let first = LiveStream(video: video, to: server.url("twice"))
    let bench = try bench(server.url("twice"))
    var pictures: [CapturedPacket] = []
    var sound: [CapturedPacket] = []
    var events: [String] = []
    func wait(_ condition: () -> Bool) throws -> Bool {
      try bench.wait(120) {
        pictures += bench.packets()
        sound += bench.packets("audio")
        events += bench.events().map(\.name)
        return condition()
      }
    }
    let hasBegun = try wait { !pictures.isEmpty && sound.count > 2 }
    #expect(hasBegun)
    server.stop()
    first.stop()
    let isTold = try wait { events.contains("disconnected") && events.contains("reconnecting") }
    #expect(isTold)
    let before = (pictures.count, sound.count)
    #expect(server.start())
    let second = LiveStream(video: video, to: server.url("twice"))
    let isBack = try wait { pictures.count > before.0 + 5 && sound.count > before.1 + 5 }
    #expect(isBack && events.filter { $0 == "connected" }.count == 2, "\(events)")
    // Positions account for the time in between.
    #expect(zip(sound, sound.dropFirst()).contains { $0.position + Int64($0.duration) < $1.position })
    #expect(pictures.map(\.position) == (0..<Int64(pictures.count)).map { $0 })
    let told = events.count
    second.stop()
    let isToldAgain = try wait { events.dropFirst(told).contains("disconnected") }
    #expect(isToldAgain, "\(events)")
    #expect(bench.close() == [])
  }

  @Test(
    "a stream that changes size is still scaled to fit, and the size is reported",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func resized() throws {
    let server = try #require(StreamServer())
    let first = LiveStream(video: makeVideo(), to: server.url("resized"))
    let bench = try bench(server.url("resized"), outputs: ["out", "events"])
    var sizes: [[Double?]] = []
    var last: CapturedPacket?
    func wait(_ size: [Double?]) throws -> Bool {
      try bench.wait(120) {
        for event in bench.events() where event.name == "size" {
          sizes.append([event.number("width"), event.number("height")])
          last = nil
        }
        last = bench.packets().last ?? last
        return sizes.last == size && last != nil
      }
    }
    let hasBegun = try wait([160, 120])
    #expect(hasBegun, "\(sizes)")
    first.stop()
    let second = LiveStream(video: makeVideo(width: 96, height: 240), to: server.url("resized"))
    defer { second.stop() }
    let isOther = try wait([96, 240])
    #expect(isOther, "\(sizes) \(second.problem ?? "")")
    // 48 pixels of the picture, and black on either side.
    let bytes = try #require(last).bytes
    #expect(bytes.count == 160 * 120 * 3 / 2)
    let row = bytes[60 * 160..<61 * 160].map { $0 > 30 }
    #expect(row == (0..<160).map { (56..<104).contains($0) }, "\(row)")
    #expect(bench.close() == [])
  }

  @Test(
    "continuous damage is reported at once, then once a second, and completely when the stream ends",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func damaged() throws {
    let server = try #require(StreamServer())
    var video = TestVideo()
    (video.width, video.height, video.pictures) = (160, 120, 120)
    let path = folder.file("video.flv")
    video.write(to: path)
    let damaged = DamagedFilm(contents(path))
    try #require(damaged.count == 110)
    put(damaged.bytes, at: path)
    let stream = LiveStream(video: path, to: server.url("damaged"), passes: 1)
    defer { stream.stop() }
    try #require(stream.waitForStart(), "\(stream.problem ?? "")")
    let bench = try bench(server.url("damaged"), outputs: ["out", "events"])
    var pictures = 0
    var events: [BenchEvent] = []
    let isOver = try bench.wait(120) {
      pictures += bench.packets().count
      events += bench.events()
      return pictures > 2 && events.last?.name == "reconnecting" && events.contains { $0.name == "damaged" }
    }
    #expect(isOver, "\(events) \(stream.problem ?? "")")
    let names = events.map(\.name)
    // The first attempts may precede the stream on the server, and later ones may follow its end.
    let begin = try #require(names.firstIndex(of: "connected"))
    let end = try #require(names[begin...].firstIndex(of: "disconnected"))
    #expect(names[end - 1] == "damaged", "\(names)")
    // Eleven after each key frame.
    let told = events.filter { $0.name == "damaged" }
    #expect(told.last?.number("count") == Double(11 * pictures), "\(pictures) pictures, \(told)")
    let times = told.dropLast().map(\.time)
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= 0.999 }, "\(told)")
    #expect(bench.close() == [])
  }

  @Test(
    "a silent server fails with a message, or is a loss if there is another attempt",
    .timeLimit(.minutes(30)))
  func silent() throws {
    let server = SilentServer()
    let url = "rtmp://127.0.0.1:\(server.port)/live/hush-key"
    let words = failure(url, ["timeout": 200, "reconnect": false])
    let name = "\"rtmp://127.0.0.1:\(server.port)/live/•••\""
    #expect(words == "lost the stream \(name): no data from \(name) for 200 ms", "\(words ?? "")")
    #expect(server.waitForClose())
    let bench = try bench(url, ["timeout": 200])
    var events: [BenchEvent] = []
    let isTold = try bench.wait(120) {
      events += bench.events()
      return events.filter { $0.name == "disconnected" }.count == 2
    }
    #expect(isTold && events.prefix(2).map(\.name) == ["disconnected", "reconnecting"], "\(events)")
    #expect(events.allSatisfy { !$0.json.contains("hush") })
  }

  @Test("stopping does not wait for a silent server", .timeLimit(.minutes(30)))
  func stopped() throws {
    let server = SilentServer()
    let bench = try bench("rtmp://127.0.0.1:\(server.port)/live/hush-key", ["timeout": 600_000])
    #expect(server.waitForClient())
    #expect(bench.close() == [])
    let hasLeft = server.waitForClose()
    #expect(hasLeft)
  }

  @Test("without a server, giveUp fails with a message", .timeLimit(.minutes(30)))
  func nobody() {
    let words = failure(Self.closed(), ["giveUp": 150])
    #expect(words?.contains("/live/•••\" cannot be opened: ") == true, "\(words ?? "")")
    #expect(
      words?.contains("Connection refused") == true && words?.contains("hush") == false, "\(words ?? "")")
  }

  @Test("an unknown host is reported as such", .timeLimit(.minutes(30)))
  func nameless() {
    // A label of more than 63 characters is never looked up (RFC 1035, 2.3.4).
    let host = String(repeating: "x", count: 70) + ".invalid"
    let words = failure("rtmp://\(host)/live/hush-key", ["reconnect": false])
    #expect(words?.contains("host not found: \"\(host)\": ") == true, "\(words ?? "")")
  }

  @Test(
    "invalid addresses are refused with the cure",
    arguments: [
      ("http://127.0.0.1/live/hush", "does not start with rtmp: or rtmps:"),
      ("hush", "does not start with rtmp: or rtmps:"),
      ("rtmp:///live/hush", "has no host"), ("rtmp://:1935/live/hush", "has no host"),
      ("rtmp://host", "has no stream name after the application"),
      ("rtmp://host/hush", "has no stream name after the application"),
      ("rtmp://host/live/hu sh", "contains a space or a control character"),
    ])
  func addresses(url: String, text: String) {
    let words = "the address \(text); use an address such as \"rtmp://live.example.org/app/stream\""
    do {
      _ = try bench(url)
      Issue.record("was made")
    } catch { #expect("\(error)".contains(words) && !"\(error)".contains("hush"), "\(error)") }
  }

  @Test("secrets in an address do not appear in its error")
  func secrets() {
    let port = Loopback.freePort()
    let words = failure(
      "rtmp://anna:pass-word@127.0.0.1:\(port)/live/hush-key?token=t0k3n-x", ["reconnect": false])
    #expect(words?.contains("rtmp://127.0.0.1:\(port)/live/•••") == true, "\(words ?? "")")
    for hidden in ["anna", "pass-word", "hush-key", "t0k3n-x"] {
      #expect(words?.contains(hidden) == false, "\(words ?? "")")
    }
  }
}
