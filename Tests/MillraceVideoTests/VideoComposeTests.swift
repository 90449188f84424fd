import MillraceCore
import MillraceTesting
import MillraceVideo
import Testing

@Suite("video.compose")
struct VideoComposeTests {
  /// A picture of one colour for an input.
  private struct Flat {
    var width = 32
    var height = 32
    var y: UInt8
    var pixel = PixelType.i420
    var bytes: [UInt8] {
      pixel == .i420
        ? TestPicture.flat(width, height, y: y)
        : [UInt8](repeating: y, count: pixel.byteCount(width: width, height: height))
    }
  }

  private func bench(_ inputs: [Flat], _ parameters: [String: ParameterValue] = [:]) throws -> NodeBench {
    let values: [String: ParameterValue] = ["width": 64, "height": 32, "rate": 10, "margin": 2]
    var formats: [String: OutputShape] = [:]
    for (index, input) in inputs.enumerated() {
      formats["in\(index + 1)"] = .video(
        width: input.width, height: input.height, pixel: input.pixel, rate: FrameRate(10))
    }
    return try NodeBench(VideoCompose.self, values.merging(parameters) { _, new in new }, inputs: formats)
  }

  private func push(_ bytes: [UInt8], to input: String, _ bench: NodeBench) {
    bench.push(CapturedPacket(bytes: bytes, timestamp: bench.now, position: 0), to: input)
  }

  /// The first picture of all inputs, given together.
  private func composed(_ inputs: [Flat], _ parameters: [String: ParameterValue] = [:]) throws -> Shown {
    let bench = try bench(inputs, parameters)
    for (index, input) in inputs.enumerated() { push(input.bytes, to: "in\(index + 1)", bench) }
    try bench.run()
    let packets = bench.packets()
    #expect(packets.count == 1 && packets.first?.timestamp == 0 && packets.first?.position == 0)
    let bytes = try #require(packets.first).bytes
    #expect(bench.close() == [])
    guard case .video(let width, let height, _, _) = bench.shape().format else { fatalError("no picture") }
    return Shown(bytes: bytes, width: width, height: height)
  }

  /// The output, by regions.
  private struct Shown {
    var bytes: [UInt8]
    var width: Int
    var height: Int
    func y(_ x: Int, _ y: Int) -> UInt8 { bytes[y * width + x] }
    /// Left, top, right and bottom edge of the region with a luma; nil if there is none.
    func box(_ luma: UInt8) -> [Int]? {
      let all = (0..<width * height).filter { bytes[$0] == luma }
      guard let first = all.first, let last = all.last else { return nil }
      let columns = all.map { $0 % width }
      return [columns.min() ?? 0, first / width, (columns.max() ?? 0) + 1, last / width + 1]
    }
    /// True if everything in the box has its luma.
    func isFull(_ luma: UInt8) -> Bool {
      guard let box = box(luma) else { return false }
      return bytes[..<(width * height)].count { $0 == luma } == (box[2] - box[0]) * (box[3] - box[1])
    }
  }

  @Test("floatRight shows the first picture full size and the others as insets at the right edge, from below")
  func floatRight() throws {
    let shown = try composed(
      [Flat(width: 64, height: 32, y: 50), Flat(y: 100), Flat(y: 150)], ["layout": "floatRight"])
    #expect(shown.box(50) == [0, 0, 64, 32])
    // A quarter of the size, two pixels from the edges and from each other.
    #expect(shown.box(100) == [46, 22, 62, 30] && shown.isFull(100))
    #expect(shown.box(150) == [46, 12, 62, 20] && shown.isFull(150))
  }

  @Test("floatLeft is its mirror image, with a first picture of another aspect ratio")
  func floatLeft() throws {
    let shown = try composed(
      [Flat(y: 50), Flat(y: 100)], ["layout": "floatLeft", "background": [255, 255, 255]])
    #expect(shown.box(50) == [16, 0, 48, 32])
    #expect(shown.box(100) == [2, 22, 18, 30] && shown.isFull(100))
    #expect(shown.y(0, 0) == 255 && shown.y(63, 31) == 255)
  }

  @Test("a column of many insets is shrunk until all fit")
  func column() throws {
    let shown = try composed((0..<8).map { Flat(y: UInt8(20 + 25 * $0)) }, ["width": 128, "height": 72])
    let boxes = (1..<8).compactMap { shown.box(UInt8(20 + 25 * $0)) }
    #expect(boxes.count == 7 && (1..<8).allSatisfy { shown.isFull(UInt8(20 + 25 * $0)) }, "\(boxes)")
    #expect(zip(boxes, boxes.dropFirst()).allSatisfy { $0[1] >= $1[3] && $0[0] == $1[0] }, "\(boxes)")
  }

  @Test("gridFit shows all pictures whole in equal cells")
  func gridFit() throws {
    let two = try composed([Flat(y: 50), Flat(width: 16, height: 32, y: 100)], ["layout": "gridFit"])
    #expect(two.box(50) == [0, 0, 32, 32] && two.isFull(50))
    #expect(two.box(100) == [40, 0, 56, 32] && two.isFull(100))
    #expect(two.y(36, 16) == 0 && two.y(60, 16) == 0)
    let three = try composed([Flat(y: 50), Flat(y: 100), Flat(y: 150)], ["layout": "gridFit"])
    #expect(three.box(50) == [8, 0, 24, 16] && three.box(100) == [40, 0, 56, 16])
    #expect(three.box(150) == [24, 16, 40, 32], "the last row stands in the middle")
    let tall = try composed(
      [Flat(y: 50), Flat(y: 100)], ["layout": "gridFit", "width": 32, "height": 64])
    #expect(tall.box(50) == [0, 0, 32, 32] && tall.box(100) == [0, 32, 32, 64])
  }

  @Test("gridFill crops every picture to the centre to fill its cell")
  func gridFill() throws {
    let four = try composed(
      (0..<4).map { Flat(y: UInt8(50 + 40 * $0)) }, ["layout": "gridFill"])
    #expect(four.box(50) == [0, 0, 32, 16] && four.box(90) == [32, 0, 64, 16])
    #expect(four.box(130) == [0, 16, 32, 32] && four.box(170) == [32, 16, 64, 32])
    // A picture with bright outer quarters: cropped, they disappear.
    var bytes = TestPicture.flat(64, 32, y: 60)
    for row in 0..<32 {
      for x in Array(0..<8) + Array(56..<64) { bytes[row * 64 + x] = 250 }
    }
    let bench = try bench(
      [Flat(width: 64, height: 32, y: 0)], ["layout": "gridFill", "width": 32, "height": 32])
    push(bytes, to: "in1", bench)
    try bench.run()
    let cut = try #require(bench.packets().first).bytes
    #expect(cut[..<1_024].allSatisfy { $0 == 60 })
  }

  @Test("the background has its colour, and inputs may have any pixel type")
  func colours() throws {
    let shown = try composed(
      [Flat(width: 16, height: 16, y: 200, pixel: .rgb24), Flat(width: 16, height: 16, y: 90, pixel: .nv12)],
      ["layout": "gridFit", "background": [255, 0, 0], "width": 128])
    #expect(shown.y(0, 0) == 76 && shown.bytes[128 * 32] == 85 && shown.bytes[128 * 32 + 64 * 16] == 255)
    #expect(shown.box(200) == [16, 0, 48, 32] && shown.box(90) == [80, 0, 112, 32])
  }

  @Test("a picture is emitted every period, with the newest of every input")
  func grid() throws {
    let bench = try bench([Flat(y: 50), Flat(y: 100)], ["layout": "gridFit"])
    push(Flat(y: 50).bytes, to: "in1", bench)
    try bench.advance(to: .milliseconds(120))
    push(Flat(y: 60).bytes, to: "in1", bench)
    push(Flat(y: 70).bytes, to: "in1", bench)
    push(Flat(y: 100).bytes, to: "in2", bench)
    try bench.advance(to: .milliseconds(350))
    let packets = bench.packets()
    #expect(packets.map(\.timestamp) == [0, 1, 2, 3].map { $0 * 100_000_000 })
    #expect(packets.map(\.position) == [0, 1, 2, 3])
    // Alone it fills the output; with another, half of it.
    #expect(packets[0].bytes[32 * 64 / 2 + 32] == 50 && packets[0].bytes[0] == 0)
    #expect(packets[2].bytes[0] == 70 && packets[2].bytes[63] == 100)
    bench.end("in1")
    bench.end("in2")
    try bench.finish()
    #expect(bench.packets().isEmpty && bench.hasEnded && bench.close() == [])
  }

  @Test("the last picture before the end is shown")
  func last() throws {
    let bench = try bench([Flat(y: 50)])
    push(Flat(y: 50).bytes, to: "in1", bench)
    try bench.run()
    push(Flat(y: 90).bytes, to: "in1", bench)
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.count == 2 && packets.last?.bytes[32] == 90 && packets.last?.timestamp == 100_000_000)
  }

  @Test("a stalled input is reported, keeps its picture, and is reported when it resumes")
  func frozen() throws {
    let bench = try bench([Flat(y: 50), Flat(y: 100)], ["layout": "gridFit", "stall": 250])
    push(Flat(y: 100).bytes, to: "in2", bench)
    for step in 0..<6 {
      push(Flat(y: UInt8(50 + step)).bytes, to: "in1", bench)
      try bench.advance(to: .milliseconds(Int64(step) * 100))
    }
    let packets = bench.packets()
    #expect(packets.last?.bytes[0] == 55 && packets.last?.bytes[63] == 100)
    push(Flat(y: 110).bytes, to: "in2", bench)
    try bench.advance(to: .milliseconds(600))
    #expect(bench.packets().last?.bytes[63] == 110)
    let told = bench.events().map { "\($0.name) \($0.number("input") ?? 0) \($0.number("ms") ?? 0)" }
    #expect(told == ["stalled 2.0 300.0", "resumed 2.0 500.0"], "\(told)")
  }

  @Test("with keep, an input without pictures loses its cell, and gets it back")
  func keep() throws {
    let bench = try bench([Flat(y: 50), Flat(y: 100)], ["layout": "gridFit", "keep": 200])
    push(Flat(y: 100).bytes, to: "in2", bench)
    for step in 0..<4 {
      push(Flat(y: 50).bytes, to: "in1", bench)
      try bench.advance(to: .milliseconds(Int64(step) * 100))
    }
    let packets = bench.packets()
    #expect(packets[1].bytes[63] == 100 && packets[1].bytes[0] == 50)
    #expect(packets[3].bytes[63] == 0 && packets[3].bytes[0] == 0 && packets[3].bytes[32] == 50)
    push(Flat(y: 100).bytes, to: "in2", bench)
    push(Flat(y: 50).bytes, to: "in1", bench)
    try bench.advance(to: .milliseconds(400))
    #expect(bench.packets().last?.bytes[63] == 100)
  }

  @Test("the layout changes while it runs")
  func live() throws {
    let bench = try bench([Flat(y: 50), Flat(y: 100)], ["layout": "gridFill"])
    push(Flat(y: 50).bytes, to: "in1", bench)
    push(Flat(y: 100).bytes, to: "in2", bench)
    try bench.run()
    try bench.set("layout", "floatLeft")
    try bench.advance(to: .milliseconds(100))
    let packets = bench.packets()
    #expect(packets[0].bytes[63] == 100 && packets[0].bytes[0] == 50)
    #expect(packets[1].bytes[63] == 0 && packets[1].bytes[25 * 64 + 6] == 100)
  }

  @Test("a stalled machine skips pictures, and the next ones are on time")
  func late() throws {
    let bench = try bench([Flat(y: 50)])
    push(Flat(y: 50).bytes, to: "in1", bench)
    try bench.run()
    bench.hold()
    try bench.advance(to: .milliseconds(450))
    bench.release()
    try bench.run()
    try bench.advance(to: .milliseconds(600))
    let packets = bench.packets()
    #expect(zip(packets, packets.dropFirst()).allSatisfy { $0.position < $1.position })
    #expect(packets.allSatisfy { $0.timestamp == $0.position * 100_000_000 })
    #expect(packets.last?.timestamp == 600_000_000)
  }

  @Test("no allocation while cells are unchanged")
  func heap() throws {
    let bench = try bench(
      [Flat(width: 320, height: 180, y: 50), Flat(width: 100, height: 80, y: 100)],
      ["width": 320, "height": 180, "layout": "floatRight"])
    func feed(_ step: Int) throws {
      push(Flat(width: 320, height: 180, y: 50).bytes, to: "in1", bench)
      push(Flat(width: 100, height: 80, y: 100).bytes, to: "in2", bench)
      try bench.advance(to: .milliseconds(Int64(step) * 100))
      _ = bench.packets()
    }
    for step in 0..<4 { try feed(step) }
    bench.resetHeapRequests()
    for step in 4..<14 { try feed(step) }
    #expect(bench.heapRequests == 0)
  }

  @Test("odd and tiny sizes work", arguments: [(1, 1), (17, 3), (3, 17), (640, 2)])
  func sizes(width: Int, height: Int) throws {
    for layout in ["floatRight", "floatLeft", "gridFit", "gridFill"] {
      for size in [(16, 16), (17, 33), (64, 31)] {
        let shown = try composed(
          [Flat(width: width, height: height, y: 80), Flat(width: width, height: height, y: 80)],
          ["layout": .string(layout), "width": .integer(size.0), "height": .integer(size.1)])
        #expect(shown.bytes.count == PixelType.i420.byteCount(width: size.0, height: size.1))
        #expect(shown.box(80) != nil, "\(layout) \(size)")
      }
    }
  }
}
