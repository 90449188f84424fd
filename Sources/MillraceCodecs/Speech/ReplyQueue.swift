internal import MillraceCore

/// Queues what a service has sent of its replies until it is decoded. Packets' bytes are copied, so that no pool block waits
/// here.
///
/// Bounded in bytes and in packets; touches memory only as far as it is used. Not thread-safe; no heap after `init`.
@safe
struct ReplyQueue: ~Copyable {
  /// The metadata of a packet; its bytes are contiguous.
  struct Entry {
    fileprivate(set) var offset = 0
    fileprivate(set) var byteCount = 0
    var reply = HeldReply()
    var flags: PacketFlags = []
    /// Time of arrival.
    var arrival: Nanoseconds = 0
    var position: Int64 = 0
    var duration = 0
    var trimStart = 0
    var trimEnd = 0
  }

  /// Most packets in the queue.
  static let packets = 4_096

  private let byteLimit: Int
  private let bytes: UnsafeMutableRawPointer
  private let entries: UnsafeMutablePointer<Entry>
  private var first = 0
  private var count = 0
  /// Offset of the next packet's bytes.
  private var writeAt = 0
  /// Number of ends of utterances in the queue.
  private(set) var ends = 0

  init(byteLimit: Int) {
    self.byteLimit = byteLimit
    unsafe bytes = .allocate(byteCount: byteLimit, alignment: 64)
    unsafe entries = .allocate(capacity: Self.packets)
    unsafe entries.initialize(repeating: Entry(), count: Self.packets)
  }

  deinit {
    unsafe bytes.deallocate()
    unsafe entries.deallocate()
  }

  var isEmpty: Bool { count == 0 }

  /// The packet to decode next. Precondition: the queue is not empty.
  var front: Entry {
    precondition(count > 0, "the queue is empty")
    return unsafe entries[first]
  }

  /// The bytes of the front packet. Valid until it is dropped.
  @unsafe
  var frontBytes: UnsafeBufferPointer<UInt8> {
    let entry = front
    let start = unsafe (bytes + entry.offset).assumingMemoryBound(to: UInt8.self)
    return unsafe UnsafeBufferPointer(start: start, count: entry.byteCount)
  }

  /// True if a packet of this size fits.
  func hasRoom(for byteCount: Int) -> Bool { count < Self.packets && place(for: byteCount) != nil }

  /// Offset of a contiguous free range of this size; nil if there is none now.
  private func place(for byteCount: Int) -> Int? {
    // Aligned for any sample type.
    let size = (byteCount + 7) & ~7
    guard count > 0 else { return size <= byteLimit ? 0 : nil }
    let oldest = unsafe entries[first].offset
    if writeAt > oldest {
      if writeAt + size <= byteLimit { return writeAt }
      return size < oldest ? 0 : nil
    }
    return writeAt + size < oldest ? writeAt : nil
  }

  /// Copies a packet into the queue; false if it does not fit.
  mutating func append(_ packet: borrowing Packet, arrival: Nanoseconds) -> Bool {
    let size = Int(packet.byteCount)
    guard count < Self.packets, let offset = place(for: size) else { return false }
    let source = packet.samples(of: UInt8.self)
    let target = unsafe bytes + offset
    unsafe source.withUnsafeBytes { from in
      if let start = from.baseAddress { unsafe target.copyMemory(from: start, byteCount: size) }
    }
    unsafe entries[(first + count) % Self.packets] = Entry(
      offset: offset, byteCount: size, reply: HeldReply(of: packet), flags: packet.flags, arrival: arrival,
      position: packet.position, duration: packet.duration, trimStart: packet.trimStart,
      trimEnd: packet.trimEnd)
    count += 1
    writeAt = offset + (size + 7) & ~7
    if packet.flags.contains(.endOfUtterance) { ends += 1 }
    return true
  }

  /// Drops the front packet.
  mutating func drop() {
    if front.flags.contains(.endOfUtterance) { ends -= 1 }
    first = (first + 1) % Self.packets
    count -= 1
    if count == 0 { writeAt = 0 }
  }

  /// Drops all packets at the front that belong to a cancelled reply.
  mutating func dropStale(at generation: UInt32) {
    while count > 0, front.reply.isStale(at: generation) { drop() }
  }
}
