/// Cuts a VP8 frame into RTP payloads (RFC 7741 section 4.4).
///
/// In: a frame of an encoder and the descriptor of its payloads. Out: payloads of at most `maximumBytes`, in order and of equal size, with
/// `S` in the first and the marker on the last. It does not look for partitions, which section 4.2 allows: every payload says partition 0.
/// The frame is read in place; nothing is allocated.
public struct VP8Packetizer: ~Copyable, ~Escapable {
  private let frame: Span<UInt8>
  private let maximumBytes: Int
  private var descriptor: VP8Descriptor
  private var cut: EvenCut
  private var position = 0

  /// Prepares a frame.
  /// - Parameters:
  ///   - frame: as the encoder made it.
  ///   - descriptor: picture ID, layers and N of the frame; S and PID are set here.
  ///   - maximumBytes: of a payload, within `PayloadSize.range`.
  @_lifetime(copy frame)
  public init(
    _ frame: Span<UInt8>, descriptor: VP8Descriptor, maximumBytes: Int = PayloadSize.standard
  ) {
    precondition(PayloadSize.range.contains(maximumBytes), "the limit of a payload is out of range")
    self.frame = frame
    self.maximumBytes = maximumBytes
    self.descriptor = descriptor
    self.descriptor.startsPartition = true
    self.descriptor.partition = 0
    cut = EvenCut(frame.count, maximum: maximumBytes - descriptor.byteCount)
  }

  /// Writes the next payload.
  /// - Parameters:
  ///   - target: has room for `maximumBytes` from `offset` on.
  ///   - offset: where the payload begins.
  /// - Returns: what was written; nil after the last payload, and for an empty frame.
  /// - Throws: when there is no room.
  public mutating func next(
    into target: inout MutableSpan<UInt8>, at offset: Int = 0
  ) throws(PayloadProblem) -> PacketizedPayload? {
    guard !cut.isDone else { return nil }
    guard offset >= 0, target.count - offset >= maximumBytes else {
      throw .noRoom(bytes: max(0, target.count - offset), needed: maximumBytes)
    }
    let head = try descriptor.write(into: &target, at: offset)
    let count = cut.next()
    target.put(frame.extracting(position..<position + count), at: offset + head)
    position += count
    descriptor.startsPartition = false
    return PacketizedPayload(byteCount: head + count, marker: cut.isDone)
  }
}
