/// The buffer of a depacketizer, with what all formats have in common: holes in the sequence, the frame being put together, its delivery.
///
/// Allocates at `init` only. Its memory is touched as far as the largest frame so far.
@safe
struct FrameAssembler: ~Copyable, @unchecked Sendable {
  /// What is known of the packets in front of one.
  enum Arrival: Int {
    /// None is missing.
    case next
    /// Nothing: it is the first of the stream.
    case first
    /// Some are missing.
    case afterHole
  }

  private let storage: UnsafeMutablePointer<UInt8>
  private let capacity: Int
  private var lastSequence: Int64?
  /// What packets of padding have hidden from the next packet.
  private var pending = Arrival.next
  private var isTooLarge = false
  private var followsLoss = false

  /// Bytes of the frame so far.
  private(set) var count = 0
  /// True from the first packet of a frame to its end.
  private(set) var isOpen = false
  /// The timestamp of the open frame.
  private(set) var timestamp: Int64 = 0
  /// Whether a part of the open frame is missing.
  var isDamaged = false
  /// Whether a decoder can start with the open frame.
  var isKeyFrame = false
  var statistics = DepacketizerStatistics()

  init(capacity: Int) {
    precondition(capacity > 0, "a frame needs room")
    self.capacity = capacity
    unsafe storage = .allocate(capacity: capacity)
  }

  deinit { unsafe storage.deallocate() }

  /// Forgets the stream and the open frame; the counters stay.
  mutating func reset() {
    lastSequence = nil
    pending = .next
    followsLoss = false
    clear()
  }

  /// Takes note of a packet.
  /// - Returns: nil when there is nothing to do: it is late, a copy, or padding.
  mutating func arrive(_ sequence: Int64, isPadding: Bool) -> Arrival? {
    var arrival = Arrival.first
    if let last = lastSequence {
      guard sequence > last else {
        statistics.latePackets += 1
        return nil
      }
      arrival = sequence - 1 == last ? .next : .afterHole
      if arrival == .afterHole { statistics.holes += 1 }
    }
    lastSequence = sequence
    if pending.rawValue > arrival.rawValue { arrival = pending }
    pending = isPadding ? arrival : .next
    return isPadding ? nil : arrival
  }

  // MARK: The open frame

  /// Begins a frame.
  mutating func open(_ timestamp: Int64, after arrival: Arrival) {
    clear()
    isOpen = true
    self.timestamp = timestamp
    if arrival == .afterHole { followsLoss = true }
  }

  /// Appends bytes. A frame that outgrows the buffer is discarded when it ends.
  mutating func append(_ bytes: Span<UInt8>) {
    guard !isTooLarge, bytes.count <= capacity - count else {
      isTooLarge = true
      return
    }
    let target = unsafe UnsafeMutableRawBufferPointer(start: storage + count, count: bytes.count)
    unsafe bytes.withUnsafeBytes { unsafe target.copyMemory(from: $0) }
    count += bytes.count
  }

  /// Appends a byte.
  mutating func append(_ byte: UInt8) {
    guard !isTooLarge, count < capacity else {
      isTooLarge = true
      return
    }
    unsafe storage[count] = byte
    count += 1
  }

  /// Removes what was appended after a position.
  mutating func truncate(to position: Int) { count = min(count, position) }

  /// Ends the frame and delivers it, if there is something to deliver.
  mutating func finish(_ deliver: (ReceivedFrame) -> Void) {
    guard isOpen else { return }
    if isTooLarge || count == 0 {
      if isTooLarge { statistics.tooLarge += 1 } else { statistics.unusable += 1 }
      followsLoss = true
    } else {
      statistics.delivered += 1
      if isDamaged { statistics.damaged += 1 }
      let bytes = unsafe Span(_unsafeStart: storage, count: count)
      deliver(
        ReceivedFrame(
          bytes, timestamp: timestamp, isKeyFrame: isKeyFrame, isDamaged: isDamaged, followsLoss: followsLoss)
      )
      followsLoss = false
    }
    clear()
  }

  private mutating func clear() {
    count = 0
    (isOpen, isDamaged, isKeyFrame, isTooLarge) = (false, false, false, false)
  }
}
