/// The payload descriptor in front of the VP8 data of each RTP packet (RFC 7741 section 4.2).
public struct VP8Descriptor: Sendable, Hashable {
  /// The largest picture ID of 15 bits; 0 follows it.
  public static let maximumPictureID: UInt16 = 0x7FFF

  /// N: no other frame refers to this one, it can be left out.
  public var isNonReference = false
  /// S: the data begin with the beginning of a partition.
  public var startsPartition = false
  /// PID: the partition that the data begin with, 0 to 7.
  public var partition: UInt8 = 0
  /// The number of the frame; nil: there is none.
  public var pictureID: UInt16?
  /// Whether the picture ID has 15 bits; otherwise 7.
  public var isPictureIDLong = true
  /// TL0PICIDX: the running number of the frames of the lowest temporal layer; nil: there is none.
  public var baseLayerIndex: UInt8?
  /// TID: the temporal layer, 0 to 3; nil: there is none.
  public var temporalLayer: UInt8?
  /// Y: the frame depends on the lowest temporal layer alone. Of meaning with a temporal layer.
  public var isLayerSync = false
  /// KEYIDX: a running number of key frames, 0 to 31; nil: there is none.
  public var keyIndex: UInt8?

  /// Creates a descriptor.
  public init(pictureID: UInt16? = nil) {
    self.pictureID = pictureID.map { $0 & Self.maximumPictureID }
  }

  /// The picture ID after this one.
  public static func pictureID(after id: UInt16) -> UInt16 { (id &+ 1) & maximumPictureID }

  /// True for the first payload of a frame.
  public var startsFrame: Bool { startsPartition && partition == 0 }

  // MARK: Reading

  /// Reads a descriptor. Reserved bits are ignored.
  /// - Returns: the descriptor and the number of its bytes, 1 to 6.
  /// - Throws: when the payload ends within it.
  public static func parse(
    _ payload: Span<UInt8>
  ) throws(PayloadProblem) -> (descriptor: VP8Descriptor, byteCount: Int) {
    var position = 0
    var descriptor = VP8Descriptor()
    let first = try next(payload, &position)
    descriptor.isNonReference = first & Bit.nonReference != 0
    descriptor.startsPartition = first & Bit.start != 0
    descriptor.partition = first & Bit.partitionMask
    guard first & Bit.extended != 0 else { return (descriptor, position) }
    let fields = try next(payload, &position)
    if fields & Bit.pictureID != 0 {
      let high = try next(payload, &position)
      descriptor.isPictureIDLong = high & Bit.longPictureID != 0
      descriptor.pictureID = UInt16(high & ~Bit.longPictureID)
      if descriptor.isPictureIDLong {
        descriptor.pictureID = UInt16(high & ~Bit.longPictureID) << 8 | UInt16(try next(payload, &position))
      }
    }
    if fields & Bit.baseLayerIndex != 0 { descriptor.baseLayerIndex = try next(payload, &position) }
    if fields & (Bit.temporalLayer | Bit.keyIndex) != 0 {
      let layers = try next(payload, &position)
      if fields & Bit.temporalLayer != 0 {
        descriptor.temporalLayer = layers >> 6
        descriptor.isLayerSync = layers & Bit.layerSync != 0
      }
      if fields & Bit.keyIndex != 0 { descriptor.keyIndex = layers & Bit.keyIndexMask }
    }
    return (descriptor, position)
  }

  /// No local function: one that captures a variable makes a heap request in debug builds.
  private static func next(_ payload: Span<UInt8>, _ position: inout Int) throws(PayloadProblem) -> UInt8 {
    guard position < payload.count else {
      throw .truncated(.vp8, bytes: payload.count, needed: position + 1)
    }
    position += 1
    return payload[position - 1]
  }

  // MARK: Writing

  /// Bytes that `write` needs, 1 to 6.
  public var byteCount: Int {
    guard fields != 0 else { return 1 }
    let id = pictureID == nil ? 0 : isPictureIDLong ? 2 : 1
    return 2 + id + (baseLayerIndex == nil ? 0 : 1) + (hasLayers ? 1 : 0)
  }

  /// Writes the descriptor. Of numbers that are too large the lower bits are written.
  /// - Returns: the number of bytes written.
  /// - Throws: when there is no room.
  @discardableResult
  public func write(
    into target: inout MutableSpan<UInt8>, at offset: Int = 0
  ) throws(PayloadProblem) -> Int {
    guard offset >= 0, target.count - offset >= byteCount else {
      throw .noRoom(bytes: max(0, target.count - offset), needed: byteCount)
    }
    target[offset] =
      (fields == 0 ? 0 : Bit.extended) | (isNonReference ? Bit.nonReference : 0)
      | (startsPartition ? Bit.start : 0) | partition & Bit.partitionMask
    guard fields != 0 else { return 1 }
    target[offset + 1] = fields
    var position = offset + 2
    if let pictureID {
      if isPictureIDLong {
        target[position] = UInt8(truncatingIfNeeded: pictureID >> 8) | Bit.longPictureID
        position += 1
      }
      let low = UInt8(truncatingIfNeeded: pictureID)
      target[position] = isPictureIDLong ? low : low & ~Bit.longPictureID
      position += 1
    }
    if let baseLayerIndex {
      target[position] = baseLayerIndex
      position += 1
    }
    if hasLayers {
      let sync = temporalLayer != nil && isLayerSync ? Bit.layerSync : 0
      target[position] = (temporalLayer ?? 0) << 6 | sync | (keyIndex ?? 0) & Bit.keyIndexMask
      position += 1
    }
    return position - offset
  }

  private var hasLayers: Bool { temporalLayer != nil || keyIndex != nil }

  /// The second byte: which fields follow.
  private var fields: UInt8 {
    (pictureID == nil ? 0 : Bit.pictureID) | (baseLayerIndex == nil ? 0 : Bit.baseLayerIndex)
      | (temporalLayer == nil ? 0 : Bit.temporalLayer) | (keyIndex == nil ? 0 : Bit.keyIndex)
  }

  private enum Bit {
    static let extended: UInt8 = 0x80
    static let nonReference: UInt8 = 0x20
    static let start: UInt8 = 0x10
    static let partitionMask: UInt8 = 0x07
    static let pictureID: UInt8 = 0x80
    static let baseLayerIndex: UInt8 = 0x40
    static let temporalLayer: UInt8 = 0x20
    static let keyIndex: UInt8 = 0x10
    static let longPictureID: UInt8 = 0x80
    static let layerSync: UInt8 = 0x20
    static let keyIndexMask: UInt8 = 0x1F
  }
}
