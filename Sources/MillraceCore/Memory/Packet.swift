/// Marks on a packet.
public struct PacketFlags: OptionSet, Sendable, Hashable {
  public let rawValue: UInt16
  @inlinable public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// Something is missing between this packet and the one before it: filters and decoders start afresh or conceal.
  public static let discontinuity = PacketFlags(rawValue: 1 << 0)
  /// The packet stands for media that was lost; it carries no bytes, only time, position and duration.
  public static let lost = PacketFlags(rawValue: 1 << 1)
  /// A decoder may start here (pictures).
  public static let key = PacketFlags(rawValue: 1 << 2)
  /// The packet must be played even when the reply it belongs to is interrupted.
  public static let uninterruptible = PacketFlags(rawValue: 1 << 3)
  /// Silence that a discontinuous encoder did not send.
  public static let silence = PacketFlags(rawValue: 1 << 4)
  /// Nothing more of this utterance comes: decoders give what they hold, playback does not wait for more. The packet may be
  /// empty. What follows belongs to another utterance, which a decoder begins afresh.
  public static let endOfUtterance = PacketFlags(rawValue: 1 << 5)
}

/// One piece of media on its way between two nodes: 32 bytes that own a pooled block. It is moved, never copied.
///
/// What it does *not* hold: its format in full (`format` is an index into the graph's table; a node knows its ports'
/// formats from its setup) and its route.
public struct Packet: ~Copyable, Sendable {
  /// When the first sample was captured or is due, in nanoseconds on the graph clock.
  public var timestamp: Int64
  /// Bytes of content in the block.
  public var byteCount: Int32
  /// The reply this packet belongs to; 0 means none, and no interruption touches it.
  public var generation: UInt32
  /// Index of the packet's format in the graph's table.
  public var format: UInt16
  /// Marks.
  public var flags: PacketFlags
  /// The bytes.
  public var block: Block

  /// Makes a packet around a block whose first `byteCount` bytes are content.
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

  /// True when one generation came after another. Generations wrap around.
  @inlinable
  public static func isNewer(_ one: UInt32, than other: UInt32) -> Bool {
    Int32(bitPattern: one &- other) > 0
  }

  // Position, duration and trims lie in the block: written while it is shared, they would change under the other holders.
  @inlinable borrowing func checkUnique() {
    precondition(block.isUnique, "move or trim a shared packet")
  }

  /// Position of the first sample since the stream's start, in samples at the port's rate.
  ///
  /// Recordings align by it, never by wall time. An encoder's first packet has a negative position: what a decoder must
  /// throw away before sample 0 (the pre-skip). Like durations and trims, it may be set only while the block is not shared.
  @inlinable public var position: Int64 {
    get { unsafe block.header.pointee.position }
    set {
      checkUnique()
      unsafe block.header.pointee.position = newValue
    }
  }

  /// Samples per channel the packet stands for, at the port's rate. 0 where the format has none (text, events).
  @inlinable public var duration: Int {
    get { unsafe Int(block.header.pointee.duration) }
    set {
      checkUnique()
      unsafe block.header.pointee.duration = Int32(truncatingIfNeeded: newValue)
    }
  }

  /// Samples per channel to throw away at the start of what this packet decodes to.
  @inlinable public var trimStart: Int {
    get { unsafe Int(block.header.pointee.trimStart) }
    set {
      checkUnique()
      unsafe block.header.pointee.trimStart = Int32(truncatingIfNeeded: newValue)
    }
  }

  /// Samples per channel to throw away at the end of what this packet decodes to (an encoder's padding).
  @inlinable public var trimEnd: Int {
    get { unsafe Int(block.header.pointee.trimEnd) }
    set {
      checkUnique()
      unsafe block.header.pointee.trimEnd = Int32(truncatingIfNeeded: newValue)
    }
  }

  /// A second packet over the same bytes, for fan-out. Neither may be written while both live.
  @inlinable public borrowing func share() -> Packet {
    Packet(
      block.share(), byteCount: Int(byteCount), timestamp: timestamp, format: format, generation: generation,
      flags: flags)
  }

  /// A packet of its own with the same bytes and description, in a block of another pool. nil when the pool has no free block
  /// or its blocks are too small.
  @inlinable public borrowing func copied(into pool: BlockPool) -> Packet? {
    guard Int(byteCount) <= pool.blockBytes, let block = pool.take() else { return nil }
    unsafe block.start.copyMemory(from: self.block.start, byteCount: Int(byteCount))
    var copy = Packet(block, byteCount: Int(byteCount), format: format)
    copy.describeLike(self)
    return copy
  }

  /// Takes over the content of another packet, as many bytes as both have. Traps when the block is shared.
  package mutating func copyBytes(of other: borrowing Packet) {
    precondition(block.isUnique, "write to a shared block")
    unsafe block.start.copyMemory(from: other.block.start, byteCount: Int(min(byteCount, other.byteCount)))
  }

  /// True when the packet says that its utterance has ended, and nothing else: it has no bytes, and nothing is missing there.
  @inlinable public var isBareEnd: Bool {
    byteCount == 0 && duration == 0 && flags.contains(.endOfUtterance)
      && !flags.contains(.lost) && !flags.contains(.discontinuity)
  }

  /// Makes an empty packet the end of the utterance that another packet ends, at a position and a time of its own.
  @inlinable
  public mutating func describeEnd(like other: borrowing Packet, position: Int64, timestamp: Int64) {
    self.timestamp = timestamp
    self.position = position
    duration = 0
    generation = other.generation
    flags = .endOfUtterance
    if other.flags.contains(.uninterruptible) { flags.insert(.uninterruptible) }
  }

  /// Copies time, position, duration, trims, generation and flags from another packet. The bytes stay as they are.
  @inlinable public mutating func describeLike(_ other: borrowing Packet) {
    timestamp = other.timestamp
    generation = other.generation
    flags = other.flags
    position = other.position
    duration = other.duration
    trimStart = other.trimStart
    trimEnd = other.trimEnd
  }

  /// The content as elements of a type; a remainder shorter than one element is left out.
  @inlinable
  @_lifetime(borrow self)
  public borrowing func samples<S: BitwiseCopyable>(of type: S.Type) -> Span<S> {
    let count = Int(byteCount) / MemoryLayout<S>.stride
    return unsafe _overrideLifetime(block.samples(of: type, count: count), borrowing: self)
  }

  /// The content as elements of a type, to write. Traps when the block is shared.
  @inlinable
  @_lifetime(&self)
  public mutating func mutableSamples<S: BitwiseCopyable>(of type: S.Type) -> MutableSpan<S> {
    precondition(block.isUnique, "write to a shared block")
    let count = Int(byteCount) / MemoryLayout<S>.stride
    let first = unsafe block.start.assumingMemoryBound(to: S.self)
    return unsafe _overrideLifetime(MutableSpan(_unsafeStart: first, count: count), mutating: &self)
  }

  /// Sets how many bytes of the block are content; the bytes themselves stay. Traps when the block is smaller.
  @inlinable public mutating func setByteCount(_ count: Int) {
    precondition(count >= 0 && count <= block.byteCount, "a packet cannot be longer than its block")
    byteCount = Int32(truncatingIfNeeded: count)
  }
}
