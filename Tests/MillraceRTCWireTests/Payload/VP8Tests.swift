import Testing

@testable import MillraceRTCWire

/// VP8 descriptors and frame heads (RFC 7741 section 4, RFC 6386 section 9.1).
@Suite("VP8 descriptors")
struct VP8Tests {
  private func written(_ descriptor: VP8Descriptor) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 8)
    var target = buffer.mutableSpan
    let count = try descriptor.write(into: &target)
    return (0..<count).map { target[$0] }
  }

  @Test("the descriptors of the examples of RFC 7741 section 4.6 are read and written")
  func examples() throws {
    // A key frame in one packet, picture ID 17.
    var first = VP8Descriptor(pictureID: 17)
    (first.startsPartition, first.isPictureIDLong) = (true, false)
    // An interframe in one packet, without extension.
    var plain = VP8Descriptor()
    plain.startsPartition = true
    // The second partition in a packet of its own, and a continuation of it.
    var second = first
    second.partition = 1
    var continued = second
    continued.startsPartition = false
    // A picture ID of 15 bits: 4711.
    var long = VP8Descriptor(pictureID: 4_711)
    long.startsPartition = true
    for (bytes, descriptor) in [
      ([0x90, 0x80, 0x11], first), ([0x10], plain), ([0x91, 0x80, 0x11], second),
      ([0x81, 0x80, 0x11], continued), ([0x90, 0x80, 0x92, 0x67], long),
    ] as [([UInt8], VP8Descriptor)] {
      let read = try VP8Descriptor.parse((bytes + [0xAB]).span)
      #expect(read.descriptor == descriptor && read.byteCount == bytes.count)
      #expect(try written(descriptor) == bytes && descriptor.byteCount == bytes.count)
    }
  }

  @Test("all fields together have their places")
  func fields() throws {
    let bytes: [UInt8] = [0xB5, 0xF0, 0xFF, 0xFE, 0x42, 0xB3]
    let (descriptor, count) = try VP8Descriptor.parse(bytes.span)
    #expect(count == 6)
    #expect(descriptor.isNonReference && descriptor.startsPartition && descriptor.partition == 5)
    #expect(descriptor.pictureID == 0x7FFE && descriptor.isPictureIDLong)
    #expect(descriptor.baseLayerIndex == 0x42 && descriptor.temporalLayer == 2 && descriptor.isLayerSync)
    #expect(descriptor.keyIndex == 0x13)
    #expect(try written(descriptor) == bytes)
  }

  @Test("a temporal layer and a key index share a byte, and the one that is absent is not read from it")
  func sharedByte() throws {
    let layer = try VP8Descriptor.parse([0x80, 0x20, 0xFF].span).descriptor
    #expect(layer.temporalLayer == 3 && layer.isLayerSync && layer.keyIndex == nil)
    let key = try VP8Descriptor.parse([0x80, 0x10, 0xFF].span).descriptor
    #expect(key.temporalLayer == nil && !key.isLayerSync && key.keyIndex == 31)
  }

  @Test("every combination of fields is read as it was written, and a cut one is refused")
  func roundTrip() throws {
    for bits in 0..<1_024 {
      func bit(_ index: Int) -> Bool { bits >> index & 1 == 1 }
      var descriptor = VP8Descriptor(pictureID: bit(0) ? (bit(1) ? 0x1234 : 0x34) : nil)
      descriptor.isPictureIDLong = bit(1) || !bit(0)
      descriptor.baseLayerIndex = bit(2) ? 200 : nil
      descriptor.temporalLayer = bit(3) ? 1 : nil
      descriptor.isLayerSync = bit(3) && bit(4)
      descriptor.keyIndex = bit(5) ? 9 : nil
      (descriptor.isNonReference, descriptor.startsPartition) = (bit(6), bit(7))
      descriptor.partition = bit(8) ? (bit(9) ? 7 : 2) : 0
      let bytes = try written(descriptor)
      let read = try VP8Descriptor.parse(bytes.span)
      #expect(
        read.descriptor == descriptor && read.byteCount == bytes.count && bytes.count == descriptor.byteCount)
      for count in bytes.indices {
        let cut = Array(bytes.prefix(count))
        #expect(throws: PayloadProblem.truncated(.vp8, bytes: count, needed: count + 1)) {
          try VP8Descriptor.parse(cut.span)
        }
      }
    }
  }

  @Test("numbers too large for their fields leave the other fields alone")
  func tooLarge() throws {
    var descriptor = VP8Descriptor(pictureID: 0xFFFF)
    descriptor.pictureID = 0xFFFF
    (descriptor.partition, descriptor.temporalLayer, descriptor.keyIndex) = (0xF1, 0xFE, 0xE3)
    let bytes = try written(descriptor)
    #expect(bytes == [0x81, 0xB0, 0xFF, 0xFF, 0x83])
    descriptor.isPictureIDLong = false
    #expect(try written(descriptor) == [0x81, 0xB0, 0x7F, 0x83])
  }

  @Test("picture IDs wrap at 15 bits")
  func wrap() {
    #expect(VP8Descriptor.pictureID(after: 4_711) == 4_712)
    #expect(VP8Descriptor.pictureID(after: 0x7FFF) == 0)
  }

  @Test("the head of a key frame has the size, without the scale")
  func keyFrame() throws {
    // 640 by 480, scales 1 and 2, shown, version 0, first partition of 5,000 bytes.
    let tag = UInt32(5_000 << 5 | 1 << 4)
    let bytes =
      [UInt8(tag & 0xFF), UInt8(tag >> 8 & 0xFF), UInt8(tag >> 16), 0x9D, 0x01, 0x2A, 0x80, 0x42, 0xE0, 0x81]
    let header = try VP8FrameHeader(parsing: bytes.span)
    #expect(header.isKeyFrame && header.isShown && header.version == 0)
    #expect(header.firstPartitionBytes == 5_000)
    #expect(header.size == VP8FrameHeader.Size(width: 640, height: 480))
    for count in 0..<10 {
      #expect(throws: PayloadProblem.self) { try VP8FrameHeader(parsing: Array(bytes.prefix(count)).span) }
    }
  }

  @Test(
    "a key frame without start code or size is refused",
    arguments: [
      [0x10, 0, 0, 0x9D, 0x01, 0x2B, 1, 0, 1, 0], [0x10, 0, 0, 0x9D, 0x01, 0x2A, 0, 0xC0, 1, 0],
      [0x10, 0, 0, 0x9D, 0x01, 0x2A, 1, 0, 0, 0x40],
    ] as [[UInt8]])
  func badKeyFrame(bytes: [UInt8]) {
    #expect(throws: PayloadProblem.self) { try VP8FrameHeader(parsing: bytes.span) }
  }

  @Test("an interframe has neither start code nor size")
  func interframe() throws {
    let header = try VP8FrameHeader(parsing: [0x27, 0, 0].span)
    #expect(!header.isKeyFrame && !header.isShown && header.size == nil)
    #expect(header.version == 3 && header.firstPartitionBytes == 1)
  }
}
