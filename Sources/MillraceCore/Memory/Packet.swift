/// Flags of a packet.
public struct PacketFlags: OptionSet, Sendable, Hashable {
  public let rawValue: UInt16
  @inlinable public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// Media is missing between this packet and the previous one: filters and decoders reset or conceal the gap.
  public static let discontinuity = PacketFlags(rawValue: 1 << 0)
  /// The packet stands for lost media: it has no bytes, only a time, a position and a duration.
  public static let lost = PacketFlags(rawValue: 1 << 1)
  /// A key frame: a decoder may start here. Every raw picture is one.
  public static let key = PacketFlags(rawValue: 1 << 2)
  /// The packet is played even when its reply is interrupted.
  public static let uninterruptible = PacketFlags(rawValue: 1 << 3)
  /// Silence that the encoder did not transmit (DTX).
  public static let silence = PacketFlags(rawValue: 1 << 4)
  /// The last packet of an utterance: decoders emit what they hold, and playback waits for nothing more. The packet may be
  /// empty. What follows is another utterance, and decoders reset before it.
  public static let endOfUtterance = PacketFlags(rawValue: 1 << 5)
}

/// One piece of media between two nodes: 32 bytes that own a pooled block. It is moved, never copied.
///
/// What it does *not* hold: its route, and its full format (`format` is an index into the graph's table; a node knows the
/// formats of its ports from its setup).
public struct Packet: ~Copyable, Sendable {
  /// When the first sample was captured or is due, in nanoseconds on the graph clock.
  public var timestamp: Int64
  /// Bytes of content in the block.
  public var byteCount: Int32
  /// The reply this packet belongs to; 0: none, so no interruption affects it.
  public var generation: UInt32
  /// Index of the packet's format in the graph's table.
  public var format: UInt16
  /// Its flags.
  public var flags: PacketFlags
  /// The memory that holds the content.
  public var block: Block

  /// Creates a packet around a block whose first `byteCount` bytes are content. Traps when the block is smaller.
  @inlinable
  public init(
    _ block: consuming Block, byteCount: Int, timestamp: Int64 = 0, format: UInt16 = 0,
    generation: UInt32 = 0,
    flags: PacketFlags = []
  ) {
    precondition(byteCount >= 0 && byteCount <= block.byteCount, "a packet cannot be longer than its block")
    self.block = block
    self.byteCount = Int32(truncatingIfNeeded: byteCount)
    self.timestamp = timestamp
    self.format = format
    self.generation = generation
    self.flags = flags
  }

  /// True when one generation is newer than another. Generations wrap around.
  @inlinable
  public static func isNewer(_ one: UInt32, than other: UInt32) -> Bool {
    Int32(bitPattern: one &- other) > 0
  }

  // Position, duration and trims are stored in the block: writing them while it is shared would change them for every holder.
  @inlinable borrowing func checkUnique() {
    precondition(block.isUnique, "cannot set position, duration or trim of a shared packet")
  }

  /// Position of the first sample since the stream's start, in samples at the port's rate.
  ///
  /// Recordings align by it, never by wall-clock time. An encoder's first packet has a negative position: the samples a decoder
  /// discards before sample 0 (the pre-skip). Like duration and trims, it may be set only while the block is not shared.
  @inlinable public var position: Int64 {
    get { unsafe block.header.pointee.position }
    set {
      checkUnique()
      unsafe block.header.pointee.position = newValue
    }
  }

  /// Length in samples per channel at the port's rate; 0 for formats without samples (text, events).
  @inlinable public var duration: Int {
    get { unsafe Int(block.header.pointee.duration) }
    set {
      checkUnique()
      unsafe block.header.pointee.duration = Int32(truncatingIfNeeded: newValue)
    }
  }

  /// Samples per channel to discard at the start of the decoded packet.
  @inlinable public var trimStart: Int {
    get { unsafe Int(block.header.pointee.trimStart) }
    set {
      checkUnique()
      unsafe block.header.pointee.trimStart = Int32(truncatingIfNeeded: newValue)
    }
  }

  /// Samples per channel to discard at the end of the decoded packet (the encoder's padding).
  @inlinable public var trimEnd: Int {
    get { unsafe Int(block.header.pointee.trimEnd) }
    set {
      checkUnique()
      unsafe block.header.pointee.trimEnd = Int32(truncatingIfNeeded: newValue)
    }
  }

  /// A second packet with the same bytes, for fan-out. Neither may be written while both exist.
  @inlinable public borrowing func share() -> Packet {
    Packet(
      block.share(), byteCount: Int(byteCount), timestamp: timestamp, format: format, generation: generation,
      flags: flags)
  }

  /// A copy of the bytes and metadata in a block of another pool; nil when the pool has no free block or its blocks are too
  /// small.
  @inlinable public borrowing func copied(into pool: BlockPool) -> Packet? {
    guard Int(byteCount) <= pool.blockBytes, let block = pool.take() else { return nil }
    unsafe block.start.copyMemory(from: self.block.start, byteCount: Int(byteCount))
    var copy = Packet(block, byteCount: Int(byteCount), format: format)
    copy.copyMetadata(from: self)
    return copy
  }

  /// Copies the content of another packet, as many bytes as both packets have. Traps when the block is shared.
  package mutating func copyBytes(of other: borrowing Packet) {
    precondition(block.isUnique, "write to a shared block")
    unsafe block.start.copyMemory(from: other.block.start, byteCount: Int(min(byteCount, other.byteCount)))
  }

  /// True for a packet that only marks the end of an utterance: no content, and no gap.
  @inlinable public var isEndMarker: Bool {
    byteCount == 0 && duration == 0 && flags.contains(.endOfUtterance)
      && !flags.contains(.lost) && !flags.contains(.discontinuity)
  }

  /// Turns an empty packet into the end marker of the utterance that `other` ends, with its own position and time.
  @inlinable
  public mutating func setEndMarker(like other: borrowing Packet, position: Int64, timestamp: Int64) {
    self.timestamp = timestamp
    self.position = position
    duration = 0
    generation = other.generation
    flags = .endOfUtterance
    if other.flags.contains(.uninterruptible) { flags.insert(.uninterruptible) }
  }

  /// Copies time, position, duration, trims, generation and flags from another packet; not the content.
  @inlinable public mutating func copyMetadata(from other: borrowing Packet) {
    timestamp = other.timestamp
    generation = other.generation
    flags = other.flags
    position = other.position
    duration = other.duration
    trimStart = other.trimStart
    trimEnd = other.trimEnd
  }

  /// The content as elements of a type; an incomplete last element is left out.
  @inlinable
  @_lifetime(borrow self)
  public borrowing func samples<S: BitwiseCopyable>(of type: S.Type) -> Span<S> {
    let count = Int(byteCount) / MemoryLayout<S>.stride
    return unsafe _overrideLifetime(block.samples(of: type, count: count), borrowing: self)
  }

  /// The content as elements of a type, for writing. Traps when the block is shared.
  @inlinable
  @_lifetime(&self)
  public mutating func mutableSamples<S: BitwiseCopyable>(of type: S.Type) -> MutableSpan<S> {
    precondition(block.isUnique, "write to a shared block")
    let count = Int(byteCount) / MemoryLayout<S>.stride
    let first = unsafe block.start.assumingMemoryBound(to: S.self)
    return unsafe _overrideLifetime(MutableSpan(_unsafeStart: first, count: count), mutating: &self)
  }

  /// Sets how many bytes of the block are content; the bytes do not change. Traps when the block is smaller.
  @inlinable public mutating func setByteCount(_ count: Int) {
    precondition(count >= 0 && count <= block.byteCount, "a packet cannot be longer than its block")
    byteCount = Int32(truncatingIfNeeded: count)
  }
}
