/// Puts VP8 frames together from RTP payloads (RFC 7741 section 4.5).
///
/// In: payloads in the order of their sequence numbers, holes included; late ones and copies are ignored. Out: frames, each as soon as it
/// is complete: with its marker, or with the first payload of another one.
///
/// After a hole the rest of a frame is left out, because a decoder cannot find its place again, and the frame is delivered as damaged.
/// Nothing is delivered of a frame whose beginning is missing. One that is larger than the buffer is discarded and counted.
///
/// Allocates at `init` only. One thread at a time.
public struct VP8Depacketizer: ~Copyable, Sendable {
  /// Room for frames by default. Memory is only used as far as frames reach.
  public static let standardCapacity = 1 << 20

  private var assembler: FrameAssembler
  /// The descriptor of the first payload of the frame.
  private var first = VP8Descriptor()

  /// Makes a depacketizer for frames of at most `maximumBytes`.
  public init(maximumBytes: Int = standardCapacity) {
    assembler = FrameAssembler(capacity: maximumBytes)
  }

  /// What was counted so far.
  public var statistics: DepacketizerStatistics { assembler.statistics }

  /// Forgets the stream, such as when its SSRC changes. The counters stay.
  public mutating func reset() { assembler.reset() }

  /// Takes a payload.
  /// - Parameters:
  ///   - payload: without RTP header, extensions and padding. An empty one is padding, which only fills its place in the sequence.
  ///   - sequence: the sequence number, unwrapped.
  ///   - timestamp: of the RTP packet, unwrapped or not: it is compared for equality, and returned with the frame.
  ///   - marker: the marker bit.
  ///   - deliver: called for each frame that is complete, with the descriptor of its first payload: at most twice.
  /// - Throws: when the payload is refused. The frame it belongs to is then damaged.
  public mutating func add(
    _ payload: Span<UInt8>, sequence: Int64, timestamp: Int64, marker: Bool,
    deliver: (ReceivedFrame, VP8Descriptor) -> Void
  ) throws(PayloadProblem) {
    guard let arrival = assembler.arrive(sequence, isPadding: payload.isEmpty) else { return }
    // What is missing may be the end of this frame, even when another begins now.
    if arrival == .afterHole, assembler.isOpen { assembler.isDamaged = true }
    if assembler.isOpen, assembler.timestamp != timestamp { finish(deliver) }
    var problem: PayloadProblem?
    do throws(PayloadProblem) {
      let (descriptor, head) = try VP8Descriptor.parse(payload)
      guard payload.count > head else {
        throw .truncated(.vp8, bytes: payload.count, needed: head + 1)
      }
      if descriptor.startsFrame { finish(deliver) }
      if !assembler.isOpen { open(descriptor, timestamp, arrival) }
      take(payload.extracting(head...), isFirst: descriptor.startsFrame)
    } catch {
      problem = error
      assembler.statistics.refusedPackets += 1
      if !assembler.isOpen { assembler.open(timestamp, after: arrival) }
      assembler.isDamaged = true
    }
    if marker { finish(deliver) }
    if let problem { throw problem }
  }

  /// Delivers the frame as far as it has arrived, such as when the stream ends.
  public mutating func flush(deliver: (ReceivedFrame, VP8Descriptor) -> Void) {
    guard assembler.isOpen else { return }
    assembler.isDamaged = true
    finish(deliver)
  }

  private mutating func open(
    _ descriptor: VP8Descriptor, _ timestamp: Int64, _ arrival: FrameAssembler.Arrival
  ) {
    assembler.open(timestamp, after: arrival)
    first = descriptor
    if !descriptor.startsFrame { assembler.isDamaged = true }
  }

  private mutating func take(_ data: Span<UInt8>, isFirst: Bool) {
    guard !assembler.isDamaged else { return }
    if isFirst { assembler.isKeyFrame = VP8FrameHeader.isKeyFrame(data[0]) }
    assembler.append(data)
  }

  private mutating func finish(_ deliver: (ReceivedFrame, VP8Descriptor) -> Void) {
    let descriptor = first
    assembler.finish { frame in deliver(frame, descriptor) }
  }
}
