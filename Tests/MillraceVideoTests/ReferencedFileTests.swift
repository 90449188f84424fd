import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

@Suite("videos that reference other files")
struct ReferencedFileTests {
  private let folder = TemporaryFolder()

  @Test(
    "are refused, and the other files are not read", arguments: ["ffconcat version 1.0\nfile 'other.mp4'\n"])
  func playlist(text: String) {
    TestVideo().write(to: folder.file("other.mp4"))
    let path = folder.file("video.mp4")
    put(Array(text.utf8), at: path)
    let problem = #expect(throws: BenchProblem.self) {
      try NodeBench(VideoRead.self, ["path": .string(path)], outputs: ["out", "events"])
    }
    #expect(
      problem?.description.contains("(FFmpeg: concat), which is not supported") == true,
      "\(String(describing: problem))")
  }

  @Test("vector drawings are refused", arguments: ["a.svg", "a.png"])
  func drawing(name: String) {
    let path = folder.file(name)
    put(
      Array(
        #"<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"><rect width="9" height="9"/></svg>"#
          .utf8), at: path)
    let problem = #expect(throws: BenchProblem.self) {
      try NodeBench(VideoRead.self, ["path": .string(path)], outputs: ["out", "events"])
    }
    if name == "a.svg" {
      #expect(
        problem?.description
          == "\"path\": \"\(path)\" is a vector drawing (SVG), which may take unlimited time to render; "
          + "convert it to a PNG first")
    }
  }

  @Test("a picture whose name looks like a pattern is one picture, not a sequence")
  func pattern() throws {
    var video = TestVideo()
    (video.codec, video.pixel, video.pictures) = ("mjpeg", "yuvj420p", 1)
    for (name, luma) in [("picture%03d.jpg", UInt8(200)), ("picture000.jpg", 30), ("picture001.jpg", 30)] {
      video.colour = { _ in (luma, 128, 128) }
      video.write(to: folder.file("video.avi"))
      // The video's only packet is a JPEG.
      let bytes = contents(folder.file("video.avi"))
      let begin = try #require(bytes.indices.first { bytes[$0...].starts(with: [0xFF, 0xD8, 0xFF]) })
      let end = try #require(bytes.indices.last { bytes[$0...].starts(with: [0xFF, 0xD9]) })
      put(Array(bytes[begin...end + 1]), at: folder.file(name))
    }
    let bench = try NodeBench(
      VideoRead.self, ["path": .string(folder.file("picture%03d.jpg"))], outputs: ["out", "events"])
    try bench.run()
    let packets = bench.packets()
    #expect(packets.count == 1 && abs(Int(packets[0].bytes[0]) - 200) < 30)
  }

  @Test(
    "an implausible frame rate is ignored",
    arguments: [(UInt32(1), UInt32(0x7FFF_FFFF)), (0x7FFF_FFFF, 1)])
  func rate(pictures: UInt32, seconds: UInt32) throws {
    var video = TestVideo()
    (video.codec, video.pictures) = ("mpeg4", 3)
    let path = folder.file("video.avi")
    video.write(to: path)
    var bytes = contents(path)
    let mark = try #require(bytes.indices.first { bytes[$0...].starts(with: "strh".utf8) })
    // AVISTREAMHEADER: dwScale and dwRate are 20 and 24 bytes after the start of the chunk.
    for (offset, value) in [(28, seconds), (32, pictures)] {
      for byte in 0..<4 {
        bytes[mark + offset + byte] = UInt8(truncatingIfNeeded: value >> (8 * UInt32(byte)))
      }
    }
    put(bytes, at: path)
    let bench = try NodeBench(VideoRead.self, ["path": .string(path)], outputs: ["out", "events"])
    #expect(bench.shape().packetDuration == 40_000_000)
    try bench.run()
    #expect(bench.packets().count == 3)
  }
}
