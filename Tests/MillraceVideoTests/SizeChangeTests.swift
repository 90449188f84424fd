import MillraceCore
import MillraceTesting
import MillraceVideo
import TestMedia
import TestSystem
import Testing

/// Pictures whose size changes within a file or a connection.
@Suite("picture size changes", .serialized)
struct SizeChangeTests {
  private let folder = TemporaryFolder()
  private static let parts = [
    ChangingVideo.Part(width: 64, height: 48, luma: 60),
    ChangingVideo.Part(width: 128, height: 96, luma: 120),
    ChangingVideo.Part(width: 48, height: 64, luma: 180),
  ]

  /// Whether pictures have the luma of their part: 10 pictures each.
  private func expectParts(_ lumas: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) {
    let wanted = Self.parts.flatMap { [UInt8](repeating: $0.luma, count: $0.pictures) }
    #expect(lumas.count == wanted.count, "\(lumas)", sourceLocation: sourceLocation)
    #expect(
      zip(lumas, wanted).allSatisfy { abs(Int($0) - Int($1)) <= 6 }, "\(lumas)",
      sourceLocation: sourceLocation)
  }

  private func read(_ kind: ChangingVideo.Kind) throws -> NodeBench {
    let path = ChangingVideo(kind: kind, parts: Self.parts).write(in: folder)
    return try NodeBench(VideoRead.self, ["path": .string(path)], outputs: ["out", "events"])
  }

  @Test(
    "in an H.264 video, pictures keep the first size, and each change is reported",
    arguments: ChangingVideo.Kind.allCases)
  func video(kind: ChangingVideo.Kind) throws {
    let bench = try read(kind)
    try bench.run()
    let packets = bench.packets()
    #expect(packets.allSatisfy { $0.bytes.count == 64 * 48 * 3 / 2 })
    expectParts(packets.map { $0.bytes[24 * 64 + 32] })
    let events = bench.events()
    #expect(events.map(\.name) == ["resized", "resized"], "\(events)")
    #expect(events.map { [$0.number("width"), $0.number("height")] } == [[128, 96], [48, 64]])
    #expect(events.map { ($0.number("at") ?? 0).rounded(.down) } == [0, 0])
    #expect(bench.hasEnded && bench.close() == [])
  }

  @Test("scaling, sampling, composing and recording continue at one size")
  func chain() throws {
    let video = try read(.flv)
    let scale = try NodeBench(VideoScale.self, ["width": 32], inputs: ["in": video.shape()])
    let sample = try NodeBench(VideoSample.self, ["interval": 40], inputs: ["in": video.shape()])
    let compose = try NodeBench(
      VideoCompose.self, ["width": 64, "height": 48, "rate": 25], inputs: ["in1": video.shape()])
    let path = folder.file("video.mp4")
    let record = try NodeBench(VideoRecord.self, ["path": .string(path)], inputs: ["in": video.shape()])
    try video.run()
    for packet in video.packets() {
      try compose.advance(to: packet.timestamp)
      for bench in [scale, sample, record] {
        bench.push(packet, to: "in")
        try bench.run()
      }
      compose.push(packet, to: "in1")
      try compose.run()
    }
    for bench in [scale, sample, compose, record] { try bench.finish() }
    expectParts(scale.packets().map { $0.bytes[12 * 32 + 16] })
    let pictures = sample.packets().map { DecodedJPEG($0.bytes) }
    #expect(pictures.allSatisfy { $0?.width == 64 && $0?.height == 48 })
    expectParts(pictures.compactMap { $0?.planes[24 * 64 + 32] })
    // Timed by the clock: one part after the other, each picture once or twice.
    let shown = compose.packets().compactMap { packet in
      Self.parts.firstIndex { abs(Int($0.luma) - Int(packet.bytes[24 * 64 + 32])) <= 6 }
    }
    #expect(
      shown.count == compose.linkCounts()?.pushed ?? 0 && shown == shown.sorted() && Set(shown).count == 3)
    for bench in [video, scale, sample, compose, record] { #expect(bench.close() == []) }
    let played = try PlayedFilm(path, sound: false)
    #expect(played.width == 64 && played.height == 48 && played.events == [])
    expectParts(played.lumas)
  }

  @Test(
    "within one connection, pictures are scaled to fit, and each change is reported",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func stream() throws {
    let server = try #require(StreamServer())
    let parts = [
      ChangingVideo.Part(width: 160, height: 120, luma: 60, pictures: 25),
      ChangingVideo.Part(width: 96, height: 240, luma: 180, pictures: 25),
    ]
    // Half a minute, of which five seconds are examined. Only once: an FLV player that goes back loses the parts' parameters.
    let video = ChangingVideo(kind: .flv, parts: (0..<30).map { parts[$0 % 2] }).write(in: folder)
    let stream = LiveStream(video: video, to: server.url("changing"), passes: 1)
    defer { stream.stop() }
    try #require(stream.waitForStart(), "\(stream.problem ?? "")")
    let bench = try NodeBench(
      RTMPPull.self,
      [
        "url": .string(server.url("changing")), "width": 160, "height": 120, "first": 20, "most": 100,
        "timeout": 120_000,
      ],
      outputs: ["out", "events"], clock: .realtime)
    var events: [BenchEvent] = []
    /// A middle row of the last picture after each change.
    var rows: [[Bool]] = []
    let hasSeen = try bench.wait(120) {
      for event in bench.events() {
        events.append(event)
        if event.name == "size" { rows.append([]) }
      }
      if let bytes = bench.packets().last?.bytes, !rows.isEmpty {
        rows[rows.count - 1] = bytes[60 * 160..<61 * 160].map { $0 > 30 }
      }
      return rows.count > 4
    }
    #expect(hasSeen, "\(events) \(stream.problem ?? "")")
    // The first attempts may precede the stream on the server.
    // The encoder's own messages and the first picture are reported, too.
    let names = events.map(\.name).drop { $0 != "connected" }.filter { $0 != "sei" && $0 != "firstPicture" }
    #expect(names.first == "connected" && names.dropFirst().allSatisfy { $0 == "size" }, "\(events)")
    let widths = events.compactMap { $0.number("width") }
    #expect(zip(widths, widths.dropFirst()).allSatisfy { $0 != $1 } && Set(widths) == [96, 160], "\(widths)")
    let shown = zip(widths, rows).dropLast().filter { !$1.isEmpty }
    // Parts whose pictures arrived together with the next part's were not examined.
    #expect(Set(shown.map(\.0)) == [96, 160], "\(rows.map(\.count))")
    for (width, row) in shown {
      let wanted = width == 160 ? 0..<160 : 56..<104
      #expect(row == (0..<160).map { wanted.contains($0) }, "\(width): \(row)")
    }
    #expect(bench.close() == [])
  }
}
