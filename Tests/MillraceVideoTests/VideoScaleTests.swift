import MillraceCore
import MillraceTesting
import MillraceVideo
import Testing

@Suite("video.scale")
struct VideoScaleTests {
  private func bench(
    _ parameters: [String: ParameterValue], width: Int = 64, height: Int = 48, pixel: PixelType = .i420,
    rate: FrameRate = FrameRate(25)
  ) throws -> NodeBench {
    try NodeBench(
      VideoScale.self, parameters,
      inputs: ["in": .video(width: width, height: height, pixel: pixel, rate: rate)])
  }

  /// The output format, or the error.
  private func outcome(_ parameters: [String: ParameterValue]) -> String {
    do { return "\(try bench(parameters).shape().format)" } catch { return "\(error)" }
  }

  /// The result for one picture.
  private func run(_ bench: NodeBench, _ bytes: [UInt8]) throws -> [UInt8] {
    bench.push(CapturedPacket(bytes: bytes, timestamp: 40_000_000, position: 7))
    try bench.finish()
    let packet = try #require(bench.packets().first)
    #expect(packet.timestamp == 40_000_000 && packet.position == 0)
    #expect(bench.close() == [])
    return packet.bytes
  }

  /// 4x2 luma that identifies every corner, with flat chroma.
  private static let corners: [UInt8] = [10, 20, 30, 40, 50, 60, 70, 80] + [128, 90] + [128, 200]

  @Test(
    "width and height are those of the output, and one follows from the other",
    arguments: [
      ([:], "i420 64x48 25 fps"), (["width": 32], "i420 32x24 25 fps"),
      (["height": 96], "i420 128x96 25 fps"),
      (["width": 100, "height": 10], "i420 100x10 25 fps"), (["rotate": "90"], "i420 48x64 25 fps"),
      (["rotate": "270", "width": 24], "i420 24x32 25 fps"), (["width": 1], "i420 1x1 25 fps"),
      (["crop": [2, 4, 20, 10]], "i420 20x10 25 fps"),
      (["crop": [2, 4, 20, 10], "width": 40], "i420 40x20 25 fps"),
      (["rate": 5], "i420 64x48 5 fps"), (["rate": 12.5], "i420 64x48 12500/1000 fps"),
      (["rate": 60], "i420 64x48 25 fps"), (["pixel": "bgrx"], "bgrx 64x48 25 fps"),
    ] as [([String: ParameterValue], String)])
  func formats(parameters: [String: ParameterValue], format: String) {
    #expect(outcome(parameters) == format)
  }

  @Test("an invalid region is refused with the reason and the cure")
  func refused() {
    #expect(outcome(["crop": [60, 0, 20, 10]]).contains("a region of 20x10 at (60, 0) is not within 64x48"))
    #expect(outcome(["crop": [0, 0, 0, 10]]).contains("is not within"))
    #expect(
      outcome(["crop": [3, 2, 20, 10]]).contains(
        "i420 pictures can be cropped at even positions only, not at (3, 2); use (2, 2)"))
    #expect(outcome(["width": 16_384, "crop": [0, 0, 2, 48]]).contains("is not a valid picture size"))
  }

  @Test(
    "rotates and mirrors every pixel",
    arguments: [
      ("0", false, [10, 20, 30, 40, 50, 60, 70, 80]), ("90", false, [50, 10, 60, 20, 70, 30, 80, 40]),
      ("180", false, [80, 70, 60, 50, 40, 30, 20, 10]), ("270", false, [40, 80, 30, 70, 20, 60, 10, 50]),
      ("0", true, [40, 30, 20, 10, 80, 70, 60, 50]), ("90", true, [80, 40, 70, 30, 60, 20, 50, 10]),
      ("180", true, [50, 60, 70, 80, 10, 20, 30, 40]), ("270", true, [10, 50, 20, 60, 30, 70, 40, 80]),
    ])
  func turns(rotate: String, mirror: Bool, luma: [UInt8]) throws {
    let bytes = try run(
      bench(["rotate": .string(rotate), "mirror": .bool(mirror)], width: 4, height: 2), Self.corners)
    #expect(Array(bytes[..<8]) == luma)
    let isSwapped = mirror != ["180", "270"].contains(rotate)
    #expect(Array(bytes[8..<10]) == (isSwapped ? [90, 128] : [128, 90]))
  }

  @Test("crops the requested region exactly", arguments: PixelType.allCases)
  func crop(pixel: PixelType) throws {
    // Every byte of 8x6 pixels encodes its position; rows 2 to 4, columns 2 to 5 are wanted.
    func part(_ bytes: [UInt8], _ rowBytes: Int, rows: Range<Int>, _ columns: Range<Int>) -> [UInt8] {
      rows.flatMap { row in columns.map { bytes[row * rowBytes + $0] } }
    }
    let bytes = (0..<pixel.byteCount(width: 8, height: 6)).map { UInt8(truncatingIfNeeded: $0 * 5) }
    let wanted =
      switch pixel {
      case .i420:
        part(bytes, 8, rows: 2..<5, 2..<6) + part(Array(bytes[48...]), 4, rows: 1..<3, 1..<3)
          + part(Array(bytes[60...]), 4, rows: 1..<3, 1..<3)
      case .nv12: part(bytes, 8, rows: 2..<5, 2..<6) + part(Array(bytes[48...]), 8, rows: 1..<3, 2..<6)
      case .rgb24: part(bytes, 24, rows: 2..<5, 6..<18)
      case .bgrx: part(bytes, 32, rows: 2..<5, 8..<24)
      }
    let bench = try bench(["crop": [2, 2, 4, 3]], width: 8, height: 6, pixel: pixel)
    #expect(try run(bench, bytes) == wanted)
  }

  @Test("flat colours are preserved at any size and pixel type", arguments: PixelType.allCases)
  func colours(pixel: PixelType) throws {
    let picture = TestPicture.flat(64, 48, y: 76, u: 85, v: 255)
    let there = try run(bench(["pixel": .string(pixel.rawValue), "width": 100, "height": 30]), picture)
    let back = try run(
      bench(["pixel": "i420", "width": 64, "height": 48], width: 100, height: 30, pixel: pixel), there)
    for (place, wanted) in [(0, 76), (3_000, 76), (3_072 + 300, 85), (3_072 + 768 + 300, 255)] {
      #expect(abs(Int(back[place]) - wanted) <= 3, "\(back[place]) for \(wanted)")
    }
  }

  @Test(
    "a picture of odd width has correct colours up to the last column",
    arguments: [PixelType.rgb24, .bgrx], [[1, 1], [3, 2], [1, 17], [17, 3], [641, 2]])
  func oddWidth(pixel: PixelType, size: [Int]) throws {
    let (width, height) = (size[0], size[1])
    let green: [UInt8] = pixel == .rgb24 ? [40, 200, 60] : [60, 200, 40, 0]
    let picture = (0..<width * height).flatMap { _ in green }
    let bytes = try run(bench(["pixel": "i420"], width: width, height: height, pixel: pixel), picture)
    let (luma, chroma) = (width * height, (width + 1) / 2 * ((height + 1) / 2))
    // BT.601 of full range.
    for (plane, wanted) in [
      (bytes[..<luma], 136), (bytes[luma..<luma + chroma], 85), (bytes[(luma + chroma)...], 59),
    ] {
      #expect(plane.allSatisfy { abs(Int($0) - wanted) <= 2 }, "\(Array(plane)) for \(wanted)")
    }
  }

  @Test(
    "drops pictures beyond the rate, by their timestamps",
    arguments: [(30, 15.0, 2), (30, 10, 3), (25, 12.5, 2), (30, 7.5, 4)])
  func rate(input: Int, rate: Double, every: Int) throws {
    let frameRate = FrameRate(input)
    let bench = try bench(["rate": .number(rate)], rate: frameRate)
    let picture = TestPicture.flat(64, 48, y: 50)
    for number in 0..<60 {
      bench.push(CapturedPacket(bytes: picture, timestamp: frameRate.time(ofPictures: Int64(number))))
    }
    try bench.finish()
    let packets = bench.packets()
    #expect(
      packets.map(\.timestamp)
        == stride(from: 0, to: 60, by: every).map { frameRate.time(ofPictures: Int64($0)) })
    #expect(packets.map(\.position) == (0..<Int64(packets.count)).map { $0 })
  }

  @Test("pictures that need no change are passed on without a copy")
  func identity() throws {
    let picture = TestPicture.i420(64, 48)
    #expect(try run(bench(["width": 64]), picture) == picture)
  }
}
