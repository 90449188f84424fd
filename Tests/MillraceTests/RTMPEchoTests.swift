import Glibc
import Millrace
import MillraceTesting
import MillraceVideo
import TestMedia
import TestSystem
import Testing

@Suite("The graphs that forward a stream", .serialized)
struct RTMPEchoTests {
  @Test(
    "what is published under one name is played under the other, and no name is in the log",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func echo() throws {
    let folder = TemporaryFolder()
    var video = TestVideo()
    (video.width, video.height, video.pictures) = (160, 120, 50)
    video.colour = { _ in (90, 128, 128) }
    video.sound = [Int16](repeating: 0, count: 96_000)
    video.write(to: folder.file("video.mp4"))
    let server = try #require(StreamServer())
    let stream = LiveStream(video: folder.file("video.mp4"), to: server.url("first-name"))
    defer { stream.stop() }
    try #require(stream.waitForStart(), "\(stream.problem ?? "")")

    let values = [
      "from": server.url("first-name"), "to": server.url("other-name"), "width": "160", "height": "120",
      "rate": "25",
      "log": folder.file("log.jsonl"),
    ]
    let plan = try Graph.load(
      path: Package.graph("rtmp-echo"), settings: GraphSettings(set: values), catalogue: .standard)
    let run = try Engine(catalogue: .standard).prepare(plan)
    run.start()
    let watch = try NodeBench(
      RTMPPull.self,
      [
        "url": .string(server.url("other-name")), "width": 160, "height": 120, "first": 50, "most": 200,
        "timeout": 60_000,
      ], outputs: ["out", "audio", "events"], clock: .realtime)
    var pictures: [CapturedPacket] = []
    var sounds = 0
    let hasCome = try watch.wait(120) {
      pictures += watch.packets()
      sounds += watch.packets("audio").count
      return pictures.count > 20 && sounds > 20
    }
    #expect(hasCome, "\(pictures.count) pictures, \(sounds) sounds: \(watch.events()) \(server.log)")
    // When the sound arrives first, the video begins with black.
    let last = try #require(pictures.last)
    #expect(abs(Int(last.bytes[5_000]) - 90) < 8, "\(pictures.map { $0.bytes[5_000] })")
    #expect(watch.close() == [])
    run.stop()
    let report = try #require(run.waitUntilStopped(timeout: .milliseconds(60_000)))
    #expect(report.failure == nil && report.detachedNodes.isEmpty && report.leakedBlocks == 0)
    let log = String(decoding: contents(folder.file("log.jsonl")), as: UTF8.self)
    #expect(
      log.contains("\"connected\"") && !log.contains("first-name") && !log.contains("other-name"), "\(log)")
  }

  /// A video of one colour.
  private func makeVideo(_ path: String, luma: UInt8) {
    var video = TestVideo()
    (video.width, video.height, video.pictures) = (160, 120, 50)
    video.colour = { _ in (luma, 128, 128) }
    video.sound = [Int16](repeating: 0, count: 96_000)
    video.write(to: path)
  }

  @Test(
    "the stream whose address was added to a file last is played, and no address is in the log",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func follow() throws {
    let folder = TemporaryFolder()
    let server = try #require(StreamServer())
    var streams: [LiveStream] = []
    defer { for stream in streams { stream.stop() } }
    for (name, luma) in [("dark-name", 60), ("bright-name", 200)] as [(String, UInt8)] {
      makeVideo(folder.file("\(name).mp4"), luma: luma)
      let stream = LiveStream(video: folder.file("\(name).mp4"), to: server.url(name))
      streams.append(stream)
      try #require(stream.waitForStart(), "\(stream.problem ?? "")")
    }
    let list = folder.file("addresses.txt")
    func add(_ line: String) {
      let file = fopen(list, "a")!
      fputs(line + "\n", file)
      fclose(file)
    }
    add(server.url("bright-name"))
    add(server.url("dark-name"))
    let values = [
      "addresses": list, "to": server.url("other-name"), "width": "160", "height": "120", "rate": "25",
      "log": folder.file("log.jsonl"),
    ]
    let plan = try Graph.load(
      path: Package.graph("rtmp-follow"), settings: GraphSettings(set: values), catalogue: .standard)
    let run = try Engine(catalogue: .standard).start(plan)
    let watch = try NodeBench(
      RTMPPull.self,
      [
        "url": .string(server.url("other-name")), "width": 160, "height": 120, "first": 50, "most": 200,
        "timeout": 60_000,
      ], outputs: ["out", "events"], clock: .realtime)
    func sees(_ luma: Int) throws -> Bool {
      var last = 0
      return try watch.wait(120) {
        last = watch.packets().last.map { Int($0.bytes[5_000]) } ?? last
        return abs(last - luma) < 8
      }
    }
    let isDark = try sees(60)
    #expect(isDark, "\(watch.events()) \(server.log)")
    add(server.url("bright-name"))
    let isBright = try sees(200)
    #expect(isBright, "\(watch.events())")
    #expect(watch.close() == [])
    run.stop()
    let report = try #require(run.waitUntilStopped(timeout: .milliseconds(60_000)))
    #expect(report.failure == nil && report.detachedNodes.isEmpty && report.leakedBlocks == 0)
    let told = String(decoding: contents(folder.file("log.jsonl")), as: UTF8.self)
    #expect(told.contains(#""why":"replaced""#) && !told.contains("-name"), "\(told)")
  }
}
