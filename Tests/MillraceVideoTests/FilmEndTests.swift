import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

/// Which films end early, and which do not.
@Suite("The end of a film")
struct FilmEndTests {
  private let folder = TemporaryFolder()

  /// A kind of file, and what is put into it.
  struct Kind: Sendable, CustomStringConvertible {
    var name: String
    var codec = "libx264"
    var pixel = "yuv420p"
    var sound = false
    var description: String { name + (sound ? " with sound" : "") + ", " + codec }
  }

  private func film(_ kind: Kind, _ change: (inout TestMedia.FilmFile) -> Void = { _ in }) -> String {
    var film = TestMedia.FilmFile()
    (film.codec, film.pixel) = (kind.codec, kind.pixel)
    film.isFullRange = kind.pixel == "yuvj420p"
    film.sound = kind.sound ? [Int16](repeating: 1_000, count: 48_000) : nil
    change(&film)
    let path = folder.file(kind.name)
    film.write(to: path)
    return path
  }

  /// Plays a file's pictures, unpaced; what was told of it, and how many there were.
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
    Kind(name: "film.avi"), Kind(name: "film.avi", codec: "mjpeg", pixel: "yuvj420p"),
    Kind(name: "film.avi", sound: true), Kind(name: "film.mkv"), Kind(name: "film.mkv", sound: true),
    Kind(name: "film.webm", codec: "libvpx"),
  ]

  @Test("a JPEG that is cut off is shown as far as it goes, told, and fails where that is wanted")
  func cutPicture() throws {
    let film = film(Kind(name: "film.avi", codec: "mjpeg", pixel: "yuvj420p")) { $0.pictures = 1 }
    // The film's only packet is a JPEG.
    let bytes = contents(film)
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
        #expect(fault?.text?.contains("is cut off after") == true)
      }
      #expect(bench.packets().count == 1)
    }
  }

  @Test(
    "a whole film of any kind ends without a word",
    arguments: known + [
      Kind(name: "film.gif", codec: "gif", pixel: "rgb8"), Kind(name: "film.ogv", codec: "libtheora"),
      Kind(name: "film.mp4", sound: true), Kind(name: "film.mov", codec: "mjpeg", pixel: "yuvj420p"),
      Kind(name: "film.flv", sound: true), Kind(name: "film.ts", sound: true),
      Kind(name: "film.mpg", codec: "mpeg1video"), Kind(name: "film.wmv", codec: "wmv2"),
      Kind(name: "film.nut", codec: "ffv1"), Kind(name: "film.h264"),
      Kind(name: "film.apng", codec: "apng", pixel: "rgb24"),
    ], [false, true])
  func whole(kind: Kind, listens: Bool) throws {
    try #require(TestMedia.FilmFile.canEncode(kind.codec))
    guard kind.sound || !listens else { return }
    let (events, pictures) = try play(film(kind), sound: listens)
    #expect(events.isEmpty && pictures >= 24, "\(pictures) pictures, \(events)")
  }

  @Test(
    "so does one whose last picture stands for long",
    arguments: [
      Kind(name: "film.mp4", codec: "mjpeg", pixel: "yuvj420p"),
      Kind(name: "film.mkv", codec: "mjpeg", pixel: "yuvj420p"),
      Kind(name: "film.gif", codec: "gif", pixel: "rgb8"),
    ])
  func longPicture(kind: Kind) throws {
    // A second of 25 pictures, then one for twenty.
    let path = film(kind) { $0.time = { ($0, $0 == 24 ? 500 : 1) } }
    let (events, pictures) = try play(path)
    #expect(events.isEmpty && pictures == 25, "\(pictures) pictures, \(events)")
  }

  @Test("and one that begins later than its sound, or whose edit list leaves out its end")
  func edited() throws {
    let late = film(Kind(name: "late.mp4", sound: true)) {
      $0.time = { ($0 + 20, 1) }
      $0.pictures = 10
    }
    #expect(try play(late, sound: true).events.isEmpty)
    #expect(try play(late).events.isEmpty)
    let path = film(Kind(name: "short.mp4"))
    var bytes = contents(path)
    let list = try #require(bytes.firstRange(of: Array("elst".utf8)))
    // Version and flags, one entry: its length in ms; 400 of 1,000.
    #expect(Array(bytes[list.upperBound..<list.upperBound + 12]) == [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 3, 0xE8])
    bytes.replaceSubrange(list.upperBound + 8..<list.upperBound + 12, with: [0, 0, 1, 0x90])
    put(bytes, at: path)
    let (events, pictures) = try play(path)
    #expect(events.isEmpty && pictures == 10, "\(pictures) pictures, \(events)")
  }

  /// What a film of this kind tells that is cut off before a picture.
  private func expectCut(_ path: String, at place: Int, reason: String) throws {
    let cut = folder.file("cut-" + path.split(separator: "/").last!)
    put(contents(path).prefix(place), at: cut)
    let (events, _) = try play(cut)
    let told = events.filter { $0.name == "truncated" }
    #expect(told.count == 1, "at \(place): \(events)")
    #expect(told.first?.json.contains("\"reason\":\"\(reason)\"") == true, "at \(place): \(events)")
    #expect(told.first?.json.contains("\"cure\":\"copy it again") == true, "at \(place): \(events)")
  }

  @Test("a film cut off between two of its pictures tells that it is", arguments: known)
  func between(kind: Kind) throws {
    let path = film(kind)
    let places = try FilmPackets(path).places
    try #require(places.count == 25)
    // From the middle on, and before the last: two periods that would pass for coarse times.
    for place in [places[12], places[20], places[24]] {
      try expectCut(path, at: place, reason: "it is shorter than its header says")
    }
  }

  @Test("told to fail, a film cut off gives what it has, says so, and is a fault; a whole one is none")
  func fails() throws {
    let path = film(Kind(name: "film.mkv"))
    let whole = try NodeBench(
      VideoRead.self, ["path": .string(path), "truncated": "fail"], outputs: ["out", "events"])
    try whole.run()
    #expect(whole.hasEnded && whole.packets().count == 25)
    let cut = folder.file("cut.mkv")
    put(contents(path).prefix(try FilmPackets(path).places[12]), at: cut)
    for loops in [false, true] {
      let bench = try NodeBench(
        VideoRead.self, ["path": .string(cut), "truncated": "fail", "loop": .bool(loops)],
        outputs: ["out", "events"])
      let fault = #expect(throws: BenchFault.self) { try bench.run() }
      #expect(bench.packets().count == 12 && bench.events().map(\.name) == ["truncated"])
      #expect(fault?.text?.hasPrefix("\"\(cut)\" is cut off after 480 ms, and \"truncated\"") == true)
    }
  }

  @Test("so does a GIF without its end, and none with something behind it")
  func gif() throws {
    let path = film(Kind(name: "film.gif", codec: "gif", pixel: "rgb8"))
    let bytes = contents(path)
    // Graphic control extensions stand before the pictures.
    let places = bytes.indices.dropLast(2).filter { Array(bytes[$0...$0 + 2]) == [0x21, 0xF9, 4] }
    try #require(places.count > 20)
    for place in [places[5], places[20], bytes.count - 1] {
      try expectCut(path, at: place, reason: "its end is missing")
    }
    put(bytes + [0, 0, 7], at: path)
    #expect(try play(path).events.isEmpty)
  }

  @Test("an AVI whose writer was killed tells it, one that was written to a pipe does not")
  func unfinished() throws {
    let path = film(Kind(name: "film.avi"))
    let whole = contents(path)
    let movie = try #require(whole.firstRange(of: Array("movi".utf8))).lowerBound
    let index = try #require(whole.firstRange(of: Array("idx1".utf8))).lowerBound
    let open: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF]
    var killed = whole
    killed.replaceSubrange(4..<8, with: open)
    killed.replaceSubrange(movie - 4..<movie, with: open)
    put(killed, at: path)
    #expect(FilmTail(path, container: "avi") == .whole)
    killed.removeSubrange(index...)
    put(killed, at: path)
    #expect(FilmTail(path, container: "avi") == .cut("its index is missing"))
    // The flag AVIF_HASINDEX.
    killed[44] &= ~0x10
    put(killed, at: path)
    #expect(FilmTail(path, container: "avi") == .unknown)
  }

  @Test("a film that was cut off tells it once, however often it is played")
  func loop() throws {
    let path = film(Kind(name: "film.avi"))
    put(contents(path).prefix(try FilmPackets(path).places[12]), at: path)
    let bench = try NodeBench(
      VideoRead.self, ["path": .string(path), "loop": true, "pace": true], outputs: ["out", "events"])
    try bench.advance(to: .milliseconds(3_000))
    #expect(bench.packets().count > 60)
    #expect(bench.events().filter { $0.name == "truncated" }.count == 1)
  }

  @Test(
    "what states no end ends without a word where it is cut between two pictures",
    arguments: [
      Kind(name: "film.ts"), Kind(name: "film.h264"),
    ])
  func unknown(kind: Kind) throws {
    let path = film(kind)
    let places = try FilmPackets(path).places
    put(contents(path).prefix(places[12]), at: path)
    let (events, pictures) = try play(path)
    #expect(events.isEmpty && (10...13).contains(pictures), "\(pictures) pictures, \(events)")
  }
}
