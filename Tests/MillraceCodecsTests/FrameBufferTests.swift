import MillraceCodecs
import Testing

@Suite("buffer of samples") struct FrameBufferTests {
  @Test("it begins at a cache line, and holds zeros", arguments: [0, 1, 63, 64, 65, 960, 23_040])
  func begin(bytes: Int) {
    let buffer = FrameBuffer(byteCount: bytes)
    var sum = 0
    for index in 0..<bytes { sum += Int(buffer[index]) }
    let (count, address) = (buffer.byteCount, UInt(bitPattern: buffer.start))
    #expect(count == bytes && sum == 0)
    #expect(address % 64 == 0)
  }
}
