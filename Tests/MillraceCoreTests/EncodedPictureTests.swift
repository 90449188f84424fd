import MillraceCore
import Testing

@Suite("key frames in encoded pictures") struct EncodedPictureTests {
  private static let parameters: [UInt8] = [0, 0, 0, 1, 0x67, 1, 0, 0, 0, 1, 0x68, 2]
  private static let vp8: [UInt8] = [0x10, 0, 0, 0x9D, 1, 0x2A, 64, 0, 48, 0]

  @Test(
    "an IDR slice makes an H.264 picture a key frame, whatever is in front of it",
    arguments: [
      (parameters + [0, 0, 1, 0x65, 9], true), ([0, 0, 0, 1, 0x25, 9], true),
      (parameters + [0, 0, 1, 0x41, 9], false), ([0, 0, 1, 0x01, 0, 0, 1, 0x65], false), (parameters, false),
      ([0, 0, 1], false), ([], false), ([0, 0, 0, 0, 0, 0, 1, 0x65], true),
      ([0x65, 0x65, 0x65, 0x65], false),
      ([2, 0, 0, 1, 0x65], true), ([0, 3, 0, 0, 1, 0x65], true),
    ] as [([UInt8], Bool)])
  func h264(bytes: [UInt8], isKey: Bool) {
    #expect(begins(bytes, .h264) == isKey)
    #expect(!begins(bytes, .jpeg))
  }

  @Test("the head of a VP8 frame tells whether it is a key frame")
  func vp8() {
    #expect(begins(Self.vp8, .vp8))
    for (place, byte) in [(0, UInt8(0x11)), (3, 0x9C), (4, 2), (5, 0)] {
      var bytes = Self.vp8
      bytes[place] = byte
      #expect(!begins(bytes, .vp8))
    }
    for count in 0..<10 { #expect(!begins(Array(Self.vp8.prefix(count)), .vp8)) }
  }

  private func begins(_ bytes: [UInt8], _ kind: Format.Kind) -> Bool {
    EncodedPicture.isKey(bytes.span, of: kind)
  }
}
