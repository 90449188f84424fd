import CFFmpeg
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

@Suite("pictures beyond the size limit")
struct PictureLimitTests {
  private let folder = TemporaryFolder()

  private func read(_ path: String, mostPixels: Int? = nil) throws -> NodeBench {
    var values: [String: ParameterValue] = ["path": .string(path)]
    if let mostPixels { values["maxPixels"] = .integer(mostPixels) }
    return try NodeBench(VideoRead.self, values, outputs: ["out", "events"])
  }

  /// Files of a few bytes that declare 65500x65500: 6 GB of memory.
  private static let bombs: [String: [UInt8]] = [
    "bomb.jpg": [
      0xFF, 0xD8, 0xFF, 0xC0, 0, 17, 8, 0xFF, 0xDC, 0xFF, 0xDC, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1,
    ],
    "bomb.png": [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]
      + [0, 0, 0xFF, 0xDC, 0, 0, 0xFF, 0xDC, 8, 2, 0, 0, 0, 0, 0, 0, 0],
    "bomb.gif": Array("GIF89a".utf8) + [0xDC, 0xFF, 0xDC, 0xFF, 0, 0, 0, 0x3B],
    "bomb.webp": Array("RIFF....WEBPVP8X....".utf8) + [0, 0, 0, 0, 0xDB, 0xFF, 0, 0xDB, 0xFF, 0],
  ]

  @Test("are refused by their header, with their size and the cure", arguments: bombs.keys.sorted())
  func bomb(name: String) throws {
    let path = folder.file(name)
    put(Self.bombs[name]! + [UInt8](repeating: 0, count: 400), at: path)
    let problem = #expect(throws: BenchProblem.self) { try read(path) }
    #expect(
      problem?.description == "\"path\": "
        + "\"\(path)\" has pictures of 65500x65500, more than \"maxPixels\" allows (67108864); "
        + "scale it down first")
  }

  @Test(
    "are refused in videos by the container or the first packet",
    arguments: ["mp4", "mkv", "flv", "avi"])
  func video(container: String) throws {
    var video = TestVideo()
    video.pictures = 3
    if container == "avi" { video.codec = "mpeg4" }
    let path = folder.file("video.\(container)")
    video.write(to: path)
    let problem = #expect(throws: BenchProblem.self) { try read(path, mostPixels: 64 * 48 - 1) }
    #expect(
      problem?.description == "\"path\": "
        + "\"\(path)\" has pictures of 64x48, more than \"maxPixels\" allows (3071); "
        + "scale it down first, or raise \"maxPixels\" to 3072")
    let bench = try read(path, mostPixels: 64 * 48)
    try bench.run()
    #expect(bench.packets().count == 3)
  }

  @Test(
    "are a fault where they begin on the way, after what was before", arguments: ChangingVideo.Kind.allCases)
  func change(kind: ChangingVideo.Kind) throws {
    let parts = [
      ChangingVideo.Part(width: 64, height: 48, luma: 60),
      ChangingVideo.Part(width: 640, height: 480, luma: 120),
    ]
    let path = ChangingVideo(kind: kind, parts: parts).write(in: folder)
    let bench = try read(path, mostPixels: 64 * 48)
    let fault = #expect(throws: BenchFault.self) { try bench.run() }
    #expect(
      fault?.text
        == "\"\(path)\" has pictures of 640x480, more than \"maxPixels\" allows (3072); "
        + "scale it down first, or raise \"maxPixels\" to 307200")
    let packets = bench.packets()
    #expect((1...10).contains(packets.count) && packets.allSatisfy { $0.bytes.count == 64 * 48 * 3 / 2 })
    let whole = try read(path, mostPixels: 640 * 480)
    try whole.run()
    #expect(whole.packets().count == 20)
  }

  @Test("the decoder enforces the limit for formats that declare the size nowhere else")
  func decoder() throws {
    var video = TestVideo()
    video.pictures = 2
    let path = folder.file("video.mp4")
    video.write(to: path)
    let demuxer = try Demuxer(Demuxer.Source(file: path, mostPixels: 5_000))
    let (index, codec) = try #require(try demuxer.best(AVMEDIA_TYPE_VIDEO))
    let decoder = try StreamDecoder(demuxer, index, codec, threads: 1)
    #expect((5_000..<100_000).contains(decoder.mostPixels))
  }
}
