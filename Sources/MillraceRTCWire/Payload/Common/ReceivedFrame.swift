/// A frame of video that a depacketizer has put together, valid during the call that delivers it.
public struct ReceivedFrame: ~Escapable {
  /// The frame: for H.264 an access unit in Annex B form with start codes of four bytes, for VP8 the frame as the encoder made it.
  public let bytes: Span<UInt8>
  /// The RTP timestamp, as the packets brought it.
  public let timestamp: Int64
  /// True when a decoder can start here: H.264 with an IDR picture or a sequence parameter set, VP8 with a key frame.
  public let isKeyFrame: Bool
  /// True when a part is missing, or may be missing. H.264 then contains the NAL units that arrived whole, VP8 the beginning up to the
  /// hole.
  public let isDamaged: Bool
  /// True when something between the delivered frame before and this one is missing: a decoder lacks its reference unless this is a key
  /// frame.
  public let followsLoss: Bool

  @_lifetime(copy bytes)
  init(
    _ bytes: Span<UInt8>, timestamp: Int64, isKeyFrame: Bool, isDamaged: Bool, followsLoss: Bool
  ) {
    self.bytes = bytes
    self.timestamp = timestamp
    self.isKeyFrame = isKeyFrame
    self.isDamaged = isDamaged
    self.followsLoss = followsLoss
  }
}

/// What a depacketizer has counted since it was made.
public struct DepacketizerStatistics: Sendable, Hashable {
  /// Frames delivered, damaged ones included.
  public var delivered = 0
  /// Frames delivered as damaged.
  public var damaged = 0
  /// Frames of which packets arrived but nothing usable.
  public var unusable = 0
  /// Frames discarded because they are larger than the buffer.
  public var tooLarge = 0
  /// Packets refused because of their content.
  public var refusedPackets = 0
  /// Packets ignored because a later or the same one had arrived before.
  public var latePackets = 0
  /// Holes in the sequence, of whatever length.
  public var holes = 0
}
