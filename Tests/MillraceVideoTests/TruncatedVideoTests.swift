import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

/// Which videos are truncated, and which are not.
@Suite("truncated videos")
struct TruncatedVideoTests {
  private let folder = TemporaryFolder()

  /// A kind of file and its content.
  struct Kind: Sendable, CustomStringConvertible {
    var name: String
    var codec = "libx264"
    var pixel = "yuv420p"
    var sound = false
    var description: String { name + (sound ? " with sound" : "") + ", " + codec }
  }

  private func makeVideo(_ kind: Kind, _ change: (inout TestVideo) -> Void = { _ in }) -> String {
    var video = TestVideo()
    (video.codec, video.pixel) = (kind.codec, kind.pixel)
    video.isFullRange = kind.pixel == "yuvj420p"
    video.sound = kind.sound ? [Int16](repeating: 1_000, count: 48_000) : nil
    change(&video)
    let path = folder.file(kind.name)
    video.write(to: path)
    return path
  }

  /// Plays a file's pictures without pacing; returns the events and the number of pictures.
  private func play(_ path: String, sound: Bool = false) throws -> (events: [BenchEvent], pictures: Int) {
    let bench = try NodeBench(
      VideoRead.self, ["path": .string(path)],
      outputs: sound ? ["out", "audio", "events"] : ["out", "events"])
    try bench.run()
    #expect(bench.hasEnded)
    let pictures = bench.packets().count
    let events = bench.events()
    #expect(bench.close() == [])
    return (events, pictures)
  }

  private static let known = [
    Kind(name: "video.avi"), Kind(name: "video.avi", codec: "mjpeg", pixel: "yuvj420p"),
    Kind(name: "video.avi", sound: true), Kind(name: "video.mkv"), Kind(name: "video.mkv", sound: true),
    Kind(name: "video.webm", codec: "libvpx"),
  ]

  @Test("a truncated JPEG is shown as far as possible, reported, and fails if required")
  func cutPicture() throws {
    let video = makeVideo(Kind(name: "video.avi", codec: "mjpeg", pixel: "yuvj420p")) { $0.pictures = 1 }
    // The video's only packet is a JPEG.
    let bytes = contents(video)
    let begin = try #require(bytes.indices.first { bytes[$0...].starts(with: [0xFF, 0xD8, 0xFF]) })
    let end = try #require(bytes.indices.last { bytes[$0...].starts(with: [0xFF, 0xD9]) })
    for missing in [0, 2] {
      let path = folder.file("picture.jpg")
      put(Array(bytes[begin...end + 1].dropLast(missing)), at: path)
      #expect(try play(path).events.map(\.name).contains("truncated") == (missing > 0))
      let bench = try NodeBench(
        VideoRead.self, ["path": .string(path), "truncated": "fail"], outputs: ["out", "events"])
      if missing == 0 {
        try bench.run()
      } else {
        let fault = #expect(throws: BenchFault.self) { try bench.run() }
        #expect(fault?.text?.contains("is truncated after") == true)
      }
      #expect(bench.packets().count == 1)
    }
  }

  @Test(
    "a complete video of any kind is not reported",
    arguments: known + [
      Kind(name: "video.gif", codec: "gif", pixel: "rgb8"), Kind(name: "video.ogv", codec: "libtheora"),
      Kind(name: "video.mp4", sound: true), Kind(name: "video.mov", codec: "mjpeg", pixel: "yuvj420p"),
      Kind(name: "video.flv", sound: true), Kind(name: "video.ts", sound: true),
      Kind(name: "video.mpg", codec: "mpeg1video"), Kind(name: "video.wmv", codec: "wmv2"),
      Kind(name: "video.nut", codec: "ffv1"), Kind(name: "video.h264"),
      Kind(name: "video.apng", codec: "apng", pixel: "rgb24"),
    ], [false, true])
  func whole(kind: Kind, listens: Bool) throws {
    try #require(TestVideo.canEncode(kind.codec))
    guard kind.sound || !listens else { return }
    let (events, pictures) = try play(makeVideo(kind), sound: listens)
    #expect(events.isEmpty && pictures >= 24, "\(pictures) pictures, \(events)")
  }

  @Test(
    "a video with a long last picture is not reported",
    arguments: [
      Kind(name: "video.mp4", codec: "mjpeg", pixel: "yuvj420p"),
      Kind(name: "video.mkv", codec: "mjpeg", pixel: "yuvj420p"),
      Kind(name: "video.gif", codec: "gif", pixel: "rgb8"),
    ])
  func longPicture(kind: Kind) throws {
    // A second of 25 pictures, then one for twenty seconds.
    let path = makeVideo(kind) { $0.time = { ($0, $0 == 24 ? 500 : 1) } }
    let (events, pictures) = try play(path)
    #expect(events.isEmpty && pictures == 25, "\(pictures) pictures, \(events)")
  }

  @Test("a video that starts after its audio, or whose edit list omits its end, is not reported")
  func edited() throws {
    let late = makeVideo(Kind(name: "late.mp4", sound: true)) {
      $0.time = { ($0 + 20, 1) }
      $0.pictures = 10
    }
    #expect(try play(late, sound: true).events.isEmpty)
    #expect(try play(late).events.isEmpty)
    let path = makeVideo(Kind(name: "short.mp4"))
    var bytes = contents(path)
    let list = try #require(bytes.firstRange(of: Array("elst".utf8)))
    // Version and flags, one entry: its length in ms; 400 of 1,000.
    #expect(Array(bytes[list.upperBound..<list.upperBound + 12]) == [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 3, 0xE8])
    bytes.replaceSubrange(list.upperBound + 8..<list.upperBound + 12, with: [0, 0, 1, 0x90])
    put(bytes, at: path)
    let (events, pictures) = try play(path)
    #expect(events.isEmpty && pictures == 10, "\(pictures) pictures, \(events)")
  }

  /// The events of such a video, truncated before a picture.
  private func expectCut(_ path: String, at place: Int, reason: String) throws {
    let cut = folder.file("cut-" + path.split(separator: "/").last!)
    put(contents(path).prefix(place), at: cut)
    let (events, _) = try play(cut)
    let told = events.filter { $0.name == "truncated" }
    #expect(told.count == 1, "at \(place): \(events)")
    #expect(told.first?.json.contains("\"reason\":\"\(reason)\"") == true, "at \(place): \(events)")
    #expect(told.first?.json.contains("\"cure\":\"copy it again") == true, "at \(place): \(events)")
  }

  @Test("a video truncated between two pictures is reported", arguments: known)
  func between(kind: Kind) throws {
    let path = makeVideo(kind)
    let places = try VideoPackets(path).places
    try #require(places.count == 25)
    // From the middle on, and before the last: two periods could be timestamp rounding.
    for place in [places[12], places[20], places[24]] {
      try expectCut(path, at: place, reason: "it is shorter than its header says")
    }
  }

  @Test(
    "if required to fail, a truncated video plays what it has, is reported, and fails; a complete one does not"
  )
  func fails() throws {
    let path = makeVideo(Kind(name: "video.mkv"))
    let whole = try NodeBench(
      VideoRead.self, ["path": .string(path), "truncated": "fail"], outputs: ["out", "events"])
    try whole.run()
    #expect(whole.hasEnded && whole.packets().count == 25)
    let cut = folder.file("cut.mkv")
    put(contents(path).prefix(try VideoPackets(path).places[12]), at: cut)
    for loops in [false, true] {
      let bench = try NodeBench(
        VideoRead.self, ["path": .string(cut), "truncated": "fail", "loop": .bool(loops)],
        outputs: ["out", "events"])
      let fault = #expect(throws: BenchFault.self) { try bench.run() }
      #expect(bench.packets().count == 12 && bench.events().map(\.name) == ["truncated"])
      #expect(fault?.text?.hasPrefix("\"\(cut)\" is truncated after 480 ms, and \"truncated\"") == true)
    }
  }

  @Test("a GIF without its trailer is reported, one with trailing data is not")
  func gif() throws {
    let path = makeVideo(Kind(name: "video.gif", codec: "gif", pixel: "rgb8"))
    let bytes = contents(path)
    // Graphic control extensions precede the pictures.
    let places = bytes.indices.dropLast(2).filter { Array(bytes[$0...$0 + 2]) == [0x21, 0xF9, 4] }
    try #require(places.count > 20)
    for place in [places[5], places[20], bytes.count - 1] {
      try expectCut(path, at: place, reason: "its end is missing")
    }
    put(bytes + [0, 0, 7], at: path)
    #expect(try play(path).events.isEmpty)
  }

  @Test("an AVI whose writer was killed is reported, one written to a pipe is not")
  func unfinished() throws {
    let path = makeVideo(Kind(name: "video.avi"))
    let whole = contents(path)
    let movie = try #require(whole.firstRange(of: Array("movi".utf8))).lowerBound
    let index = try #require(whole.firstRange(of: Array("idx1".utf8))).lowerBound
    let open: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF]
    var killed = whole
    killed.replaceSubrange(4..<8, with: open)
    killed.replaceSubrange(movie - 4..<movie, with: open)
    put(killed, at: path)
    #expect(FileCompleteness(path, container: "avi") == .complete)
    killed.removeSubrange(index...)
    put(killed, at: path)
    #expect(FileCompleteness(path, container: "avi") == .truncated("its index is missing"))
    // The flag AVIF_HASINDEX.
    killed[44] &= ~0x10
    put(killed, at: path)
    #expect(FileCompleteness(path, container: "avi") == .unknown)
  }

  @Test("a truncated video is reported once, however often it is played")
  func loop() throws {
    let path = makeVideo(Kind(name: "video.avi"))
    put(contents(path).prefix(try VideoPackets(path).places[12]), at: path)
    let bench = try NodeBench(
      VideoRead.self, ["path": .string(path), "loop": true, "pace": true], outputs: ["out", "events"])
    try bench.advance(to: .milliseconds(3_000))
    #expect(bench.packets().count > 60)
    #expect(bench.events().filter { $0.name == "truncated" }.count == 1)
  }

  @Test(
    "containers without a declared end are not reported when truncated between two pictures",
    arguments: [
      Kind(name: "video.ts"), Kind(name: "video.h264"),
    ])
  func unknown(kind: Kind) throws {
    let path = makeVideo(kind)
    let places = try VideoPackets(path).places
    put(contents(path).prefix(places[12]), at: path)
    let (events, pictures) = try play(path)
    #expect(events.isEmpty && (10...13).contains(pictures), "\(pictures) pictures, \(events)")
  }
}
