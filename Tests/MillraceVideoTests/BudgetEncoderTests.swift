import MillraceCore
import MillraceVideo
import Testing

@Suite("JPEG under a budget")
struct BudgetEncoderTests {
  private func encode(
    _ encoder: BudgetEncoder, _ picture: [UInt8], _ width: Int, _ height: Int
  ) throws -> (result: BudgetEncoder.Result, bytes: [UInt8]) {
    let result = try encoder.encode(PictureView(picture.span, .i420, width: width, height: height))
    return (result, Array(encoder.bytes[..<result.byteCount]))
  }

  @Test(
    "pictures of any size are encoded completely, within the limit, and unchanged",
    arguments: [
      (1, 1), (2, 2), (17, 3), (3, 17), (15, 16), (16, 16), (33, 31), (640, 480), (1_279, 719), (720, 1_280),
    ])
  func sizes(width: Int, height: Int) throws {
    let picture = TestPicture.i420(width, height)
    let encoder = BudgetEncoder(limit: 59_999, width: width, height: height)
    for _ in 0..<3 {
      let (result, bytes) = try encode(encoder, picture, width, height)
      #expect(bytes.count <= 59_999 && result.width == width && result.height == height)
      let decoded = try #require(DecodedJPEG(bytes))
      #expect(decoded.width == width && decoded.height == height)
      #expect(decoded.lumaPSNR(picture) > 30, "\(decoded.lumaPSNR(picture)) dB")
    }
  }

  @Test("an 8K picture is under the limit and complete")
  func huge() throws {
    let (width, height) = (7_680, 4_320)
    // Detailed rows, each shifted by a pixel from the previous one.
    var state: UInt32 = 9
    let line = (0..<width + 64).map { _ in
      state = state &* 1_664_525 &+ 1_013_904_223
      return UInt8(truncatingIfNeeded: state >> 24)
    }
    var picture: [UInt8] = []
    picture.reserveCapacity(width * height * 3 / 2)
    for row in 0..<height { picture += line[row % 64..<row % 64 + width] }
    picture += [UInt8](repeating: 128, count: width * height / 2)
    let encoder = BudgetEncoder(limit: 134_997, width: width, height: height)
    let (result, bytes) = try encode(encoder, picture, width, height)
    #expect(bytes.count <= 134_997 && result.width * result.height <= 2_560 * 1_440)
    let decoded = try #require(DecodedJPEG(bytes))
    #expect(decoded.width == result.width && decoded.height == result.height)
    #expect(abs(decoded.width * 9 - decoded.height * 16) <= 16)
  }

  @Test(
    "noise is under the limit, and uses it within two encodes", arguments: [40_000, 60_000, 134_997, 179_999])
  func noise(limit: Int) throws {
    let encoder = BudgetEncoder(limit: limit, width: 640, height: 480)
    for seed in 0..<4 {
      let (result, bytes) = try encode(encoder, TestPicture.i420(640, 480, noise: 100, seed: seed), 640, 480)
      #expect(bytes.count <= limit)
      #expect(Double(bytes.count) > 0.85 * Double(limit), "\(bytes.count) of \(limit) at \(result.scale) %")
      #expect(result.encodes <= 2)
      #expect(DecodedJPEG(bytes) != nil)
    }
  }

  @Test("a picture that fits at no quality is scaled down until it fits")
  func shrinks() throws {
    let encoder = BudgetEncoder(limit: 2_000, width: 1_280, height: 720)
    let (result, bytes) = try encode(encoder, TestPicture.i420(1_280, 720, noise: 100), 1_280, 720)
    #expect(bytes.count <= 2_000 && result.width < 640)
    let decoded = try #require(DecodedJPEG(bytes))
    #expect(decoded.width == result.width && decoded.height == result.height)
  }

  @Test("if not even one pixel fits, there is no picture")
  func impossible() {
    let encoder = BudgetEncoder(limit: 100, width: 64, height: 64)
    #expect(throws: BudgetEncoder.Failure.tooLarge) {
      _ = try encode(encoder, TestPicture.i420(64, 64), 64, 64)
    }
  }

  @Test("large detailed pictures are scaled down, plain ones are not")
  func rule() throws {
    let (width, height) = (1_920, 1_080)
    let busy = BudgetEncoder(limit: 134_997, width: width, height: height)
    let detail = try encode(busy, TestPicture.i420(width, height, noise: 40), width, height)
    #expect(detail.result.width < width && detail.bytes.count <= 134_997)
    #expect(DecodedJPEG(detail.bytes)?.width == detail.result.width)
    let calm = BudgetEncoder(limit: 134_997, width: width, height: height)
    #expect(try encode(calm, TestPicture.i420(width, height), width, height).result.width == width)
    let fixed = BudgetEncoder(limit: 134_997, width: width, height: height, scaling: false)
    let whole = try encode(fixed, TestPicture.i420(width, height, noise: 40), width, height)
    #expect(whole.result.width == width && whole.bytes.count <= 134_997)
  }

  @Test("row padding changes neither encodes nor probes")
  func strides() {
    let picture = TestPicture.i420(40, 64)
    let tight = PictureView(picture.span, .i420, width: 40, height: 64)
    let scaler = PictureScaler(to: .i420, width: 40, height: 64)
    let isScaled = scaler.scale(tight)
    #expect(isScaled)
    let encoder = JPEGEncoder()
    var (one, other) = ([UInt8](repeating: 0, count: 20_000), [UInt8](repeating: 0, count: 20_000))
    let first = one.withUnsafeMutableBytes { encoder.encode(tight, scale: 30, into: $0) }
    let second = other.withUnsafeMutableBytes { encoder.encode(scaler.view, scale: 30, into: $0) }
    #expect(first == second && one == other)
    let whole = encoder.probe(tight, scale: 30, first: 0, step: 1)
    let part = encoder.probe(tight, scale: 30, first: 1, step: 2)
    #expect(whole == first)
    #expect(part! < first! && part! > 300)
  }

  @Test("a target that is too small holds the start, and the full size is returned")
  func overflow() {
    let picture = TestPicture.i420(320, 240, noise: 60)
    let view = PictureView(picture.span, .i420, width: 320, height: 240)
    let encoder = JPEGEncoder()
    var room = [UInt8](repeating: 0, count: 200_000)
    let size = room.withUnsafeMutableBytes { encoder.encode(view, scale: 20, into: $0) }!
    for capacity in [1, 100, size - 1, size, size + 1] {
      var small = [UInt8](repeating: 0xAA, count: size + 2)
      let told = small.withUnsafeMutableBytes {
        encoder.encode(view, scale: 20, into: UnsafeMutableRawBufferPointer(rebasing: $0[..<capacity]))
      }
      #expect(told == size)
      #expect(small[..<min(capacity, size)] == room[..<min(capacity, size)])
      #expect(small[min(capacity, size)...].allSatisfy { $0 == 0xAA })
    }
  }

  @Test("a size that JPEG does not support is reported with a message")
  func refused() {
    let picture = [UInt8](repeating: 0, count: PixelType.i420.byteCount(width: 70_000, height: 2))
    let view = PictureView(picture.span, .i420, width: 70_000, height: 2)
    let encoder = JPEGEncoder()
    let answer = encoder.probe(view, scale: 50, first: 0, step: 1)
    #expect(answer == nil)
    #expect(encoder.words.contains("65500"))
    // The next picture is not affected.
    let small = TestPicture.i420(16, 16)
    let next = PictureView(small.span, .i420, width: 16, height: 16)
    let size = encoder.probe(next, scale: 50, first: 0, step: 1)
    #expect(size != nil)
  }
}
