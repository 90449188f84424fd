import MillraceCore
import MillraceTesting
import MillraceVideo
import TestMedia
import TestSystem
import Testing

/// What becomes of pictures whose size changes inside one file or one connection.
@Suite("A size that changes on the way", .serialized)
struct SizeChangeTests {
  private let folder = TemporaryFolder()
  private static let parts = [
    ChangingFilm.Part(width: 64, height: 48, luma: 60), ChangingFilm.Part(width: 128, height: 96, luma: 120),
    ChangingFilm.Part(width: 48, height: 64, luma: 180),
  ]

  /// Whether pictures have the luma of their part: 10 pictures each.
  private func expectParts(_ lumas: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) {
    let wanted = Self.parts.flatMap { [UInt8](repeating: $0.luma, count: $0.pictures) }
    #expect(lumas.count == wanted.count, "\(lumas)", sourceLocation: sourceLocation)
    #expect(
      zip(lumas, wanted).allSatisfy { abs(Int($0) - Int($1)) <= 6 }, "\(lumas)",
      sourceLocation: sourceLocation)
  }

  private func read(_ kind: ChangingFilm.Kind) throws -> NodeBench {
    let path = ChangingFilm(kind: kind, parts: Self.parts).write(in: folder)
    return try NodeBench(VideoRead.self, ["path": .string(path)], outputs: ["out", "events"])
  }

  @Test(
    "in a film of H.264, pictures have the first's size, and each change is told",
    arguments: ChangingFilm.Kind.allCases)
  func film(kind: ChangingFilm.Kind) throws {
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

  @Test("what scales, samples, composes and records it goes on in one size")
  func chain() throws {
    let film = try read(.flv)
    let scale = try NodeBench(VideoScale.self, ["width": 32], inputs: ["in": film.shape()])
    let sample = try NodeBench(VideoSample.self, ["interval": 40], inputs: ["in": film.shape()])
    let compose = try NodeBench(
      VideoCompose.self, ["width": 64, "height": 48, "rate": 25], inputs: ["in1": film.shape()])
    let path = folder.file("film.mp4")
    let record = try NodeBench(VideoRecord.self, ["path": .string(path)], inputs: ["in": film.shape()])
    try film.run()
    for packet in film.packets() {
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
    // It goes by the clock: one part after the other, each of its pictures once or twice.
    let shown = compose.packets().compactMap { packet in
      Self.parts.firstIndex { abs(Int($0.luma) - Int(packet.bytes[24 * 64 + 32])) <= 6 }
    }
    #expect(
      shown.count == compose.linkCounts()?.pushed ?? 0 && shown == shown.sorted() && Set(shown).count == 3)
    for bench in [film, scale, sample, compose, record] { #expect(bench.close() == []) }
    let played = try PlayedFilm(path, sound: false)
    #expect(played.width == 64 && played.height == 48 && played.events == [])
    expectParts(played.lumas)
  }

  @Test(
    "in one connection to a server, pictures fit as before, and each change is told",
    .enabled(if: StreamServer.isInstalled, "needs nginx-rtmp"), .timeLimit(.minutes(30)))
  func stream() throws {
    let server = try #require(StreamServer())
    let parts = [
      ChangingFilm.Part(width: 160, height: 120, luma: 60, pictures: 25),
      ChangingFilm.Part(width: 96, height: 240, luma: 180, pictures: 25),
    ]
    // Half a minute, of which five seconds are looked at. Once only: a player of FLV that goes back leaves out what the parts are like.
    let film = ChangingFilm(kind: .flv, parts: (0..<30).map { parts[$0 % 2] }).write(in: folder)
    let stream = LiveStream(film: film, to: server.url("changing"), passes: 1)
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
    // The first attempts may come before the server has the stream.
    let names = events.map(\.name).drop { $0 != "connected" }
    #expect(names.first == "connected" && names.dropFirst().allSatisfy { $0 == "size" }, "\(events)")
    let widths = events.compactMap { $0.number("width") }
    #expect(zip(widths, widths.dropFirst()).allSatisfy { $0 != $1 } && Set(widths) == [96, 160], "\(widths)")
    let shown = zip(widths, rows).dropLast().filter { !$1.isEmpty }
    // Of a part whose pictures came together with those of the next, none was looked at.
    #expect(Set(shown.map(\.0)) == [96, 160], "\(rows.map(\.count))")
    for (width, row) in shown {
      let wanted = width == 160 ? 0..<160 : 56..<104
      #expect(row == (0..<160).map { wanted.contains($0) }, "\(width): \(row)")
    }
    #expect(bench.close() == [])
  }
}
