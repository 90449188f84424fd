/// The uncompressed head of a VP8 frame (RFC 6386 section 9.1).
public struct VP8FrameHeader: Sendable, Hashable {
  /// A picture size.
  public struct Size: Sendable, Hashable {
    /// Width in pixels, 1 to 16,383.
    public let width: Int
    /// Height in pixels, 1 to 16,383.
    public let height: Int
  }

  /// The profile, 0 to 3; larger ones are reserved.
  public let version: UInt8
  /// False for a frame that only serves as a reference.
  public let isShown: Bool
  /// Bytes of the first partition.
  public let firstPartitionBytes: Int
  /// The size of the picture in a key frame; nil in every other frame.
  public let size: Size?
  /// True for a frame that a decoder can start with.
  public var isKeyFrame: Bool { size != nil }

  private static let tagBytes = 3
  private static let keyFrameBytes = 10
  private static let sizeMask: UInt16 = 0x3FFF

  /// True when the first byte of a frame says that it is a key frame.
  static func isKeyFrame(_ first: UInt8) -> Bool { first & 1 == 0 }

  /// Reads the head of a frame.
  /// - Throws: when the frame is too short, or a key frame without its start code or without a size.
  public init(parsing frame: Span<UInt8>) throws(PayloadProblem) {
    guard frame.count >= Self.tagBytes else {
      throw .truncated(.vp8, bytes: frame.count, needed: Self.tagBytes)
    }
    let tag = UInt32(frame[0]) | UInt32(frame[1]) << 8 | UInt32(frame[2]) << 16
    version = UInt8(tag >> 1 & 7)
    isShown = tag >> 4 & 1 == 1
    firstPartitionBytes = Int(tag >> 5)
    size = Self.isKeyFrame(frame[0]) ? try Self.size(frame) : nil
  }

  private static func size(_ frame: Span<UInt8>) throws(PayloadProblem) -> Size {
    guard frame.count >= keyFrameBytes else {
      throw .truncated(.vp8, bytes: frame.count, needed: keyFrameBytes)
    }
    guard frame.uint24(at: 3) == 0x9D012A else {
      throw .malformed(.vp8, "a key frame has no start code")
    }
    // The upper two bits say how a player enlarges the picture.
    let width = (UInt16(frame[7]) << 8 | UInt16(frame[6])) & sizeMask
    let height = (UInt16(frame[9]) << 8 | UInt16(frame[8])) & sizeMask
    guard width > 0, height > 0 else { throw .malformed(.vp8, "a key frame has no width or height") }
    return Size(width: Int(width), height: Int(height))
  }
}
